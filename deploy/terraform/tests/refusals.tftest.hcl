# What the module does not let through. Each refusal has a neighbour that passes, here or in the other files.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
}

variables {
  project_id        = "bots"
  workload_identity = { namespace = "bellhop" }
}

run "a_message_that_outlives_its_claim" {
  command = plan
  variables {
    claim_retention_seconds = 863999
  }
  expect_failures = [google_pubsub_subscription.events]
}

run "a_topic_that_remembers_longer_than_the_claims" {
  command = plan
  variables {
    topic_message_retention_seconds = 604801
  }
  expect_failures = [google_pubsub_subscription.events]
}

run "the_shortest_claim_retention_that_holds" {
  command = plan
  variables {
    message_retention_seconds = 86400
    claim_retention_seconds   = 345600
  }
}

run "a_least_delay_above_the_longest" {
  command = plan
  variables {
    retry_min_backoff_seconds = 60
    retry_max_backoff_seconds = 59
  }
  expect_failures = [google_pubsub_subscription.events]
}

run "equal_delays" {
  command = plan
  variables {
    retry_min_backoff_seconds = 60
    retry_max_backoff_seconds = 60
  }
}

run "early_dead_letters" {
  command = plan
  variables {
    max_delivery_attempts = 99
  }
  expect_failures = [google_pubsub_subscription.events]
}

run "early_dead_letters_on_purpose" {
  command = plan
  variables {
    max_delivery_attempts         = 5
    acknowledge_early_dead_letter = true
  }
}

run "attempts_pubsub_refuses" {
  command = plan
  variables {
    max_delivery_attempts         = 4
    acknowledge_early_dead_letter = true
  }
  expect_failures = [var.max_delivery_attempts]
}

run "dead_letters_that_come_back" {
  command = plan
  variables {
    dead_letter = "chat-events"
  }
  expect_failures = [google_pubsub_subscription.events]
}

run "nobody_who_pulls" {
  command = plan
  variables {
    service_account_id = ""
    workload_identity  = null
  }
  # Roles for nobody are refused by the provider as well, but the sentence is this one.
  expect_failures = [google_pubsub_subscription.events]
}

run "a_subscription_no_autoscaler_can_select" {
  command = plan
  variables {
    subscription = "chat+events"
  }
  expect_failures = [var.subscription]
}

run "a_subscription_id_of_64" {
  command = plan
  variables {
    subscription = "a234567890123456789012345678901234567890123456789012345678901234"
  }
  expect_failures = [var.subscription]
}

run "a_subscription_id_of_63" {
  command = plan
  variables {
    subscription = "a23456789012345678901234567890123456789012345678901234567890123"
  }
}

run "a_topic_open_to_the_world" {
  command = plan
  variables {
    extra_publishers = ["allUsers"]
  }
  expect_failures = [var.extra_publishers]
}

run "a_deadline_pubsub_refuses" {
  command = plan
  variables {
    ack_deadline_seconds = 9
  }
  expect_failures = [var.ack_deadline_seconds]
}

run "a_retention_pubsub_refuses" {
  command = plan
  variables {
    message_retention_seconds = 599
  }
  expect_failures = [var.message_retention_seconds]
}

run "no_delay_at_all" {
  command = plan
  variables {
    retry_min_backoff_seconds = 0
  }
  expect_failures = [var.retry_min_backoff_seconds]
}

run "a_kind_of_app_that_is_none" {
  command = plan
  variables {
    chat_app = "bot"
  }
  expect_failures = [var.chat_app]
}

run "an_alert_between_two_minutes" {
  command = plan
  variables {
    alerts = { not_pulling = { for_seconds = 90 } }
  }
  expect_failures = [var.alerts]
}
