//! Takes an event out of what bridges and scripts wrap around it.
//!
//! At most two levels of: a JSON string that holds JSON, base64 text of JSON, a Pub/Sub push envelope. A byte order mark
//! goes at every level. An unwrapping counts only when it ends in a JSON object; otherwise the outer value stays.

use std::collections::BTreeMap;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;

use super::{
    RawEvent,
    document::{Document, Kind, MAX_BYTES, Value},
};

const LEVELS: u8 = 2;

/// Shorter text is not taken for base64: no event fits.
const MIN_BASE64: usize = 16;

/// Padding and unused bits are as publishers leave them.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What was found inside.
pub(super) struct Unwrapped {
    /// The innermost bytes, without byte order mark.
    pub(super) body: Bytes,
    /// Parsed, when they are JSON.
    pub(super) document: Option<Document>,
    /// Attributes and transport id of a push envelope; they stand for those of the delivery.
    pub(super) envelope: Option<Envelope>,
}

/// Transport facts that a push envelope carries.
pub(super) struct Envelope {
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) message_id: String,
}

/// Unwraps a raw event.
pub(super) fn unwrap(raw: &RawEvent) -> Unwrapped {
    peel(raw.data.clone(), LEVELS)
}

impl Unwrapped {
    fn is_object(&self) -> bool {
        self.document.as_ref().is_some_and(|document| document.root().is_object())
    }
}

fn peel(data: Bytes, levels: u8) -> Unwrapped {
    let body = if data.starts_with(b"\xef\xbb\xbf") { data.slice(3..) } else { data };
    let document = Document::parse(body.clone());
    let outer = |document| Unwrapped { body: body.clone(), document, envelope: None };
    if levels == 0 {
        return outer(document);
    }
    let Some(document) = document else {
        let inner = decode_base64(&body).map(|inner| peel(inner, levels - 1)).filter(Unwrapped::is_object);
        return inner.unwrap_or_else(|| outer(None));
    };
    if document.root().is_object() {
        let Some((inner, envelope)) = open_envelope(document.root()) else { return outer(Some(document)) };
        let mut inner = peel(inner, levels - 1);
        if !inner.is_object() {
            return outer(Some(document));
        }
        inner.envelope.get_or_insert(envelope);
        return inner;
    }
    if !matches!(document.root().kind(), Kind::Text(_)) {
        return outer(Some(document));
    }
    let inner = document.into_text().map(|inner| peel(inner, levels - 1)).filter(Unwrapped::is_object);
    inner.unwrap_or_else(|| outer(Document::parse(body.clone())))
}

/// `{"subscription": "…", "message": {"data": "…", "messageId": "…"}}`. Its data is base64; text that is not is taken
/// as it is.
fn open_envelope(envelope: Value<'_>) -> Option<(Bytes, Envelope)> {
    envelope.get("subscription")?.text()?;
    let message = envelope.get("message")?;
    let data = message.get("data")?.text()?;
    let message_id = ["messageId", "message_id"].iter().find_map(|key| message.get(key)?.text())?.to_owned();
    let attributes = message.get("attributes").into_iter().flat_map(Value::members);
    let attributes = attributes.filter_map(|(name, value)| {
        Some((std::str::from_utf8(name).ok()?.to_owned(), value.text().unwrap_or_default().to_owned()))
    });
    let envelope = Envelope { attributes: attributes.collect(), message_id };
    let data = base64_bytes(data.as_bytes()).unwrap_or_else(|| Bytes::copy_from_slice(data.as_bytes()));
    Some((data, envelope))
}

fn decode_base64(text: &[u8]) -> Option<Bytes> {
    let long_enough = text.iter().filter(|byte| !byte.is_ascii_whitespace()).take(MIN_BASE64).count() == MIN_BASE64;
    if long_enough { base64_bytes(text) } else { None }
}

/// Either alphabet, spaces anywhere.
pub(super) fn base64_bytes(text: &[u8]) -> Option<Bytes> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut digits = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'-' => digits.push(b'+'),
            b'_' => digits.push(b'/'),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=' => digits.push(*byte),
            _ => return None,
        }
    }
    LENIENT.decode(digits).ok().map(Bytes::from)
}
