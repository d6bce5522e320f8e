//! Claim rows to and from their columns.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use sqlx::{
    Row as _, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::{
    error::{Corrupt, classify},
    statements,
};
use crate::{
    claim::{Key, Nonce, Phase, State, StoredReply, row::Row},
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
    StoreError::Refused(Box::new(Corrupt { column }))
}

pub(super) fn key(row: &SqliteRow) -> Result<Key, StoreError> {
    Ok(Key::from(row.try_get::<uuid::Uuid, _>("key").map_err(classify)?))
}

pub(super) fn nonce(row: &SqliteRow) -> Result<Nonce, StoreError> {
    Ok(Nonce::from(row.try_get::<uuid::Uuid, _>("nonce").map_err(classify)?))
}

pub(super) fn fingerprint(row: &SqliteRow) -> Result<Fingerprint, StoreError> {
    let bytes: &[u8] = row.try_get("fingerprint").map_err(classify)?;
    bytes.try_into().map(Fingerprint).map_err(|_| corrupt("fingerprint"))
}

pub(super) fn read(row: &SqliteRow) -> Result<Row, StoreError> {
    let at = |column: &str| row.try_get::<i64, _>(column).map(time).map_err(classify);
    let maybe_at = |column: &str| row.try_get::<Option<i64>, _>(column).map(|at| at.map(time)).map_err(classify);
    let text = |column: &str| row.try_get::<String, _>(column).map_err(classify);
    Ok(Row {
        key: key(row)?,
        event_id: EventId::new(text("event_id")?),
        event_type: text("event_type")?,
        fingerprint: fingerprint(row)?,
        state: State::from_code(row.try_get("state").map_err(classify)?).ok_or_else(|| corrupt("state"))?,
        phase: Phase::from_code(row.try_get("phase").map_err(classify)?).ok_or_else(|| corrupt("phase"))?,
        strict: row.try_get("strict").map_err(classify)?,
        epoch: row.try_get("epoch").map_err(classify)?,
        failures: row.try_get("failures").map_err(classify)?,
        lost: row.try_get("lost").map_err(classify)?,
        nonce: nonce(row)?,
        lease_until: at("lease_until")?,
        deadline: maybe_at("deadline")?,
        not_before: maybe_at("not_before")?,
        first_seen_at: at("first_seen_at")?,
        finished_at: maybe_at("finished_at")?,
        note: text("note")?,
    })
}

pub(super) async fn find(db: &mut SqliteConnection, key: Key) -> Result<Option<Row>, StoreError> {
    let row = sqlx::query(statements::FIND_CLAIM).bind(key.as_uuid()).fetch_optional(db).await.map_err(classify)?;
    row.as_ref().map(read).transpose()
}

pub(super) async fn write(db: &mut SqliteConnection, row: &Row) -> Result<(), StoreError> {
    bind(sqlx::query(statements::WRITE_CLAIM), row).execute(db).await.map_err(classify)?;
    Ok(())
}

fn bind<'q>(query: Query<'q, Sqlite, SqliteArguments>, row: &'q Row) -> Query<'q, Sqlite, SqliteArguments> {
    query
        .bind(row.key.as_uuid())
        .bind(row.event_id.as_str())
        .bind(&row.event_type)
        .bind(row.fingerprint.0.as_slice())
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
        .bind(micros(row.first_seen_at))
        .bind(row.finished_at.map(micros))
        .bind(&row.note)
}

pub(super) async fn find_replies(db: &mut SqliteConnection, key: Key) -> Result<Vec<StoredReply>, StoreError> {
    let rows = sqlx::query(statements::FIND_REPLIES).bind(key.as_uuid()).fetch_all(db).await.map_err(classify)?;
    let reply = |row: &SqliteRow| {
        let body: Vec<u8> = row.try_get("body")?;
        Ok(StoredReply { ordinal: row.try_get("ordinal")?, body: Bytes::from(body) })
    };
    rows.iter().map(reply).collect::<Result<_, _>>().map_err(classify)
}

pub(super) async fn keep_reply(db: &mut SqliteConnection, key: Key, reply: &StoredReply) -> Result<(), StoreError> {
    let query = sqlx::query(statements::KEEP_REPLY).bind(key.as_uuid()).bind(reply.ordinal).bind(&reply.body[..]);
    query.execute(db).await.map_err(classify)?;
    Ok(())
}

pub(super) async fn forget_replies(db: &mut SqliteConnection, key: Key) -> Result<(), StoreError> {
    sqlx::query(statements::FORGET_REPLIES).bind(key.as_uuid()).execute(db).await.map_err(classify)?;
    Ok(())
}
