# Who may do what.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "123456789" }
  }
  mock_resource "google_service_account" {
    defaults = {
      email = "bellhop@bots.iam.gserviceaccount.com"
      name  = "projects/bots/serviceAccounts/bellhop@bots.iam.gserviceaccount.com"
    }
  }
}

variables {
  project_id        = "bots"
  workload_identity = { namespace = "chat", service_account = "restart-bot" }
}

run "a_classic_app_publishes_and_nobody_else" {
  command = apply

  assert {
    condition     = [for grant in google_pubsub_topic_iam_member.publisher : "${grant.role} ${grant.member}"] == ["roles/pubsub.publisher serviceAccount:chat-api-push@system.gserviceaccount.com"]
    error_message = "Only Chat's push account publishes."
  }
}

run "an_add_on_publishes_as_the_account_of_its_project" {
  command = apply

  variables {
    chat_app = "addon"
  }

  assert {
    condition     = [for grant in google_pubsub_topic_iam_member.publisher : grant.member] == ["serviceAccount:service-123456789@gcp-sa-gsuiteaddons.iam.gserviceaccount.com"]
    error_message = "An add-on publishes as its project's add-on account."
  }
}

run "both_kinds_and_a_replayer" {
  command = apply

  variables {
    chat_app         = "both"
    extra_publishers = ["user:operator@example.com"]
  }

  assert {
    condition     = length(google_pubsub_topic_iam_member.publisher) == 3
    error_message = "Three publishers."
  }
}

run "bellhop_reads_its_own_subscription_only" {
  command = apply

  assert {
    condition = toset([for grant in google_pubsub_subscription_iam_member.worker : "${grant.subscription} ${grant.role} ${grant.member}"]) == toset([
      "chat-events-bellhop roles/pubsub.subscriber serviceAccount:bellhop@bots.iam.gserviceaccount.com",
      "chat-events-bellhop roles/pubsub.viewer serviceAccount:bellhop@bots.iam.gserviceaccount.com",
    ])
    error_message = "Subscriber and viewer, on the one subscription."
  }
  assert {
    condition     = length(google_project_iam_member.metric_reader) == 0 && length(google_pubsub_subscription_iam_member.dead_letter_reader) == 0
    error_message = "Nobody else gets anything unasked."
  }
}

run "the_kubernetes_account_acts_as_the_google_one" {
  command = apply

  assert {
    condition     = contains(keys(google_project_service.this), "iamcredentials.googleapis.com")
    error_message = "Tokens of a Google service account come from the IAM Credentials API."
  }
  assert {
    condition     = google_service_account_iam_member.workload_identity[0].role == "roles/iam.workloadIdentityUser" && google_service_account_iam_member.workload_identity[0].member == "serviceAccount:bots.svc.id.goog[chat/restart-bot]"
    error_message = "Workload identity names namespace and account."
  }
}

run "the_kubernetes_account_itself_pulls" {
  command = apply

  variables {
    service_account_id = ""
    workload_identity = {
      namespace           = "chat"
      service_account     = "restart-bot"
      pool_project_id     = "clusters"
      pool_project_number = "987"
    }
  }

  assert {
    condition     = output.worker_principal == "principal://iam.googleapis.com/projects/987/locations/global/workloadIdentityPools/clusters.svc.id.goog/subject/ns/chat/sa/restart-bot"
    error_message = "IAM names a Kubernetes account by the cluster's project."
  }
  assert {
    condition     = output.service_account_email == null && length(google_service_account_iam_member.workload_identity) == 0 && yamldecode(output.helm_values).workloadIdentity.gcpServiceAccount == ""
    error_message = "No Google service account is made or told to the chart."
  }
}

run "pubsub_can_move_dead_letters" {
  command = apply

  assert {
    condition     = google_pubsub_topic_iam_member.dead_letter_publisher.member == "serviceAccount:service-123456789@gcp-sa-pubsub.iam.gserviceaccount.com" && google_pubsub_topic_iam_member.dead_letter_publisher.topic == "chat-events-bellhop-dead-letter" && google_pubsub_topic_iam_member.dead_letter_publisher.role == "roles/pubsub.publisher"
    error_message = "Pub/Sub publishes to the dead-letter topic."
  }
  assert {
    condition     = google_pubsub_subscription_iam_member.dead_letter_subscriber.member == google_pubsub_topic_iam_member.dead_letter_publisher.member && google_pubsub_subscription_iam_member.dead_letter_subscriber.subscription == "chat-events-bellhop" && google_pubsub_subscription_iam_member.dead_letter_subscriber.role == "roles/pubsub.subscriber"
    error_message = "Pub/Sub acknowledges on the subscription it takes them from."
  }
}

run "a_given_project_number_is_not_looked_up" {
  command = apply

  variables {
    project_number = "42"
  }

  assert {
    condition     = length(data.google_project.this) == 0 && google_pubsub_topic_iam_member.dead_letter_publisher.member == "serviceAccount:service-42@gcp-sa-pubsub.iam.gserviceaccount.com"
    error_message = "The number given counts."
  }
}
