# iamcredentials: a Kubernetes account gets the tokens of its Google service account there.
resource "google_project_service" "this" {
  for_each = var.enable_apis ? toset([
    "chat.googleapis.com", "iam.googleapis.com", "iamcredentials.googleapis.com", "monitoring.googleapis.com",
    "pubsub.googleapis.com",
  ]) : toset([])

  project            = var.project_id
  service            = each.value
  disable_on_destroy = false
}

resource "google_pubsub_topic" "events" {
  project                    = var.project_id
  name                       = var.topic
  labels                     = var.labels
  message_retention_duration = var.topic_message_retention_seconds == null ? null : "${var.topic_message_retention_seconds}s"

  dynamic "message_storage_policy" {
    for_each = length(var.allowed_persistence_regions) > 0 ? [1] : []
    content {
      allowed_persistence_regions = var.allowed_persistence_regions
    }
  }

  depends_on = [google_project_service.this]
}

resource "google_pubsub_subscription" "events" {
  project                      = var.project_id
  name                         = var.subscription
  topic                        = google_pubsub_topic.events.id
  labels                       = var.labels
  ack_deadline_seconds         = var.ack_deadline_seconds
  message_retention_duration   = "${var.message_retention_seconds}s"
  retain_acked_messages        = var.retain_acked_messages
  enable_exactly_once_delivery = var.exactly_once_delivery

  # Never: by default Pub/Sub deletes a subscription that nobody pulled from for 31 days, and its messages with it.
  expiration_policy {
    ttl = ""
  }

  # bellhop has no other way to say "not now": what it gives back must not return at once.
  retry_policy {
    minimum_backoff = "${var.retry_min_backoff_seconds}s"
    maximum_backoff = "${var.retry_max_backoff_seconds}s"
  }

  # A net, not a policy: bellhop counts failures itself, and quarantines an event after retry.max_failures (8) with payload,
  # reason and a way back. Pub/Sub counts differently. Every drain, every crash, every outage of handler or database and every
  # copy that comes early costs a delivery attempt without anything having failed; with the usual 5, Pub/Sub would take events
  # away before bellhop has decided, and an event in the dead-letter topic was never handled and shows in no quarantine.
  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letter.id
    max_delivery_attempts = var.max_delivery_attempts
  }

  lifecycle {
    precondition {
      condition     = var.claim_retention_seconds >= local.message_retention + 3 * local.day
      error_message = "claim_retention_seconds (${var.claim_retention_seconds}) must be at least the longest message retention (${local.message_retention}) + 3 days (${3 * local.day}): a message that outlives its claim would be handled again."
    }
    precondition {
      condition     = var.retry_min_backoff_seconds <= var.retry_max_backoff_seconds
      error_message = "retry_min_backoff_seconds (${var.retry_min_backoff_seconds}) must not be above retry_max_backoff_seconds (${var.retry_max_backoff_seconds})."
    }
    precondition {
      condition     = var.max_delivery_attempts == 100 || var.acknowledge_early_dead_letter
      error_message = "max_delivery_attempts below 100 lets Pub/Sub take events away before bellhop has decided about them. Keep 100, or set acknowledge_early_dead_letter."
    }
    precondition {
      condition     = local.dead_letter != var.subscription && local.dead_letter != var.topic
      error_message = "dead_letter must differ from topic and subscription."
    }
    precondition {
      condition     = var.service_account_id != "" || var.workload_identity != null
      error_message = "Without service_account_id, workload_identity must say who pulls."
    }
  }
}

# Dead letters are only kept where a subscription waits for them.
resource "google_pubsub_topic" "dead_letter" {
  project    = var.project_id
  name       = local.dead_letter
  labels     = var.labels
  depends_on = [google_project_service.this]
}

resource "google_pubsub_subscription" "dead_letter" {
  project                    = var.project_id
  name                       = local.dead_letter
  topic                      = google_pubsub_topic.dead_letter.id
  labels                     = var.labels
  ack_deadline_seconds       = 60
  message_retention_duration = "${31 * local.day}s"

  expiration_policy {
    ttl = ""
  }
}

# Exactly-once holds within one region: replicas that pull in two regions get copies all the same.
check "exactly_once_is_regional" {
  assert {
    condition     = !var.exactly_once_delivery || length(var.allowed_persistence_regions) == 1
    error_message = "Exactly-once delivery holds within one region only. Pin the topic with allowed_persistence_regions, and pull from there."
  }
}
