//! The messages in protobuf's JSON form. A field that is not listed here is refused by its name.

use std::collections::HashMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use tonic::Status;

use crate::pubsub_server::proto::{self, PubsubMessage, ReceivedMessage};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct TopicJson {
    name: String,
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    labels: HashMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_retention_duration: Option<Span>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SubscriptionJson {
    name: String,
    topic: String,
    ack_deadline_seconds: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_retention_duration: Option<Span>,
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    labels: HashMap<String, String>,
    enable_message_ordering: bool,
    enable_exactly_once_delivery: bool,
    retain_acked_messages: bool,
    filter: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiration_policy: Option<ExpirationJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_policy: Option<DeadLetterJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<RetryJson>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ExpirationJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<Span>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeadLetterJson {
    dead_letter_topic: String,
    max_delivery_attempts: i32,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RetryJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_backoff: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    maximum_backoff: Option<Span>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListJson {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) topics: Vec<TopicJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) subscriptions: Vec<SubscriptionJson>,
    pub(super) next_page_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Update {
    pub(super) topic: Option<TopicJson>,
    pub(super) subscription: Option<SubscriptionJson>,
    update_mask: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckIds {
    pub(super) ack_ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Deadline {
    pub(super) ack_ids: Vec<String>,
    #[serde(default)]
    pub(super) ack_deadline_seconds: i32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PullJson {
    pub(super) max_messages: i32,
    pub(super) return_immediately: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SeekJson {
    pub(super) time: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessagesJson {
    messages: Vec<MessageJson>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MessageJson {
    data: String,
    attributes: HashMap<String, String>,
    message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    publish_time: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    ordering_key: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReceivedJson {
    ack_id: String,
    message: MessageJson,
    delivery_attempt: i32,
}

impl TopicJson {
    pub(super) fn into_wire(self, name: String) -> Result<proto::Topic, Status> {
        refuse(&self.other)?;
        Ok(proto::Topic {
            name,
            labels: self.labels,
            message_retention_duration: self.message_retention_duration.map(|span| span.0),
            ..proto::Topic::default()
        })
    }
}

impl From<proto::Topic> for TopicJson {
    fn from(topic: proto::Topic) -> Self {
        Self {
            name: topic.name,
            labels: topic.labels,
            message_retention_duration: topic.message_retention_duration.map(Span),
            other: Map::new(),
        }
    }
}

impl SubscriptionJson {
    pub(super) fn into_wire(self, name: String) -> Result<proto::Subscription, Status> {
        refuse(&self.other)?;
        Ok(proto::Subscription {
            name,
            topic: self.topic,
            ack_deadline_seconds: self.ack_deadline_seconds,
            message_retention_duration: self.message_retention_duration.map(|span| span.0),
            labels: self.labels,
            enable_message_ordering: self.enable_message_ordering,
            enable_exactly_once_delivery: self.enable_exactly_once_delivery,
            retain_acked_messages: self.retain_acked_messages,
            filter: self.filter,
            expiration_policy: self
                .expiration_policy
                .map(|policy| proto::ExpirationPolicy { ttl: policy.ttl.map(|span| span.0) }),
            dead_letter_policy: self.dead_letter_policy.map(|policy| proto::DeadLetterPolicy {
                dead_letter_topic: policy.dead_letter_topic,
                max_delivery_attempts: policy.max_delivery_attempts,
            }),
            retry_policy: self.retry_policy.map(|policy| proto::RetryPolicy {
                minimum_backoff: policy.minimum_backoff.map(|span| span.0),
                maximum_backoff: policy.maximum_backoff.map(|span| span.0),
            }),
            ..proto::Subscription::default()
        })
    }
}

impl From<proto::Subscription> for SubscriptionJson {
    fn from(it: proto::Subscription) -> Self {
        Self {
            name: it.name,
            topic: it.topic,
            ack_deadline_seconds: it.ack_deadline_seconds,
            message_retention_duration: it.message_retention_duration.map(Span),
            labels: it.labels,
            enable_message_ordering: it.enable_message_ordering,
            enable_exactly_once_delivery: it.enable_exactly_once_delivery,
            retain_acked_messages: it.retain_acked_messages,
            filter: it.filter,
            expiration_policy: it.expiration_policy.map(|policy| ExpirationJson { ttl: policy.ttl.map(Span) }),
            dead_letter_policy: it.dead_letter_policy.map(|policy| DeadLetterJson {
                dead_letter_topic: policy.dead_letter_topic,
                max_delivery_attempts: policy.max_delivery_attempts,
            }),
            retry_policy: it.retry_policy.map(|policy| RetryJson {
                minimum_backoff: policy.minimum_backoff.map(Span),
                maximum_backoff: policy.maximum_backoff.map(Span),
            }),
            other: Map::from_iter([("state".to_owned(), "ACTIVE".into())]),
        }
    }
}

impl Update {
    /// The mask in the names of protobuf, however it came.
    pub(super) fn mask(&self) -> prost_types::FieldMask {
        let paths = self.update_mask.split(',').map(str::trim).filter(|path| !path.is_empty()).map(snake_case);
        prost_types::FieldMask { paths: paths.collect() }
    }
}

impl MessagesJson {
    pub(super) fn into_wire(self) -> Result<Vec<PubsubMessage>, Status> {
        self.messages.into_iter().map(MessageJson::into_wire).collect()
    }
}

impl MessageJson {
    fn into_wire(self) -> Result<PubsubMessage, Status> {
        let data = STANDARD.decode(&self.data).map_err(|_| Status::invalid_argument("data: not base64"))?;
        let Self { attributes, ordering_key, .. } = self;
        Ok(PubsubMessage { data, attributes, ordering_key, ..PubsubMessage::default() })
    }
}

impl From<ReceivedMessage> for ReceivedJson {
    fn from(it: ReceivedMessage) -> Self {
        let message = it.message.unwrap_or_default();
        let message = MessageJson {
            data: STANDARD.encode(&message.data),
            attributes: message.attributes,
            message_id: message.message_id,
            publish_time: message.publish_time.as_ref().map(crate::pubsub_server::subscription::moment),
            ordering_key: message.ordering_key,
        };
        Self { ack_id: it.ack_id, message, delivery_attempt: it.delivery_attempt }
    }
}

pub(super) fn timestamp(at: DateTime<Utc>) -> prost_types::Timestamp {
    crate::pubsub_server::broker::timestamp(at)
}

/// A duration in protobuf's JSON form: `"1.5s"`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span(prost_types::Duration);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || de::Error::invalid_value(de::Unexpected::Str(&text), &"a duration like \"10s\"");
        text.parse().map(Self).map_err(|_| wrong())
    }
}

/// What is not known may be there only when it is empty.
fn refuse(other: &Map<String, Value>) -> Result<(), Status> {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    };
    match other.iter().find(|(field, value)| !empty(value) && *field != "state") {
        Some((field, _)) => Err(Status::invalid_argument(format!("{field}: this server does not have it"))),
        None => Ok(()),
    }
}

fn snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |mut snake, letter| {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_subscription_survives_the_way_there_and_back() {
        let written = json!({
            "name": "projects/p/subscriptions/s",
            "topic": "projects/p/topics/t",
            "ackDeadlineSeconds": 20,
            "messageRetentionDuration": "600s",
            "labels": { "a": "b" },
            "enableMessageOrdering": true,
            "enableExactlyOnceDelivery": true,
            "retainAckedMessages": false,
            "filter": "",
            "expirationPolicy": { "ttl": "86400s" },
            "deadLetterPolicy": { "deadLetterTopic": "projects/p/topics/d", "maxDeliveryAttempts": 7 },
            "retryPolicy": { "minimumBackoff": "1.5s", "maximumBackoff": "60s" },
            "state": "ACTIVE",
        });

        let wire =
            from_value::<SubscriptionJson>(written.clone()).unwrap().into_wire("projects/p/subscriptions/s".into());

        let again = to_value(SubscriptionJson::from(wire.unwrap())).unwrap();
        assert_eq!(again["retryPolicy"]["minimumBackoff"].as_str().unwrap().trim_end_matches('s').parse(), Ok(1.5));
        let same = |field: &str| again[field] == written[field];
        assert!(
            written.as_object().unwrap().keys().filter(|field| *field != "retryPolicy").all(|field| same(field)),
            "{again}"
        );
    }

    #[test]
    fn an_unknown_field_is_refused_by_its_name_unless_it_is_empty() {
        let read = |value| from_value::<SubscriptionJson>(value).unwrap().into_wire("s".into());

        assert!(read(json!({ "pushConfig": {}, "detached": false })).is_ok());
        assert!(
            read(json!({ "bigqueryConfig": { "table": "t" } })).unwrap_err().message().starts_with("bigqueryConfig: ")
        );
    }

    #[test]
    fn a_mask_may_come_in_either_spelling() {
        let update = Update { update_mask: "ackDeadlineSeconds,retry_policy".into(), ..Update::default() };

        assert_eq!(update.mask().paths, ["ack_deadline_seconds", "retry_policy"]);
    }
}
