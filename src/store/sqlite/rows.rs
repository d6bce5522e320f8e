//! Claim rows to and from their columns.

use chrono::{DateTime, Utc};
use sqlx::{Decode, Row as _, Sqlite, Type, sqlite::SqliteRow};
use uuid::Uuid;

use super::{
    database::Held,
    error::{Corrupt, classify},
};
use crate::{
    claim::{Identity, Key, Nonce, Phase, State, row::Row},
    event::{EventId, Fingerprint},
    store::StoreError,
};

/// A time as it is stored.
pub(super) const fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

/// A stored time.
pub(super) fn time(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

pub(super) fn corrupt(column: &'static str) -> StoreError {
    StoreError::refused(Corrupt { column })
}

pub(super) fn get<'r, T: Decode<'r, Sqlite> + Type<Sqlite>>(row: &'r SqliteRow, column: &str) -> Result<T, StoreError> {
    row.try_get(column).map_err(classify)
}

fn maybe_time(row: &SqliteRow, column: &str) -> Result<Option<DateTime<Utc>>, StoreError> {
    Ok(get::<Option<i64>>(row, column)?.map(time))
}

pub(super) fn nonce(row: &SqliteRow) -> Result<Nonce, StoreError> {
    Ok(Nonce::from(get::<Uuid>(row, "nonce")?))
}

pub(super) fn identity(row: &SqliteRow) -> Result<Identity, StoreError> {
    Ok(Identity {
        key: Key::from(get::<Uuid>(row, "key")?),
        event_id: EventId::new(get::<String>(row, "event_id")?),
        event_type: get(row, "event_type")?,
        fingerprint: Fingerprint(get::<&[u8]>(row, "fingerprint")?.try_into().map_err(|_| corrupt("fingerprint"))?),
    })
}

fn claim(row: &SqliteRow) -> Result<Row, StoreError> {
    Ok(Row {
        event: identity(row)?,
        state: State::from_code(get(row, "state")?).ok_or_else(|| corrupt("state"))?,
        phase: Phase::from_code(get(row, "phase")?).ok_or_else(|| corrupt("phase"))?,
        strict: get(row, "strict")?,
        epoch: get(row, "epoch")?,
        failures: get(row, "failures")?,
        lost: get(row, "lost")?,
        nonce: nonce(row)?,
        lease_until: time(get(row, "lease_until")?),
        deadline: maybe_time(row, "deadline")?,
        not_before: maybe_time(row, "not_before")?,
        first_seen_at: time(get(row, "first_seen_at")?),
        finished_at: maybe_time(row, "finished_at")?,
        note: get(row, "note")?,
    })
}

pub(super) async fn find(db: &mut Held<'_>, key: Key) -> Result<Option<Row>, StoreError> {
    let row = db.row(sqlx::query("SELECT * FROM claims WHERE key = ?1").bind(key.as_uuid())).await?;
    row.as_ref().map(claim).transpose()
}

/// Writes the row. Where the event has one already, all but what names the event and when it was first seen is
/// replaced, or nothing is written; false = nothing was.
pub(super) async fn write(db: &mut Held<'_>, row: &Row, replace: bool) -> Result<bool, StoreError> {
    let write = sqlx::query(
        "INSERT INTO claims (key, event_id, event_type, fingerprint, first_seen_at, state, phase, strict, epoch,
            failures, lost, nonce, lease_until, deadline, not_before, finished_at, note)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
        ON CONFLICT (key) DO UPDATE SET state = ?6, phase = ?7, strict = ?8, epoch = ?9, failures = ?10, lost = ?11,
            nonce = ?12, lease_until = ?13, deadline = ?14, not_before = ?15, finished_at = ?16, note = ?17
        WHERE ?18",
    );
    let write = write
        .bind(row.event.key.as_uuid())
        .bind(row.event.event_id.as_str())
        .bind(&row.event.event_type)
        .bind(&row.event.fingerprint.0[..])
        .bind(micros(row.first_seen_at))
        .bind(row.state.code())
        .bind(row.phase.code())
        .bind(row.strict)
        .bind(row.epoch)
        .bind(row.failures)
        .bind(row.lost)
        .bind(row.nonce.as_uuid())
        .bind(micros(row.lease_until))
        .bind(row.deadline.map(micros))
        .bind(row.not_before.map(micros))
        .bind(row.finished_at.map(micros))
        .bind(&row.note)
        .bind(replace);
    Ok(db.write(write).await? == 1)
}
