//! What a request must look like; every refusal names the field.

use std::time::Duration;

use tonic::Status;

use super::{
    names::{self, invalid},
    proto::{PubsubMessage, Subscription, Topic},
    subscription::{Backoff, DeadLetter, Settings},
};

/// Most messages in one Publish.
const MAX_MESSAGES: usize = 1_000;
/// Most bytes of data and attributes in one Publish.
pub(super) const MAX_REQUEST_BYTES: usize = 10_000_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Checks the messages of a Publish.
pub(super) fn messages(messages: &[PubsubMessage]) -> Result<(), Status> {
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        return Err(invalid("messages", "1 to 1000 are allowed in a request"));
    }
    let mut total = 0_usize;
    for message in messages {
        total += message.data.len() + message.ordering_key.len();
        if message.data.is_empty() && message.attributes.is_empty() {
            return Err(invalid("messages", "each must have data or attributes"));
        }
        if message.ordering_key.len() > 1024 {
            return Err(invalid("ordering_key", "at most 1024 bytes are allowed"));
        }
        if message.attributes.len() > 100 {
            return Err(invalid("attributes", "at most 100 are allowed"));
        }
        for (key, value) in &message.attributes {
            total += key.len() + value.len();
            if key.is_empty() || key.len() > 256 || value.len() > 1024 {
                return Err(invalid("attributes", "keys must have 1 to 256 bytes, values at most 1024"));
            }
        }
    }
    if total > MAX_REQUEST_BYTES {
        return Err(invalid("messages", "at most 10 MB are allowed in a request"));
    }
    Ok(())
}

/// Checks a topic to be created or updated: what this server can not do is refused, not ignored.
pub(super) fn topic(topic: &Topic) -> Result<(), Status> {
    names::topic("name", &topic.name)?;
    if topic.schema_settings.is_some() {
        return Err(invalid("schema_settings", "this server has no schemas"));
    }
    if topic.ingestion_data_source_settings.is_some() {
        return Err(invalid("ingestion_data_source_settings", "this server ingests nothing"));
    }
    if !topic.message_transforms.is_empty() {
        return Err(invalid("message_transforms", "this server transforms nothing"));
    }
    Ok(())
}

/// Checks a subscription, fills in the defaults a client reads back, and reads the settings.
pub(super) fn subscription(wanted: &mut Subscription) -> Result<Settings, Status> {
    names::subscription("name", &wanted.name)?;
    if wanted.topic != names::DELETED_TOPIC {
        names::topic("topic", &wanted.topic)?;
    }
    refuse_unsupported(wanted)?;
    if wanted.ack_deadline_seconds == 0 {
        wanted.ack_deadline_seconds = 10;
    }
    let ack_deadline = ack_deadline("ack_deadline_seconds", wanted.ack_deadline_seconds)?;
    let retention = wanted.message_retention_duration.get_or_insert(seconds(7 * DAY.as_secs()));
    let retention = duration("message_retention_duration", retention)?;
    if !(Duration::from_secs(600)..=31 * DAY).contains(&retention) {
        return Err(invalid("message_retention_duration", "10 minutes to 31 days are allowed"));
    }
    Ok(Settings {
        ack_deadline,
        retry: retry(wanted)?,
        dead_letter: dead_letter(wanted)?,
        exactly_once: wanted.enable_exactly_once_delivery,
        ordered: wanted.enable_message_ordering,
        retention,
    })
}

/// An ack deadline of a subscription or a stream.
pub(super) fn ack_deadline(field: &str, seconds: i32) -> Result<Duration, Status> {
    match u64::try_from(seconds) {
        Ok(seconds @ 10..=600) => Ok(Duration::from_secs(seconds)),
        _ => Err(invalid(field, "10 to 600 are allowed")),
    }
}

/// The new deadline of a lease; zero is a nack.
pub(super) fn extension(field: &str, seconds: i32) -> Result<Duration, Status> {
    match u64::try_from(seconds) {
        Ok(seconds @ 0..=600) => Ok(Duration::from_secs(seconds)),
        _ => Err(invalid(field, "0 to 600 are allowed")),
    }
}

fn refuse_unsupported(wanted: &Subscription) -> Result<(), Status> {
    let push = wanted.push_config.as_ref().is_some_and(|push| !push.push_endpoint.is_empty());
    let refused = [
        (push, "push_config", "this server does not push"),
        (wanted.bigquery_config.is_some(), "bigquery_config", "this server does not export"),
        (wanted.cloud_storage_config.is_some(), "cloud_storage_config", "this server does not export"),
        (wanted.bigtable_config.is_some(), "bigtable_config", "this server does not export"),
        (!wanted.filter.is_empty(), "filter", "this server does not filter"),
        (!wanted.message_transforms.is_empty(), "message_transforms", "this server transforms nothing"),
        (wanted.retain_acked_messages, "retain_acked_messages", "this server forgets what is acknowledged"),
        (wanted.detached, "detached", "can not be set"),
    ];
    match refused.into_iter().find(|(set, ..)| *set) {
        Some((_, field, why)) => Err(invalid(field, why)),
        None => Ok(()),
    }
}

fn retry(wanted: &mut Subscription) -> Result<Option<Backoff>, Status> {
    let Some(policy) = &mut wanted.retry_policy else { return Ok(None) };
    let min = duration("retry_policy.minimum_backoff", policy.minimum_backoff.get_or_insert(seconds(10)))?;
    let max = duration("retry_policy.maximum_backoff", policy.maximum_backoff.get_or_insert(seconds(600)))?;
    if min > Duration::from_secs(600) || max > Duration::from_secs(600) {
        return Err(invalid("retry_policy", "backoffs of at most 600 seconds are allowed"));
    }
    if min > max {
        return Err(invalid("retry_policy", "minimum_backoff is above maximum_backoff"));
    }
    Ok(Some(Backoff { min, max }))
}

fn dead_letter(wanted: &mut Subscription) -> Result<Option<DeadLetter>, Status> {
    let Some(policy) = &mut wanted.dead_letter_policy else { return Ok(None) };
    names::topic("dead_letter_policy.dead_letter_topic", &policy.dead_letter_topic)?;
    if policy.max_delivery_attempts == 0 {
        policy.max_delivery_attempts = 5;
    }
    match u32::try_from(policy.max_delivery_attempts) {
        Ok(max_attempts @ 5..=100) => Ok(Some(DeadLetter { topic: policy.dead_letter_topic.clone(), max_attempts })),
        _ => Err(invalid("dead_letter_policy.max_delivery_attempts", "5 to 100 are allowed")),
    }
}

fn duration(field: &str, wire: &prost_types::Duration) -> Result<Duration, Status> {
    Duration::try_from(*wire).map_err(|_| invalid(field, "must not be negative"))
}

fn seconds(seconds: u64) -> prost_types::Duration {
    prost_types::Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}
