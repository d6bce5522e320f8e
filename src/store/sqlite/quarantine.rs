//! Quarantine rows: written by claims and verdicts, read by operators and the replay source.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use sqlx::{Row as _, SqliteConnection, sqlite::SqliteRow};

use super::{
    SqliteStore,
    error::classify,
    rows::{self, corrupt, micros, time},
    statements,
};
use crate::{
    claim::{
        ClaimIntent, Key, Phase, State,
        row::{Change, Row, before},
    },
    clock::Steady,
    event::{EventId, RawEvent},
    outcome::{Detail, Reason},
    store::{ClaimLog, ClaimRecord, QuarantineRow, Requeued, StoreError},
};

/// Puts the payload aside under the row's epoch and nonce; `false` = it is there already.
pub(super) async fn put_aside(
    db: &mut SqliteConnection,
    clock: &Steady,
    row: &Row,
    (reason, detail): (Reason, &Detail),
    intent: &ClaimIntent,
) -> Result<bool, StoreError> {
    let raw = &intent.raw;
    let attributes = serde_json::to_vec(&raw.attributes).map_err(|error| StoreError::Refused(Box::new(error)))?;
    let query = sqlx::query(statements::PUT_ASIDE)
        .bind(row.key.as_uuid())
        .bind(row.epoch)
        .bind(row.nonce.as_uuid())
        .bind(reason.as_str())
        .bind(detail.as_str())
        .bind(intent.event_id.as_str())
        .bind(&intent.event_type)
        .bind(intent.fingerprint.0.as_slice())
        .bind(row.strict)
        .bind(&raw.message_id)
        .bind(&raw.ordering_key)
        .bind(raw.publish_time.map(micros))
        .bind(&raw.data[..])
        .bind(Sha256::digest(&raw.data).to_vec())
        .bind(attributes)
        .bind(row.deadline.map(micros))
        .bind(micros(clock.now()));
    Ok(query.execute(db).await.map_err(classify)?.rows_affected() == 1)
}

/// The attempt turned out to have succeeded.
pub(super) async fn resolve(db: &mut SqliteConnection, clock: &Steady, intent: &ClaimIntent) -> Result<(), StoreError> {
    let query = sqlx::query(statements::RESOLVE).bind(intent.key.as_uuid()).bind(intent.nonce.as_uuid());
    query.bind(micros(clock.now())).execute(db).await.map_err(classify)?;
    Ok(())
}

fn reason(row: &SqliteRow) -> Result<Reason, StoreError> {
    let name: &str = row.try_get("reason").map_err(classify)?;
    Reason::from_name(name).ok_or_else(|| corrupt("reason"))
}

fn shown(row: &SqliteRow, raw: Option<Arc<RawEvent>>) -> Result<QuarantineRow, StoreError> {
    Ok(QuarantineRow {
        seq: row.try_get("seq").map_err(classify)?,
        key: rows::key(row)?,
        epoch: row.try_get("epoch").map_err(classify)?,
        nonce: rows::nonce(row)?,
        reason: reason(row)?,
        detail: row.try_get("detail").map_err(classify)?,
        event_id: row.try_get("event_id").map_err(classify)?,
        event_type: row.try_get("event_type").map_err(classify)?,
        quarantined_at: time(row.try_get("quarantined_at").map_err(classify)?),
        requests: row.try_get("requests").map_err(classify)?,
        raw,
    })
}

fn delivery(row: &SqliteRow) -> Result<RawEvent, StoreError> {
    let attributes: &[u8] = row.try_get("attributes").map_err(classify)?;
    let publish_time: Option<i64> = row.try_get("publish_time").map_err(classify)?;
    Ok(RawEvent {
        data: Bytes::from(row.try_get::<Vec<u8>, _>("payload").map_err(classify)?),
        attributes: serde_json::from_slice(attributes).map_err(|_| corrupt("attributes"))?,
        message_id: row.try_get("message_id").map_err(classify)?,
        publish_time: publish_time.map(time),
        ordering_key: row.try_get("ordering_key").map_err(classify)?,
        delivery_attempt: None,
    })
}

