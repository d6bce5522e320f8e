# One Chat app, one subscription, alerts without a channel. Pulls with the Google service account it makes.

variable "project_id" {
  type = string
}

provider "google" {
  project = var.project_id
}

module "bellhop" {
  source = "../.."

  project_id = var.project_id
  workload_identity = {
    namespace = "bellhop"
  }
}

output "topic" {
  value = module.bellhop.topic
}

output "helm_values" {
  value = module.bellhop.helm_values
}
