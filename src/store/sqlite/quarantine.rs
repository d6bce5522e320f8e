//! Quarantine rows: written along with claims, read by operators and the replay source.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use sqlx::sqlite::SqliteRow;

use super::{
    SqliteStore,
    database::Held,
    rows::{self, corrupt, get, micros, time},
};
use crate::{
    claim::{ClaimRef, Nonce, row::before},
    event::RawEvent,
    outcome::{Note, Reason},
    store::{Aside, Quarantine, QuarantineRow, Quarantined, StoreError},
};

/// Puts a payload aside under this attempt; false = it is there already.
pub(super) async fn add(
    db: &mut Held<'_>,
    aside: &Aside,
    epoch: u32,
    nonce: Nonce,
    strict: bool,
) -> Result<bool, StoreError> {
    let (event, raw) = (&aside.intent.event, &aside.intent.raw);
    let attributes = serde_json::to_vec(&raw.attributes).map_err(StoreError::refused)?;
    let insert = sqlx::query(
        "INSERT INTO quarantine (key, epoch, nonce, reason, detail, event_id, event_type, fingerprint, strict,
            message_id, ordering_key, publish_time, payload, payload_hash, attributes, quarantined_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) ON CONFLICT DO NOTHING",
    );
    let insert = insert
        .bind(event.key.as_uuid())
        .bind(epoch)
        .bind(nonce.as_uuid())
        .bind(aside.reason.as_str())
        .bind(aside.detail.as_str())
        .bind(event.event_id.as_str())
        .bind(&event.event_type)
        .bind(&event.fingerprint.0[..])
        .bind(strict)
        .bind(&raw.message_id)
        .bind(&raw.ordering_key)
        .bind(raw.publish_time.map(micros))
        .bind(&raw.data[..])
        .bind(Sha256::digest(&raw.data).to_vec())
        .bind(attributes)
        .bind(micros(db.now));
    Ok(db.write(insert).await? == 1)
}

/// The attempt turned out to have succeeded. A mismatch carries its nonce, but is another event.
pub(super) async fn late_success(db: &mut Held<'_>, claim: ClaimRef) -> Result<(), StoreError> {
    let update = sqlx::query(
        "UPDATE quarantine SET resolution = 'late_success', settled_at = ?3
        WHERE key = ?1 AND nonce = ?2 AND settled_at IS NULL AND reason <> 'mismatch'",
    );
    db.write(update.bind(claim.key.as_uuid()).bind(claim.nonce.as_uuid()).bind(micros(db.now))).await?;
    Ok(())
}

/// Notes that an operator puts the row back under `epoch`; false = there is no such row, or it is settled.
pub(super) async fn request(db: &mut Held<'_>, seq: i64, by: &Note, epoch: u32) -> Result<bool, StoreError> {
    let update = sqlx::query(
        "UPDATE quarantine SET requested_at = ?2, requested_by = ?3, requested_epoch = ?4
        WHERE seq = ?1 AND settled_at IS NULL",
    );
    Ok(db.write(update.bind(seq).bind(micros(db.now)).bind(by.as_str()).bind(epoch)).await? == 1)
}

pub(super) fn reason(row: &SqliteRow) -> Result<Reason, StoreError> {
    Reason::from_name(get(row, "reason")?).ok_or_else(|| corrupt("reason"))
}

fn shown(row: &SqliteRow, raw: Option<Arc<RawEvent>>) -> Result<QuarantineRow, StoreError> {
    let event = rows::identity(row)?;
    Ok(QuarantineRow {
        seq: get(row, "seq")?,
        key: event.key,
        epoch: get(row, "epoch")?,
        nonce: rows::nonce(row)?,
        reason: reason(row)?,
        detail: get(row, "detail")?,
        event_id: event.event_id.as_str().to_owned(),
        event_type: event.event_type,
        quarantined_at: time(get(row, "quarantined_at")?),
        requests: get(row, "requests")?,
        raw,
    })
}

fn delivery(row: &SqliteRow) -> Result<RawEvent, StoreError> {
    Ok(RawEvent {
        data: Bytes::from(get::<Vec<u8>>(row, "payload")?),
        attributes: serde_json::from_slice(get(row, "attributes")?).map_err(|_| corrupt("attributes"))?,
        message_id: get(row, "message_id")?,
        publish_time: get::<Option<i64>>(row, "publish_time")?.map(time),
        ordering_key: get(row, "ordering_key")?,
        delivery_attempt: None,
    })
}

#[async_trait]
impl Quarantine for SqliteStore {
    async fn put_aside(&self, aside: &Aside, epoch: u32, nonce: Nonce) -> Result<bool, StoreError> {
        let mut db = self.database.begin().await?;
        let added = add(&mut db, aside, epoch, nonce, aside.intent.strict).await?;
        db.commit().await?;
        Ok(added)
    }

    async fn find(&self, seq: i64) -> Result<Option<Quarantined>, StoreError> {
        let find = sqlx::query("SELECT *, settled_at IS NOT NULL AS settled FROM quarantine WHERE seq = ?1").bind(seq);
        let found = |row: &SqliteRow| {
            Ok(Quarantined {
                event: rows::identity(row)?,
                epoch: get(row, "epoch")?,
                nonce: rows::nonce(row)?,
                reason: reason(row)?,
                strict: get(row, "strict")?,
                settled: get(row, "settled")?,
                has_payload: true,
            })
        };
        self.database.rows(find).await?.first().map(found).transpose()
    }

    async fn close(&self, seq: i64, resolution: &Note) -> Result<bool, StoreError> {
        let close =
            sqlx::query("UPDATE quarantine SET settled_at = ?2, resolution = ?3 WHERE seq = ?1 AND settled_at IS NULL");
        let close = close.bind(seq).bind(micros(self.database.clock.now())).bind(resolution.as_str());
        Ok(self.database.write(close).await? == 1)
    }

    async fn newest(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let newest = sqlx::query(
            "SELECT q.seq, q.key, q.epoch, q.nonce, q.reason, q.detail, q.event_id, q.event_type, q.fingerprint,
                q.quarantined_at,
                (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS requests
            FROM quarantine q WHERE q.settled_at IS NULL ORDER BY q.seq DESC LIMIT ?1",
        );
        self.database.rows(newest.bind(limit)).await?.iter().map(|row| shown(row, None)).collect()
    }

    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        // Due = neither running under a live lease (?2 = now less grace) nor waiting for its time (?3 = now).
        let due = sqlx::query(
            "SELECT q.*,
                (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS requests
            FROM quarantine q LEFT JOIN claims c ON c.key = q.key
            WHERE q.settled_at IS NULL AND q.requested_at IS NOT NULL
              AND NOT (coalesce(c.state, 0) = 1 AND c.lease_until >= ?2)
              AND NOT (coalesce(c.state, 0) = 3 AND coalesce(c.not_before, 0) > ?3)
            ORDER BY q.seq LIMIT ?1",
        );
        let now = self.database.clock.now();
        let due = due.bind(limit).bind(micros(before(now, self.lease.grace()))).bind(micros(now));
        let shown = |row| shown(row, Some(Arc::new(delivery(row)?)));
        self.database.rows(due).await?.iter().map(shown).collect()
    }
}
