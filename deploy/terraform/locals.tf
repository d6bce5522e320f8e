locals {
  day            = 86400
  project_number = var.project_number != "" ? var.project_number : one(data.google_project.this[*].number)
  dead_letter    = var.dead_letter != "" ? var.dead_letter : "${var.subscription}-dead-letter"

  # A seek can bring back what the topic kept, so the longer of both counts.
  message_retention = max(var.message_retention_seconds, coalesce(var.topic_message_retention_seconds, 0))

  # The only identity that Pub/Sub itself acts as in this project.
  pubsub_agent = "serviceAccount:service-${local.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"

  # The add-on account is made by Google when the app is configured as an add-on; the Chat API's configuration page
  # shows it as "Service account email".
  chat_publishers = {
    interaction = ["serviceAccount:chat-api-push@system.gserviceaccount.com"]
    addon       = ["serviceAccount:service-${local.project_number}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com"]
    both = [
      "serviceAccount:chat-api-push@system.gserviceaccount.com",
      "serviceAccount:service-${local.project_number}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com",
    ]
    none = []
  }

  pool_project_id     = try(coalesce(var.workload_identity.pool_project_id), var.project_id)
  pool_project_number = try(coalesce(var.workload_identity.pool_project_number), local.project_number)

  # As the IAM bindings of a Google service account, and as those of resources, name a Kubernetes account.
  kubernetes_user = var.workload_identity == null ? null : format(
    "serviceAccount:%s.svc.id.goog[%s/%s]",
    local.pool_project_id, var.workload_identity.namespace, var.workload_identity.service_account,
  )
  kubernetes_principal = var.workload_identity == null ? null : format(
    "principal://iam.googleapis.com/projects/%s/locations/global/workloadIdentityPools/%s.svc.id.goog/subject/ns/%s/sa/%s",
    local.pool_project_number, local.pool_project_id, var.workload_identity.namespace, var.workload_identity.service_account,
  )

  worker = var.service_account_id != "" ? "serviceAccount:${google_service_account.worker[0].email}" : local.kubernetes_principal
}

data "google_project" "this" {
  count      = var.project_number == "" ? 1 : 0
  project_id = var.project_id
}
