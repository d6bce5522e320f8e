variable "project_id" {
  description = "Project that holds topic, subscription and alerts. For a Chat app: the project in which the app is configured."
  type        = string
}

variable "project_number" {
  description = "Number of that project. Empty: looked up, which needs the Cloud Resource Manager API."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[0-9]*$", var.project_number))
    error_message = "project_number is the number, not the id, of the project."
  }
}

variable "enable_apis" {
  description = "Enable the Pub/Sub, Chat, IAM, IAM Credentials and Monitoring APIs. They stay on when the module is destroyed."
  type        = bool
  default     = true
}

variable "labels" {
  description = "Labels of topics, subscriptions and alerts."
  type        = map(string)
  default     = {}
}

# Names

variable "topic" {
  description = "Id of the topic that Chat publishes to."
  type        = string
  default     = "chat-events"

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", var.topic)) && !startswith(var.topic, "goog")
    error_message = "topic must be a short id: a letter, then 2 to 254 of A-Z a-z 0-9 . _ ~ + % -, not beginning with goog."
  }
}

variable "subscription" {
  description = "Id of the subscription that bellhop pulls from."
  type        = string
  default     = "chat-events-bellhop"

  # Pub/Sub allows more, but autoscalers select the metric by a label whose value is this id.
  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$", var.subscription)) && !startswith(var.subscription, "goog")
    error_message = "subscription must be usable as a Kubernetes label value: 3 to 63 of A-Z a-z 0-9 . _ -, beginning with a letter (not with goog), ending with a letter or digit."
  }
}

variable "dead_letter" {
  description = "Id of the dead-letter topic and of the subscription that keeps what lands there. Empty: the subscription's id and -dead-letter."
  type        = string
  default     = ""

  validation {
    condition     = var.dead_letter == "" || can(regex("^[A-Za-z][A-Za-z0-9._~+%-]{2,254}$", var.dead_letter))
    error_message = "dead_letter must be a short id, or empty."
  }
}

# Who publishes, who pulls, who reads

variable "chat_app" {
  description = "Kind of the Chat app, which decides whose publishing is allowed: interaction (a classic app), addon (a Google Workspace add-on), both, or none."
  type        = string
  default     = "interaction"

  validation {
    condition     = contains(["interaction", "addon", "both", "none"], var.chat_app)
    error_message = "chat_app must be interaction, addon, both or none."
  }
}

variable "extra_publishers" {
  description = "More principals that may publish to the topic. Each of them can write events in anybody's name: keep it short."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for member in var.extra_publishers : !contains(["allUsers", "allAuthenticatedUsers"], member)])
    error_message = "extra_publishers must not let everybody publish: events carry no proof of who sent them."
  }
}

variable "service_account_id" {
  description = "Id of the Google service account that bellhop acts as. Empty: none is made, and the Kubernetes account itself gets the roles (needs workload_identity)."
  type        = string
  default     = "bellhop"

  validation {
    condition     = var.service_account_id == "" || can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.service_account_id))
    error_message = "service_account_id must be 6 to 30 of a-z 0-9 -, beginning with a letter."
  }
}

variable "workload_identity" {
  description = "The Kubernetes account that bellhop runs as. pool_project_id and pool_project_number: the cluster's project, where it is another one. null: not on GKE."
  type = object({
    namespace           = string
    service_account     = optional(string, "bellhop")
    pool_project_id     = optional(string)
    pool_project_number = optional(string)
  })
  default = null
}

variable "metric_readers" {
  description = "Principals that may read Cloud Monitoring: the account of KEDA's operator, or of the Stackdriver metrics adapter."
  type        = set(string)
  default     = []
}

variable "dead_letter_readers" {
  description = "Principals (people, mostly) that may pull from the dead-letter subscription. Payloads hold what users wrote."
  type        = set(string)
  default     = []
}

# Delivery