impl SqliteStore {
    /// The claim of a quarantine row that retention has forgotten, as it was put aside.
    fn forgotten_claim(&self, row: &SqliteRow) -> Result<Row, StoreError> {
        let now = self.clock.now();
        let deadline: Option<i64> = row.try_get("deadline").map_err(classify)?;
        Ok(Row {
            key: rows::key(row)?,
            event_id: EventId::new(row.try_get::<String, _>("event_id").map_err(classify)?),
            event_type: row.try_get("event_type").map_err(classify)?,
            fingerprint: rows::fingerprint(row)?,
            state: State::Quarantined,
            phase: Phase::NotBegun,
            strict: row.try_get("strict").map_err(classify)?,
            epoch: row.try_get("epoch").map_err(classify)?,
            failures: 0,
            lost: 0,
            nonce: rows::nonce(row)?,
            lease_until: now,
            deadline: deadline.map(time),
            not_before: None,
            first_seen_at: now,
            finished_at: Some(now),
            note: String::new(),
        })
    }
}

#[async_trait]
impl ClaimLog for SqliteStore {
    async fn quarantined(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let rows = sqlx::query(statements::NEWEST).bind(limit).fetch_all(&self.pool).await.map_err(classify)?;
        rows.iter().map(|row| shown(row, None)).collect()
    }

    async fn show(&self, key: Key) -> Result<Option<ClaimRecord>, StoreError> {
        let mut db = self.pool.acquire().await.map_err(classify)?;
        Ok(rows::find(&mut db, key).await?.map(ClaimRecord::from))
    }

    async fn requeue(&self, seq: i64, by: &str) -> Result<Requeued, StoreError> {
        let mut tx = self.begin().await?;
        let open = sqlx::query(statements::FIND_OPEN).bind(seq).fetch_optional(&mut *tx).await.map_err(classify)?;
        let Some(open) = open else { return Ok(Requeued::NotFound) };
        let (reason, seen) = (reason(&open)?, rows::nonce(&open)?);
        let posts_only = reason == Reason::ReplyUndelivered;
        let mut claim = match rows::find(&mut tx, rows::key(&open)?).await? {
            _ if reason == Reason::Mismatch => return Ok(Requeued::NoPayload),
            None if posts_only => return Ok(Requeued::NoPayload),
            None => self.forgotten_claim(&open)?,
            Some(claim) => claim,
        };
        let now = self.clock.now();
        if claim.nonce == seen && claim.may_still_run(now) {
            return Ok(Requeued::MayStillRun);
        }
        match claim.requeue(seen, posts_only, now) {
            Change::Repeated | Change::Lost => return Ok(Requeued::NotFound),
            Change::Made => rows::write(&mut tx, &claim).await?,
        }
        let query = sqlx::query(statements::REQUEST).bind(seq).bind(micros(now)).bind(by).bind(claim.epoch);
        query.execute(&mut *tx).await.map_err(classify)?;
        tx.commit().await.map_err(classify)?;
        Ok(Requeued::Yes)
    }

    async fn close(&self, seq: i64, resolution: &str) -> Result<bool, StoreError> {
        let query = sqlx::query(statements::CLOSE).bind(seq).bind(micros(self.clock.now())).bind(resolution);
        Ok(query.execute(&self.pool).await.map_err(classify)?.rows_affected() == 1)
    }

    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let now = self.clock.now();
        let live_from = before(now, self.lease.grace());
        let query = sqlx::query(statements::REPLAYABLE).bind(limit).bind(micros(live_from)).bind(micros(now));
        let rows = query.fetch_all(&self.pool).await.map_err(classify)?;
        rows.iter().map(|row| shown(row, Some(Arc::new(delivery(row)?)))).collect()
    }
}
