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
use serde::{
    Deserialize,
    de::{Error as _, IgnoredAny},
};
use serde_json::{Value, value::RawValue};

use super::RawEvent;

mod built_in;
mod restamp;

pub use built_in::{BuiltIn, built_in, find};
pub use restamp::restamp;

/// Why a text is not a sample message.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// Nothing but blanks.
    #[error("is empty; give one message, or one on each line")]
    Empty,
    /// JSON, but no object.
    #[error("is {0}; a sample message is a JSON object, alone in its file or one on each line")]
    NoObject(&'static str),
    /// An event without a message around it.
    #[error("is an event without its message; put it under `data`: {{\"data\": …}}")]
    Bare,
    /// Not JSON, or fields of the wrong kind: the place is in the source.
    #[error("not a sample message{}", .field.as_ref().map(|field| format!(": `{field}`")).unwrap_or_default())]
    Format {
        /// The field that is wrong, where it is one.
        field: Option<String>,
        /// What is wrong.
        source: serde_json::Error,
    },
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

impl From<serde_path_to_error::Error<serde_json::Error>> for SampleError {
    fn from(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        let field = error.path().to_string();
        Self::Format { field: Some(field).filter(|field| field != "." && field != "?"), source: error.into_inner() }
    }
}

impl From<serde_json::Error> for SampleError {
    fn from(source: serde_json::Error) -> Self {
        Self::Format { field: None, source }
    }
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
    #[serde(default, deserialize_with = "time")]
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

/// A time, or an error that says how to write one.
fn time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let wrong = |_| D::Error::custom(format!("{text:?} is no time; write it as 2026-05-04T09:15:30Z (RFC 3339)"));
    DateTime::parse_from_rfc3339(&text).map(|time| Some(time.to_utc())).map_err(wrong)
}

/// Reads one sample message. A byte order mark before it is passed over.
///
/// # Errors
/// The text is not one.
pub fn parse(text: &[u8]) -> Result<RawEvent, SampleError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
    if text.is_empty() {
        return Err(SampleError::Empty);
    }
    if text[0] != b'{'
        && let Ok(value) = serde_json::from_slice::<Value>(text)
    {
        return Err(SampleError::NoObject(kind(&value)));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let sample = serde_path_to_error::deserialize(&mut reader);
    match sample.map_err(Into::into).and_then(|sample| reader.end().map(|()| sample).map_err(Into::into)) {
        Ok(sample) => raw(sample),
        Err(_) if is_bare(text) => Err(SampleError::Bare),
        Err(error) => Err(error),
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Looks like a Chat event, a CloudEvent or a push envelope, and has no data as a message has it.
fn is_bare(text: &[u8]) -> bool {
    let object = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(text).unwrap_or_default();
    let any = |names: &[&str]| names.iter().any(|name| object.contains_key(*name));
    any(&["type", "chat", "message", "specversion"]) && !any(&["data", "dataBase64"])
}

/// Reads a file of sample messages: one, or JSON Lines. Each result comes with its line, 0 for a file that is one
/// message; a bad line spoils only itself.
#[must_use]
pub fn parse_all(text: &[u8]) -> Vec<(usize, Result<RawEvent, SampleError>)> {
    let lines = || text.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
    // A message over several lines has its braces on lines of their own.
    let complete = |line: &[u8]| line.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok();
    let whole = parse(text);
    if whole.is_err() && lines().nth(1).is_some() && lines().any(|(line, _)| complete(line)) {
        lines().map(|(line, number)| (number, parse(line))).collect()
    } else {
        vec![(0, whole)]
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
        let told = |text: &str| format!("{:#}", anyhow::Error::from(error(text)));
        assert!(told(r#"{"dato": 1, "messageId": ""}"#).contains("unknown field `dato`"));
        assert!(told(r#"{"data": 1, "messageId": 5}"#).starts_with("not a sample message: `messageId`: invalid type"));
        assert!(told(r#"{"data": 1, "attributes": {"a": 1}}"#).contains("`attributes.a`: invalid type"));
        assert!(
            told(r#"{"data": 1, "publishTime": "soon"}"#).contains("`publishTime`: \"soon\" is no time; write it as 2")
        );
        assert!(told(r#"{"data": 1} x"#).contains("trailing characters"));
        assert!(told("{data}").starts_with("not a sample message: key must be a string"));
        assert!(told(r#"{"type": "MESSAGE"}"#).starts_with("is an event without its message; put it under `data`"));
        for (text, kind) in
            [("[]", "an array"), (r#"[{}, {"type": 1}]"#, "an array"), ("1", "a number"), ("null", "null")]
        {
            assert!(told(text).starts_with(&format!("is {kind}; a sample message is a JSON object")), "{text}");
        }
        for text in ["", " \n"] {
            assert!(matches!(error(text), SampleError::Empty));
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert_eq!(data("\u{feff}{\"data\": 1}\n"), "1");
    }

    #[test]
    fn a_bad_line_spoils_only_itself() {
        let read = parse_all(b"{\"data\":1}\n\n{\"data\":\n{\"data\":2}\n");

        let lines: Vec<_> = read.iter().map(|(line, result)| (*line, result.is_ok())).collect();
        assert_eq!(lines, [(1, true), (3, false), (4, true)]);
        let read = parse_all(b"MESSAGE  EVENT\n{\"data\":1}\n");
        let lines: Vec<_> = read.iter().map(|(line, result)| (*line, result.is_ok())).collect();
        assert_eq!(lines, [(1, false), (2, true)], "a bad first line, too");
        assert_eq!(parse_all(b"{\n\"data\": 1\n}\n").len(), 1);
        assert_eq!(parse_all(b"{\n\"data\": {},\n}\n").len(), 1, "one message over several lines, and broken");
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
