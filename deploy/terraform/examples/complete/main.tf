# What a team in production may want: a cluster in another project, the Kubernetes account itself as the principal, longer
# retention with a topic that can be sought back, KEDA, alerts to a channel.

variable "project_id" {
  type = string
}

variable "cluster_project" {
  type = object({ id = string, number = string })
}

variable "notification_channels" {
  type    = list(string)
  default = []
}

provider "google" {
  project = var.project_id
}

module "bellhop" {
  source = "../.."

  project_id  = var.project_id
  enable_apis = false
  labels      = { app = "restart-bot", team = "platform" }

  topic        = "restart-bot"
  subscription = "restart-bot-bellhop"
  dead_letter  = "restart-bot-undeliverable"

  chat_app         = "both"
  extra_publishers = ["serviceAccount:replayer@${var.project_id}.iam.gserviceaccount.com"]

  # No Google service account: IAM knows Kubernetes accounts by name.
  service_account_id = ""
  workload_identity = {
    namespace           = "chat"
    service_account     = "restart-bot"
    pool_project_id     = var.cluster_project.id
    pool_project_number = var.cluster_project.number
  }

  metric_readers = [
    "principal://iam.googleapis.com/projects/${var.cluster_project.number}/locations/global/workloadIdentityPools/${var.cluster_project.id}.svc.id.goog/subject/ns/keda/sa/keda-operator",
  ]
  dead_letter_readers = ["group:platform-oncall@example.com"]

  message_retention_seconds       = 7 * 86400
  topic_message_retention_seconds = 14 * 86400
  claim_retention_seconds         = 17 * 86400

  exactly_once_delivery       = true
  allowed_persistence_regions = ["europe-west1"]

  alerts = {
    notification_channels = var.notification_channels
    runbooks_url          = "https://example.com/runbooks/bellhop"
    oldest_unacked        = { seconds = 120 }
  }
}

output "topic" {
  value = module.bellhop.topic
}

output "helm_values" {
  value = module.bellhop.helm_values
}
