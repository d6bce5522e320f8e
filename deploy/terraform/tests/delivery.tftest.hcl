# What Pub/Sub is told to do with a message.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
}

variables {
  project_id        = "bots"
  workload_identity = { namespace = "bellhop" }
}

run "an_event_waits_for_its_retry_and_is_taken_away_last" {
  command = apply

  assert {
    condition     = google_pubsub_subscription.events.retry_policy[0].minimum_backoff == "10s" && google_pubsub_subscription.events.retry_policy[0].maximum_backoff == "600s"
    error_message = "A message that is given back must wait 10 s to 600 s."
  }
  assert {
    condition     = google_pubsub_subscription.events.dead_letter_policy[0].max_delivery_attempts == 100
    error_message = "Fewer attempts take events away before bellhop has decided."
  }
  assert {
    condition     = google_pubsub_subscription.events.dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letter.id
    error_message = "Dead letters go to their own topic."
  }
}

run "nothing_expires_unseen" {
  command = apply

  assert {
    condition     = google_pubsub_subscription.events.expiration_policy[0].ttl == "" && google_pubsub_subscription.dead_letter.expiration_policy[0].ttl == ""
    error_message = "An idle subscription must not be deleted after 31 days."
  }
  assert {
    condition     = google_pubsub_subscription.events.message_retention_duration == "604800s"
    error_message = "7 days by default."
  }
  assert {
    condition     = google_pubsub_subscription.dead_letter.topic == google_pubsub_topic.dead_letter.id && google_pubsub_subscription.dead_letter.message_retention_duration == "2678400s"
    error_message = "Dead letters are kept for 31 days."
  }
  assert {
    condition     = google_pubsub_subscription.events.enable_exactly_once_delivery == false && google_pubsub_topic.events.message_retention_duration == null
    error_message = "Exactly-once and topic retention are off unless asked for."
  }
}

run "the_chart_gets_what_the_module_knows" {
  command = apply

  variables {
    topic_message_retention_seconds = 864000
    claim_retention_seconds         = 1209600
  }

  assert {
    condition     = output.message_retention_seconds == 864000
    error_message = "The longer retention counts, here the topic's."
  }
  assert {
    condition = yamldecode(output.helm_values) == {
      config = {
        pubsub = { project = "bots", subscription = "chat-events-bellhop" }
        claims = { retention = "1209600s" }
      }
      pubsub           = { messageRetention = "864000s" }
      serviceAccount   = { name = "bellhop" }
      workloadIdentity = { gcpServiceAccount = google_service_account.worker[0].email }
    }
    error_message = "helm_values must carry subscription, retentions and identity."
  }
}

run "exactly_once_with_one_region_is_silent" {
  command = plan

  variables {
    exactly_once_delivery       = true
    allowed_persistence_regions = ["europe-west1"]
  }

  assert {
    condition     = google_pubsub_subscription.events.enable_exactly_once_delivery && google_pubsub_topic.events.message_storage_policy[0].allowed_persistence_regions[0] == "europe-west1"
    error_message = "The flag and the region must arrive."
  }
}

run "exactly_once_over_regions_warns" {
  command = plan

  variables {
    exactly_once_delivery = true
  }

  expect_failures = [check.exactly_once_is_regional]
}
