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
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::RawEvent;

mod built_in;
mod restamp;

pub use built_in::{BuiltIn, built_in, find};
pub use restamp::restamp;

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
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sample {
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "given")]
    data: Option<Box<RawValue>>,
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
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

/// Reads one sample message.
///
/// # Errors
/// The text is not one.
pub fn parse(text: &[u8]) -> Result<RawEvent, SampleError> {
    raw(serde_json::from_slice(text).map_err(SampleError::Format)?)
}

/// Reads a file of sample messages: one, or JSON Lines. Each result comes with its line, 0 for a file that is one
/// message; a bad line spoils only itself.
#[must_use]
pub fn parse_all(text: &[u8]) -> Vec<(usize, Result<RawEvent, SampleError>)> {
    let lines = || text.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
    let complete = |line: &[u8]| serde_json::from_slice::<IgnoredAny>(line).is_ok();
    if lines().nth(1).is_some() && lines().next().is_some_and(|(line, _)| complete(line)) {
        lines().map(|(line, number)| (number, parse(line))).collect()
    } else {
        vec![(0, parse(text))]
    }
}

/// A message in the sample format, as [`parse`] reads it: JSON data as JSON where that keeps every byte, other text as
/// text, other bytes as base64. What is empty is left out.
#[must_use]
pub fn print(raw: &RawEvent) -> Value {
    let mut sample = serde_json::Map::new();
    if !raw.attributes.is_empty() {
        sample.insert("attributes".to_owned(), raw.attributes.clone().into_iter().collect());
    }
    let json = serde_json::from_slice::<Value>(&raw.data).ok().filter(|value| !value.is_string());
    let exact = json.filter(|value| serde_json::to_vec(value).is_ok_and(|printed| printed == raw.data));
    match (exact, std::str::from_utf8(&raw.data)) {
        (Some(value), _) => sample.insert("data".to_owned(), value),
        (None, Ok(text)) => sample.insert("data".to_owned(), text.into()),
        (None, Err(_)) => sample.insert("dataBase64".to_owned(), STANDARD.encode(&raw.data).into()),
    };
    if !raw.message_id.is_empty() {
        sample.insert("messageId".to_owned(), raw.message_id.clone().into());
    }
    if let Some(time) = raw.publish_time {
        sample.insert("publishTime".to_owned(), time.to_rfc3339_opts(SecondsFormat::AutoSi, true).into());
    }
    if !raw.ordering_key.is_empty() {
        sample.insert("orderingKey".to_owned(), raw.ordering_key.clone().into());
    }
    if let Some(attempt) = raw.delivery_attempt {
        sample.insert("deliveryAttempt".to_owned(), attempt.into());
    }
    sample.into()
}