variable "ack_deadline_seconds" {
  description = "Ack deadline of the subscription. bellhop extends it while it holds a delivery; it matters for what a dead process held."
  type        = number
  default     = 60

  validation {
    condition     = var.ack_deadline_seconds >= 10 && var.ack_deadline_seconds <= 600
    error_message = "ack_deadline_seconds must be 10 to 600."
  }
}

variable "message_retention_seconds" {
  description = "How long the subscription keeps a message nobody acknowledged."
  type        = number
  default     = 604800

  validation {
    condition     = var.message_retention_seconds >= 600 && var.message_retention_seconds <= 2678400
    error_message = "message_retention_seconds must be 600 (10 minutes) to 2678400 (31 days)."
  }
}

variable "topic_message_retention_seconds" {
  description = "How long the topic itself keeps messages, for a seek into the past. null: not at all."
  type        = number
  default     = null

  validation {
    condition     = var.topic_message_retention_seconds == null ? true : var.topic_message_retention_seconds >= 600 && var.topic_message_retention_seconds <= 2678400
    error_message = "topic_message_retention_seconds must be 600 (10 minutes) to 2678400 (31 days), or null."
  }
}

variable "retain_acked_messages" {
  description = "Keep acknowledged messages too, for a seek into the past."
  type        = bool
  default     = false
}

variable "claim_retention_seconds" {
  description = "bellhop's claims.retention. A message that is delivered after its claim was forgotten is handled again, so this must outlast the messages by 3 days."
  type        = number
  default     = 864000
}

variable "retry_min_backoff_seconds" {
  description = "Least delay before Pub/Sub delivers a message again that bellhop gave back."
  type        = number
  default     = 10

  validation {
    condition     = var.retry_min_backoff_seconds >= 1 && var.retry_min_backoff_seconds <= 600
    error_message = "retry_min_backoff_seconds must be 1 to 600: without a delay, a message that is given back comes back at once, and each return costs a delivery attempt."
  }
}

variable "retry_max_backoff_seconds" {
  description = "Longest such delay."
  type        = number
  default     = 600

  validation {
    condition     = var.retry_max_backoff_seconds >= 1 && var.retry_max_backoff_seconds <= 600
    error_message = "retry_max_backoff_seconds must be 1 to 600."
  }
}

variable "max_delivery_attempts" {
  description = "Deliveries after which Pub/Sub moves a message to the dead-letter topic. See pubsub.tf for why not fewer than 100."
  type        = number
  default     = 100

  validation {
    condition     = var.max_delivery_attempts >= 5 && var.max_delivery_attempts <= 100
    error_message = "max_delivery_attempts must be 5 to 100, as Pub/Sub wants it."
  }
}

variable "acknowledge_early_dead_letter" {
  description = "Allow max_delivery_attempts below 100."
  type        = bool
  default     = false
}

variable "exactly_once_delivery" {
  description = "Exactly-once delivery of the subscription: fewer copies, slower acks, within one region. It complements claims and does not replace them."
  type        = bool
  default     = false
}

variable "allowed_persistence_regions" {
  description = "Regions in which the topic's messages may be stored. Empty: as the organisation has it."
  type        = list(string)
  default     = []
}

# Alerts

variable "alerts" {
  description = "Cloud Monitoring alerts on what only Pub/Sub knows. notification_channels: full names, projects/…/notificationChannels/…."
  type = object({
    enabled               = optional(bool, true)
    notification_channels = optional(list(string), [])
    runbooks_url          = optional(string, "")
    oldest_unacked        = optional(object({ seconds = optional(number, 300), for_seconds = optional(number, 300) }), {})
    not_pulling           = optional(object({ for_seconds = optional(number, 600) }), {})
    expired_deadlines     = optional(object({ per_10_minutes = optional(number, 20) }), {})
  })
  default = {}

  validation {
    condition     = alltrue([for seconds in [var.alerts.oldest_unacked.for_seconds, var.alerts.not_pulling.for_seconds] : seconds >= 0 && seconds % 60 == 0])
    error_message = "Alerts are evaluated each minute: for_seconds must be a multiple of 60."
  }
}
