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
    /// The innermost bytes, without byte order mark: parsed, or as they are when they are not JSON.
    pub(super) body: Result<Document, Bytes>,
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
    const fn outer(body: Result<Document, Bytes>) -> Self {
        Self { body, envelope: None }
    }

    /// The parsed body.
    pub(super) fn document(&self) -> Option<&Document> {
        self.body.as_ref().ok()
    }

    /// The bytes of the body.
    pub(super) fn bytes(&self) -> &Bytes {
        self.body.as_ref().map_or_else(|bytes| bytes, Document::text)
    }

    fn is_object(&self) -> bool {
        self.document().is_some_and(|document| document.root().is_object())
    }
}

fn peel(data: Bytes, levels: u8) -> Unwrapped {
    let data = if data.starts_with(b"\xef\xbb\xbf") { data.slice(3..) } else { data };
    let body = Document::parse(data);
    if levels == 0 {
        return Unwrapped::outer(body);
    }
    let open = |inner| Some(peel(inner, levels - 1)).filter(Unwrapped::is_object);
    let document = match body {
        Ok(document) => document,
        Err(data) => return decode_base64(&data).and_then(open).unwrap_or_else(|| Unwrapped::outer(Err(data))),
    };
    match document.root().kind() {
        Kind::Object => {
            let inner = open_envelope(document.root()).and_then(|(inner, envelope)| Some((open(inner)?, envelope)));
            let Some((mut inner, envelope)) = inner else { return Unwrapped::outer(Ok(document)) };
            inner.envelope.get_or_insert(envelope);
            inner
        }
        Kind::Text(_) => {
            // The tape goes before its content is parsed: both at once would be too much memory.
            let text = document.text().clone();
            document.into_text().and_then(open).unwrap_or_else(|| Unwrapped::outer(Document::parse(text)))
        }
        _ => Unwrapped::outer(Ok(document)),
    }
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
