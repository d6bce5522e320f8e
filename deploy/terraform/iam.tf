# Chat, and whoever else may publish

resource "google_pubsub_topic_iam_member" "publisher" {
  for_each = toset(concat(local.chat_publishers[var.chat_app], tolist(var.extra_publishers)))

  project = var.project_id
  topic   = google_pubsub_topic.events.name
  role    = "roles/pubsub.publisher"
  member  = each.value
}

# bellhop: pull and acknowledge; viewer, because its readiness probe reads the subscription. On this subscription only.

resource "google_service_account" "worker" {
  count = var.service_account_id != "" ? 1 : 0

  project      = var.project_id
  account_id   = var.service_account_id
  display_name = "bellhop"
  description  = "Pulls Chat events from ${var.subscription}"
  depends_on   = [google_project_service.this]
}

resource "google_pubsub_subscription_iam_member" "worker" {
  for_each = toset(["roles/pubsub.subscriber", "roles/pubsub.viewer"])

  project      = var.project_id
  subscription = google_pubsub_subscription.events.name
  role         = each.value
  member       = local.worker
}

resource "google_service_account_iam_member" "workload_identity" {
  count = var.service_account_id != "" && var.workload_identity != null ? 1 : 0

  service_account_id = google_service_account.worker[0].name
  role               = "roles/iam.workloadIdentityUser"
  member             = local.kubernetes_user
}

# Pub/Sub itself moves dead letters: it publishes to their topic and acknowledges on the subscription. Without both grants
# nothing is ever moved, and delivery attempts just run on.

resource "google_pubsub_topic_iam_member" "dead_letter_publisher" {
  project = var.project_id
  topic   = google_pubsub_topic.dead_letter.name
  role    = "roles/pubsub.publisher"
  member  = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "dead_letter_subscriber" {
  project      = var.project_id
  subscription = google_pubsub_subscription.events.name
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}

# Readers

resource "google_pubsub_subscription_iam_member" "dead_letter_reader" {
  for_each = var.dead_letter_readers

  project      = var.project_id
  subscription = google_pubsub_subscription.dead_letter.name
  role         = "roles/pubsub.subscriber"
  member       = each.value
}

resource "google_project_iam_member" "metric_reader" {
  for_each = var.metric_readers

  project = var.project_id
  role    = "roles/monitoring.viewer"
  member  = each.value
}
