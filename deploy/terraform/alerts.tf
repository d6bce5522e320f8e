# What only Pub/Sub knows. What bellhop knows itself it exports at /metrics; those alerts come with the Helm chart.

locals {
  # With the project: a metrics scope may hold another subscription of the same name.
  of_project      = "resource.type = \"pubsub_subscription\" AND resource.labels.project_id = \"${var.project_id}\""
  of_subscription = "${local.of_project} AND resource.labels.subscription_id = \"${google_pubsub_subscription.events.name}\""
  of_dead_letters = "${local.of_project} AND resource.labels.subscription_id = \"${google_pubsub_subscription.dead_letter.name}\""
  in_promql       = "monitored_resource=\"pubsub_subscription\",project_id=\"${var.project_id}\",subscription_id=\"${google_pubsub_subscription.events.name}\""

  thresholds = {
    oldest_unacked = {
      name     = "events wait too long"
      severity = "CRITICAL"
      metric   = "oldest_unacked_message_age"
      of       = local.of_subscription
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_MAX"
      period   = 60
      above    = var.alerts.oldest_unacked.seconds
      for      = var.alerts.oldest_unacked.for_seconds
      text     = <<-EOT
        An event has waited for more than ${var.alerts.oldest_unacked.seconds} s. Either nothing takes events, or what takes them does not finish.

        1. `kubectl get pods`: do they run, are they ready? `/healthz/ready` names what is wrong.
        2. `bellhop_intake_paused` above 0: its reason says what holds it (store, breaker, brake).
        3. All slots busy (`bellhop_handlers_in_flight` = `bellhop_handler_slots`): the handler is slow, or there are too few replicas.
        4. A single event that is tried again and again ages too: look at `bellhop_events_finished_total` by outcome.
      EOT
    }
    dead_letters = {
      name     = "dead letters are waiting"
      severity = "WARNING"
      metric   = "num_undelivered_messages"
      of       = local.of_dead_letters
      aligner  = "ALIGN_MAX"
      reducer  = "REDUCE_MAX"
      period   = 60
      above    = 0
      for      = 0
      text     = <<-EOT
        Pub/Sub gave up on events after ${var.max_delivery_attempts} deliveries. They were not handled, and bellhop's quarantine does not know them.

        Look at them without taking them: `gcloud pubsub subscriptions pull ${google_pubsub_subscription.dead_letter.name} --limit=10` (no `--auto-ack`).
        Find out what gave them back so often (crashes, drains, an outage), then publish them to `${google_pubsub_topic.events.name}` again, data and attributes unchanged, and acknowledge them.
        What was handled already is recognised by its event id and not handled again.
      EOT
    }
    dead_lettered = {
      name     = "events are being dead-lettered"
      severity = "ERROR"
      metric   = "dead_letter_message_count"
      of       = local.of_subscription
      aligner  = "ALIGN_DELTA"
      reducer  = "REDUCE_SUM"
      period   = 600
      above    = 0
      for      = 0
      text     = <<-EOT
        Pub/Sub is taking events away from bellhop: each reached ${var.max_delivery_attempts} deliveries. bellhop's own limits should have settled them long before.

        Likely causes: pods that crash while they hold many deliveries, a database or handler outage of hours, or `retry.max_failures` above ${floor(var.max_delivery_attempts / 10)}.
      EOT
    }
    expired_deadlines = {
      name     = "ack deadlines expire"
      severity = "WARNING"
      metric   = "expired_ack_deadlines_count"
      of       = local.of_subscription
      aligner  = "ALIGN_DELTA"
      reducer  = "REDUCE_SUM"
      period   = 600
      above    = var.alerts.expired_deadlines.per_10_minutes
      for      = 600
      text     = <<-EOT
        Deliveries were neither answered nor extended in time. bellhop extends what it holds, so processes die without draining (out of memory, evicted nodes, SIGKILL within the grace period), or their network fails.

        `kubectl get events`, restart counts, and `bellhop_drain_aborted_total` tell which.
      EOT
    }
  }
}

resource "google_monitoring_alert_policy" "threshold" {
  for_each = var.alerts.enabled ? local.thresholds : {}

  project               = var.project_id
  display_name          = "bellhop ${var.subscription}: ${each.value.name}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = var.alerts.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = each.value.name

    condition_threshold {
      filter          = "${each.value.of} AND metric.type = \"pubsub.googleapis.com/subscription/${each.value.metric}\""
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.above
      duration        = "${each.value.for}s"

      aggregations {
        alignment_period     = "${each.value.period}s"
        per_series_aligner   = each.value.aligner
        cross_series_reducer = each.value.reducer
      }
    }
  }

  documentation {
    mime_type = "text/markdown"
    content = join("\n", compact([
      each.value.text,
      var.alerts.runbooks_url == "" ? "" : "[Runbooks](${var.alerts.runbooks_url})",
    ]))
  }

  depends_on = [google_project_service.this]
}

# In PromQL, because a threshold on open streams would see nothing at all when there are none.
resource "google_monitoring_alert_policy" "not_pulling" {
  count = var.alerts.enabled ? 1 : 0

  project               = var.project_id
  display_name          = "bellhop ${var.subscription}: nobody takes events"
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = var.alerts.notification_channels
  user_labels           = var.labels

  conditions {
    display_name = "events wait, and no stream is open"

    condition_prometheus_query_language {
      query = join(" ", [
        "max(pubsub_googleapis_com:subscription_num_undelivered_messages{${local.in_promql}}) > 0",
        "unless",
        "sum(pubsub_googleapis_com:subscription_open_streaming_pulls{${local.in_promql}}) > 0",
      ])
      duration            = "${var.alerts.not_pulling.for_seconds}s"
      evaluation_interval = "60s"
      # Before the first pull the metric has never been written.
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content = join("\n", compact([
      "Events wait on ${var.subscription}, and no process has a stream open: bellhop does not run, is scaled to 0 for good, or may not pull (`PERMISSION_DENIED` in its log: roles/pubsub.subscriber on the subscription).",
      var.alerts.runbooks_url == "" ? "" : "[Runbooks](${var.alerts.runbooks_url})",
    ]))
  }

  depends_on = [google_project_service.this]
}
