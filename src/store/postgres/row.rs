//! Between columns and words.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::types::Uuid;

use crate::{
    claim::State,
    event::RawEvent,
    outcome::{Note, Reason},
    source::BoxError,
    store::{QuarantineRow, StoreError},
};

/// A stored number that means nothing to this code.
#[derive(Debug, thiserror::Error)]
#[error("column {column} holds {value}, which means nothing")]
struct Meaningless {
    column: &'static str,
    value: i64,
}

pub(super) fn meaningless(column: &'static str, value: impl Into<i64>) -> StoreError {
    let cause: BoxError = Box::new(Meaningless { column, value: value.into() });
    StoreError::Refused(cause)
}

pub(super) fn state(code: i16) -> Result<State, StoreError> {
    State::from_code(code).ok_or_else(|| meaningless("state", code))
}

/// Text from an event in a text column: no control characters, NUL among them, at most 300 characters.
pub(super) fn text(raw: &str) -> String {
    Note::new(raw).as_str().to_owned()
}

/// Tells two payloads under one key apart.
pub(super) fn payload_hash(raw: &RawEvent) -> Vec<u8> {
    Sha256::digest(&raw.data).to_vec()
}

/// The attributes as kept: a JSON object, as bytes, since a text column refuses NUL.
pub(super) fn attributes(raw: &RawEvent) -> Vec<u8> {
    serde_json::to_vec(&raw.attributes).unwrap_or_default()
}

/// The reason a claim row was quarantined for, from its note.
pub(super) fn reason(note: &str) -> Reason {
    Reason::from_name(note).unwrap_or(Reason::Operator)
}

/// A quarantine row as read.
pub(super) struct Quarantined {
    pub(super) seq: i64,
    pub(super) key: Uuid,
    pub(super) epoch: i32,
    pub(super) nonce: Uuid,
    pub(super) reason: String,
    pub(super) detail: String,
    pub(super) event_id: String,
    pub(super) event_type: String,
    pub(super) quarantined_at: DateTime<Utc>,
    pub(super) requests: i64,
    pub(super) message_id: String,
    pub(super) publish_time: Option<DateTime<Utc>>,
    pub(super) payload: Option<Vec<u8>>,
    pub(super) attributes: Option<Vec<u8>>,
}

impl From<Quarantined> for QuarantineRow {
    fn from(row: Quarantined) -> Self {
        let attributes = row.attributes.as_deref().map(serde_json::from_slice::<BTreeMap<String, String>>);
        let raw = row.payload.map(|payload| {
            Arc::new(RawEvent {
                data: Bytes::from(payload),
                attributes: attributes.and_then(Result::ok).unwrap_or_default(),
                message_id: row.message_id,
                publish_time: row.publish_time,
                ordering_key: String::new(),
                delivery_attempt: None,
            })
        });
        Self {
            seq: row.seq,
            key: row.key.into(),
            epoch: row.epoch.unsigned_abs(),
            nonce: row.nonce.into(),
            reason: reason(&row.reason),
            detail: row.detail,
            event_id: row.event_id,
            event_type: row.event_type,
            quarantined_at: row.quarantined_at,
            requests: u32::try_from(row.requests).unwrap_or(u32::MAX),
            raw,
        }
    }
}
