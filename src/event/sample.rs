//! The sample-message format: a message as it lies on the topic, in one JSON object.
//!
//! ```json
//! {"attributes": {}, "data": {"type": "MESSAGE"}, "messageId": "1", "publishTime": "2026-05-04T09:15:30Z"}
//! ```
//! `data` as a string stands for those bytes, as any other JSON value for its compact text; `dataBase64` instead holds
//! bytes that are not UTF-8. `orderingKey` and `deliveryAttempt` are optional.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::RawEvent;

/// Why a text is not a sample message.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// Not JSON, or fields of the wrong kind: the place is in the source.
    #[error("not a sample message")]
    Format(#[source] serde_json::Error),
    /// Both kinds of data at once.
    #[error("has both `data` and `dataBase64`; give one")]
    TwoData,
    /// Neither kind of data.
    #[error("has neither `data` nor `dataBase64`; an empty message has `\"data\": \"\"`")]
    NoData,
    /// `dataBase64` is not base64.
    #[error("`dataBase64` is not base64")]
    Base64(#[source] base64::DecodeError),
    /// Several messages where one is expected.
    #[error("holds {0} messages; one is expected here")]
    NotOne(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sample {
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "given")]
    data: Option<Value>,
    #[serde(default)]
    data_base64: Option<String>,
    #[serde(default)]
    message_id: String,
    #[serde(default)]
    publish_time: Option<DateTime<Utc>>,
    #[serde(default)]
    ordering_key: String,
    #[serde(default)]
    delivery_attempt: Option<u32>,
}

/// `"data": null` is data, the JSON value `null`.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads one sample message.
///
/// # Errors
/// The text is not one.
pub fn parse(text: &[u8]) -> Result<RawEvent, SampleError> {
    raw(serde_json::from_slice(text).map_err(SampleError::Format)?)
}

/// Reads sample messages one after the other, as JSON Lines or simply concatenated; each result by itself. Text that is
/// no JSON ends the list with its error.
pub fn parse_all(text: &[u8]) -> Vec<Result<RawEvent, SampleError>> {
    let values = serde_json::Deserializer::from_slice(text).into_iter::<Sample>();
    values.map(|sample| raw(sample.map_err(SampleError::Format)?)).collect()
}

fn raw(sample: Sample) -> Result<RawEvent, SampleError> {
    let data = match (sample.data, sample.data_base64) {
        (Some(_), Some(_)) => return Err(SampleError::TwoData),
        (None, None) => return Err(SampleError::NoData),
        (None, Some(text)) => STANDARD.decode(text).map_err(SampleError::Base64)?,
        (Some(Value::String(text)), None) => text.into_bytes(),
        (Some(value), None) => serde_json::to_vec(&value).map_err(SampleError::Format)?,
    };
    Ok(RawEvent {
        data: Bytes::from(data),
        attributes: sample.attributes,
        message_id: sample.message_id,
        publish_time: sample.publish_time,
        ordering_key: sample.ordering_key,
        delivery_attempt: sample.delivery_attempt,
    })
}