fn raw(sample: Sample) -> Result<RawEvent, SampleError> {
    let data = match (sample.data, sample.data_base64) {
        (Some(_), Some(_)) => return Err(SampleError::TwoData),
        (None, None) => return Err(SampleError::NoData),
        (None, Some(text)) => STANDARD.decode(text).map_err(SampleError::Base64)?,
        (Some(data), None) => bytes_of(&data),
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

fn bytes_of(data: &RawValue) -> Vec<u8> {
    match serde_json::from_str(data.get()) {
        Ok(Value::String(text)) => text.into_bytes(),
        Ok(value) => serde_json::to_vec(&value).unwrap_or_else(|_| compact(data.get())),
        // Valid JSON that goes beyond the parser's limits (depth, numbers, surrogates): the very thing to look at.
        Err(_) => compact(data.get()),
    }
}

/// JSON text without the spaces between its tokens.
fn compact(json: &str) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    let keep = |byte: &u8| {
        let (was_string, was_escaped) = (in_string, escaped);
        escaped = was_string && !was_escaped && *byte == b'\\';
        in_string = was_string != (*byte == b'"' && !was_escaped);
        was_string || !byte.is_ascii_whitespace()
    };
    json.bytes().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> String {
        String::from_utf8(parse(text.as_bytes()).unwrap().data.to_vec()).unwrap()
    }

    #[test]
    fn data_is_text_compact_json_or_base64() {
        assert_eq!(data(r#"{"data": "a\\u0062"}"#), r"a\u0062");
        assert_eq!(data(r#"{"data": "a\u0062\n"}"#), "ab\n");
        assert_eq!(data(r#"{"data": { "b" : [1, 2.50, "x y"], "a": null }}"#), r#"{"b":[1,2.5,"x y"],"a":null}"#);
        assert_eq!(data(r#"{"data": null}"#), "null");
        assert_eq!(data(r#"{"dataBase64": "eyJhIjoxfQ=="}"#), r#"{"a":1}"#);
    }

    #[test]
    fn data_beyond_the_parser_is_kept_as_text() {
        assert_eq!(data(r#"{"data": { "a": "\ud800 \" ", "b" : 1e999 }}"#), r#"{"a":"\ud800 \" ","b":1e999}"#);
        let deep = "[".repeat(300) + &"]".repeat(300);
        assert_eq!(data(&format!(r#"{{"data": {deep}}}"#)), deep);
    }

    #[test]
    fn everything_else_of_the_message_is_read() {
        let raw = parse(
            br#"{"attributes": {"a": "b"}, "data": "", "messageId": "7", "publishTime": "2026-05-04T09:15:30.393Z",
                 "orderingKey": "o", "deliveryAttempt": 2}"#,
        )
        .unwrap();

        assert_eq!(raw.attributes["a"], "b");
        assert_eq!((raw.message_id.as_str(), raw.ordering_key.as_str(), raw.delivery_attempt), ("7", "o", Some(2)));
        assert_eq!(raw.publish_time.unwrap().timestamp_millis(), 1_777_886_130_393);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error("{}"), SampleError::NoData));
        assert!(matches!(error(r#"{"data": 1, "dataBase64": ""}"#), SampleError::TwoData));
        assert!(matches!(error(r#"{"dataBase64": "?"}"#), SampleError::Base64(_)));
        assert!(matches!(error(r#"{"dato": 1}"#), SampleError::Format(cause) if cause.to_string().contains("dato")));
    }

    #[test]
    fn a_bad_line_spoils_only_itself() {
        let read = parse_all(b"{\"data\":1}\n\n{\"data\":\n{\"data\":2}\n");

        let lines: Vec<_> = read.iter().map(|(line, result)| (*line, result.is_ok())).collect();
        assert_eq!(lines, [(1, true), (3, false), (4, true)]);
        assert_eq!(parse_all(b"{\n\"data\": 1\n}\n").len(), 1);
        assert!(parse_all(b"")[0].1.is_err());
    }

    #[test]
    fn what_is_printed_reads_the_same() {
        let samples = built_in().iter().map(BuiltIn::raw);
        let written = [
            r#"{"data": "{\"a\": 1}", "orderingKey": "k", "deliveryAttempt": 3}"#,
            r#"{"data": "\"a\"", "attributes": {"a": "b"}}"#,
            r#"{"data": "{\"a\":1,\"a\":2}"}"#,
            r#"{"dataBase64": "/w=="}"#,
            r#"{"data": ""}"#,
            r#"{"data": null}"#,
        ];
        for raw in samples.chain(written.iter().map(|text| parse(text.as_bytes()).unwrap())) {
            let printed = print(&raw).to_string();

            assert_eq!(parse(printed.as_bytes()).unwrap(), raw, "{printed}");
        }
    }

    #[test]
    fn every_built_in_sample_is_one_and_names_are_unique() {
        let mut names: Vec<_> = built_in().iter().map(|sample| sample.name).collect();
        for sample in built_in() {
            assert!(!sample.raw().message_id.is_empty(), "{}", sample.name);
            assert_eq!(find(sample.name), Some(sample));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), built_in().len());
    }
}
