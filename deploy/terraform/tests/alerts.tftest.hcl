# What wakes someone.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
}

variables {
  project_id        = "bots"
  workload_identity = { namespace = "bellhop" }
}

run "alerts_watch_this_subscription" {
  command = apply

  assert {
    condition     = google_monitoring_alert_policy.threshold["oldest_unacked"].conditions[0].condition_threshold[0].filter == "resource.type = \"pubsub_subscription\" AND resource.labels.project_id = \"bots\" AND resource.labels.subscription_id = \"chat-events-bellhop\" AND metric.type = \"pubsub.googleapis.com/subscription/oldest_unacked_message_age\""
    error_message = "The age of the oldest event, on this subscription."
  }
  assert {
    condition     = google_monitoring_alert_policy.threshold["oldest_unacked"].conditions[0].condition_threshold[0].threshold_value == 300 && google_monitoring_alert_policy.threshold["oldest_unacked"].severity == "CRITICAL"
    error_message = "Critical from 300 s."
  }
  assert {
    condition     = strcontains(google_monitoring_alert_policy.threshold["dead_letters"].conditions[0].condition_threshold[0].filter, "\"chat-events-bellhop-dead-letter\"") && google_monitoring_alert_policy.threshold["dead_letters"].conditions[0].condition_threshold[0].duration == "0s"
    error_message = "One waiting dead letter is enough."
  }
  assert {
    condition     = google_monitoring_alert_policy.not_pulling[0].conditions[0].condition_prometheus_query_language[0].query == "max(pubsub_googleapis_com:subscription_num_undelivered_messages{monitored_resource=\"pubsub_subscription\",project_id=\"bots\",subscription_id=\"chat-events-bellhop\"}) > 0 unless sum(pubsub_googleapis_com:subscription_open_streaming_pulls{monitored_resource=\"pubsub_subscription\",project_id=\"bots\",subscription_id=\"chat-events-bellhop\"}) > 0"
    error_message = "A backlog without a stream."
  }
  assert {
    condition     = toset(keys(output.alert_policies)) == toset(["dead_lettered", "dead_letters", "expired_deadlines", "not_pulling", "oldest_unacked"])
    error_message = "Five policies."
  }
}

run "alerts_say_what_to_do_and_whom_to_tell" {
  command = apply

  variables {
    alerts = {
      notification_channels = ["projects/bots/notificationChannels/1"]
      runbooks_url          = "https://example.com/runbooks"
      oldest_unacked        = { seconds = 60 }
    }
  }

  assert {
    condition     = alltrue([for policy in google_monitoring_alert_policy.threshold : endswith(policy.documentation[0].content, "[Runbooks](https://example.com/runbooks)") && policy.notification_channels[0] == "projects/bots/notificationChannels/1"])
    error_message = "Each alert names its channel and its runbooks."
  }
  assert {
    condition     = google_monitoring_alert_policy.threshold["oldest_unacked"].conditions[0].condition_threshold[0].threshold_value == 60 && google_monitoring_alert_policy.threshold["oldest_unacked"].conditions[0].condition_threshold[0].duration == "300s"
    error_message = "One threshold changes, the rest stays."
  }
}

run "alerts_can_be_left_to_others" {
  command = apply

  variables {
    alerts = { enabled = false }
  }

  assert {
    condition     = length(google_monitoring_alert_policy.threshold) + length(google_monitoring_alert_policy.not_pulling) == 0
    error_message = "No alerts were wanted."
  }
}
