output "topic" {
  description = "Full name of the topic, as the Chat API's configuration page asks for it."
  value       = google_pubsub_topic.events.id
}

output "subscription" {
  description = "Id of the subscription."
  value       = google_pubsub_subscription.events.name
}

output "dead_letter_subscription" {
  description = "Id of the subscription that keeps dead letters."
  value       = google_pubsub_subscription.dead_letter.name
}

output "service_account_email" {
  description = "Google service account that bellhop acts as; null when the Kubernetes account has the roles itself."
  value       = one(google_service_account.worker[*].email)
}

output "worker_principal" {
  description = "Who may pull, as IAM names it."
  value       = local.worker
}

output "message_retention_seconds" {
  description = "The larger message retention of subscription and topic."
  value       = local.message_retention
}

output "alert_policies" {
  description = "Names of the alert policies."
  value = merge(
    { for key, policy in google_monitoring_alert_policy.threshold : key => policy.name },
    { for policy in google_monitoring_alert_policy.not_pulling : "not_pulling" => policy.name },
  )
}

output "helm_values" {
  description = "Values for the Helm chart, as YAML: terraform output -raw helm_values > google-values.yaml"
  value = yamlencode({
    config = {
      pubsub = {
        project      = var.project_id
        subscription = google_pubsub_subscription.events.name
      }
      claims = { retention = "${var.claim_retention_seconds}s" }
    }
    pubsub = { messageRetention = "${local.message_retention}s" }
    serviceAccount = {
      name = var.workload_identity == null ? "" : var.workload_identity.service_account
    }
    workloadIdentity = {
      gcpServiceAccount = var.workload_identity == null ? "" : try(coalesce(one(google_service_account.worker[*].email)), "")
    }
  })
}
