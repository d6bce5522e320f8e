//! Between columns and words.

use chrono::{DateTime, Utc};
use sqlx::{postgres::types::PgInterval, types::Uuid};
use std::time::Duration;

use super::PostgresStore;
use crate::{
    claim::{
        Identity, Phase, State,
        row::{At, Row},
    },
    event::{EventId, Fingerprint},
    outcome::{Note, Reason},
    store::{Seen, StoreError},
};

/// A stored row that means nothing to this code.
#[derive(Debug, thiserror::Error)]
#[error("the row of {0} holds what means nothing")]
pub(super) struct Meaningless(pub(super) Uuid);

/// One column of a statement on arrays.
pub(super) fn column<T, V>(items: &[T], value: impl Fn(&T) -> V) -> Vec<V> {
    items.iter().map(value).collect()
}

/// A span as statements take it: at most some 70,000 years, so that the server's time plus any span is still a time.
pub(super) fn interval(span: Duration) -> PgInterval {
    let microseconds = i64::try_from(span.as_micros()).unwrap_or(i64::MAX).min(i64::MAX / 4);
    PgInterval { months: 0, days: 0, microseconds }
}

/// What a write makes of a time: NULL keeps it, a negative span clears it.
pub(super) fn at(time: At) -> Option<PgInterval> {
    match time {
        At::Keep => None,
        At::Clear => Some(PgInterval { months: 0, days: 0, microseconds: -1 }),
        At::In(span) => Some(interval(span)),
    }
}

/// Text from an event in a text column: no control characters, NUL among them, at most 300 characters.
pub(super) fn text(raw: &str) -> String {
    Note::new(raw).as_str().to_owned()
}

/// A counter as its column holds it.
pub(super) fn number(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}

/// An event may say that it happened in any year; a column cannot hold every one.
pub(super) fn storable(time: DateTime<Utc>) -> DateTime<Utc> {
    const YEAR_3000: DateTime<Utc> = match DateTime::from_timestamp(32_503_680_000, 0) {
        Some(at) => at,
        None => DateTime::UNIX_EPOCH,
    };
    time.clamp(DateTime::UNIX_EPOCH, YEAR_3000)
}

/// Names this code does not know count as an operator's.
pub(super) fn reason(name: &str) -> Reason {
    Reason::from_name(name).unwrap_or(Reason::Operator)
}

pub(super) fn identity(key: Uuid, event_id: String, event_type: String, fingerprint: Vec<u8>) -> Option<Identity> {
    let fingerprint = Fingerprint(fingerprint.try_into().ok()?);
    Some(Identity { key: key.into(), event_id: EventId::new(event_id), event_type, fingerprint })
}

/// A claim row as statements answer it; where there is none, every column of the row is `None`.
#[derive(Debug)]
pub(super) struct Stored {
    /// What an entry came to where it found no row.
    pub(super) unfound: Option<String>,
    pub(super) now: DateTime<Utc>,
    /// Asked only where the row is running and stale.
    pub(super) server: Option<String>,
    pub(super) key: Option<Uuid>,
    pub(super) event_id: Option<String>,
    pub(super) event_type: Option<String>,
    pub(super) fingerprint: Option<Vec<u8>>,
    pub(super) state: Option<i16>,
    pub(super) phase: Option<i16>,
    pub(super) strict: Option<bool>,
    pub(super) epoch: Option<i32>,
    pub(super) failures: Option<i32>,
    pub(super) lost: Option<i32>,
    pub(super) nonce: Option<Uuid>,
    pub(super) lease_until: Option<DateTime<Utc>>,
    pub(super) deadline: Option<DateTime<Utc>>,
    pub(super) not_before: Option<DateTime<Utc>>,
    pub(super) first_seen_at: Option<DateTime<Utc>>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    pub(super) note: Option<String>,
}

impl Stored {
    /// `None` where a column holds what means nothing.
    fn row(self) -> Option<Row> {
        Some(Row {
            event: identity(self.key?, self.event_id?, self.event_type?, self.fingerprint?)?,
            state: State::from_code(self.state?)?,
            // Earlier code knew a phase 2: the handler had returned.
            phase: Phase::from_code(self.phase?.min(1))?,
            strict: self.strict?,
            epoch: self.epoch?.unsigned_abs(),
            failures: u16::try_from(self.failures?).unwrap_or(u16::MAX),
            lost: u16::try_from(self.lost?).unwrap_or(u16::MAX),
            nonce: self.nonce?.into(),
            lease_until: self.lease_until?,
            deadline: self.deadline,
            not_before: self.not_before,
            first_seen_at: self.first_seen_at?,
            finished_at: self.finished_at,
            note: self.note?,
        })
    }
}

impl PostgresStore {
    /// The row as it was read, if there is one. The server that answered is noted before anybody takes over.
    pub(super) fn seen(&self, stored: Stored) -> Result<Option<Seen>, StoreError> {
        let (Some(key), now, server) = (stored.key, stored.now, stored.server.clone()) else { return Ok(None) };
        let row = stored.row().ok_or_else(|| StoreError::refused(Meaningless(key)))?;
        if let Some(server) = &server {
            self.holdoff.saw(server);
        }
        let held_off = if row.is_stale(now, self.lease) { self.holdoff.left() } else { None };
        Ok(Some(Seen { row, now, held_off, server }))
    }
}
