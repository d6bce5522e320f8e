//! The quarantine rows. What a claim row's write puts there comes with its swap.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use sqlx::types::Uuid;

use super::{
    PostgresStore,
    connection::Lane,
    row::{Meaningless, identity, interval, number, reason, storable, text},
};
use crate::{
    claim::Nonce,
    event::RawEvent,
    outcome::{Note, Reason},
    store::{Aside, Quarantine, QuarantineRow, Quarantined, StoreError},
};

/// A delivery as its columns take it.
pub(super) struct Payload<'a> {
    pub(super) message_id: String,
    pub(super) publish_time: Option<DateTime<Utc>>,
    pub(super) data: &'a [u8],
    /// Tells two payloads under one key apart.
    pub(super) hash: [u8; 32],
    /// A JSON object, as bytes: a text column refuses NUL.
    pub(super) attributes: Vec<u8>,
}

impl<'a> Payload<'a> {
    pub(super) fn of(raw: &'a RawEvent) -> Self {
        Self {
            message_id: text(&raw.message_id),
            publish_time: raw.publish_time.map(storable),
            data: &raw.data,
            hash: Sha256::digest(&raw.data).into(),
            attributes: serde_json::to_vec(&raw.attributes).unwrap_or_default(),
        }
    }
}

/// A quarantine row as listings read it.
struct Listed {
    seq: i64,
    key: Uuid,
    epoch: i32,
    nonce: Uuid,
    reason: String,
    detail: String,
    event_id: String,
    event_type: String,
    quarantined_at: DateTime<Utc>,
    requests: i64,
    message_id: String,
    publish_time: Option<DateTime<Utc>>,
    payload: Option<Vec<u8>>,
    attributes: Option<Vec<u8>>,
}

impl From<Listed> for QuarantineRow {
    fn from(row: Listed) -> Self {
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

#[async_trait]
impl Quarantine for PostgresStore {
    async fn put_aside(&self, aside: &Aside, epoch: u32, nonce: Nonce) -> Result<bool, StoreError> {
        let (event, payload) = (&aside.intent.event, Payload::of(&aside.intent.raw));
        let query = sqlx::query!(
            "INSERT INTO quarantine (key, epoch, nonce, strict, reason, detail, event_id, event_type, fingerprint,
                message_id, publish_time, payload, payload_hash, attributes)
            SELECT $1::uuid, $2::integer, $3::uuid, $4::boolean, $5::text, $6::text, $7::text, $8::text, $9::bytea,
                $10::text, $11::timestamptz, $12::bytea, $13::bytea, $14::bytea
            WHERE NOT EXISTS (SELECT 1 FROM quarantine WHERE key = $1 AND reason = $5 AND payload_hash = $13)
            ON CONFLICT DO NOTHING",
            event.key.as_uuid(),
            number(epoch),
            nonce.as_uuid(),
            aside.intent.strict,
            aside.reason.as_str(),
            aside.detail.as_str(),
            text(event.event_id.as_str()),
            text(&event.event_type),
            event.fingerprint.0.as_slice(),
            payload.message_id,
            payload.publish_time,
            payload.data,
            payload.hash.as_slice(),
            payload.attributes,
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        Ok(done.rows_affected() == 1)
    }

    async fn find(&self, seq: i64) -> Result<Option<Quarantined>, StoreError> {
        let query = sqlx::query!(
            r#"SELECT key, event_id, event_type, fingerprint, epoch, nonce, reason, strict,
                settled_at IS NOT NULL AS "settled!", payload IS NOT NULL AS "has_payload!"
            FROM quarantine WHERE seq = $1"#,
            seq,
        );
        let row = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_optional(wire))).await?;
        let Some(row) = row else { return Ok(None) };
        let event = identity(row.key, row.event_id, row.event_type, row.fingerprint);
        Ok(Some(Quarantined {
            event: event.ok_or_else(|| StoreError::refused(Meaningless(row.key)))?,
            epoch: row.epoch.unsigned_abs(),
            nonce: row.nonce.into(),
            reason: reason(&row.reason),
            strict: row.strict,
            settled: row.settled,
            has_payload: row.has_payload,
        }))
    }

    async fn close(&self, seq: i64, resolution: &Note) -> Result<bool, StoreError> {
        let query = sqlx::query!(
            "UPDATE quarantine SET settled_at = clock_timestamp(), closed_at = clock_timestamp(), resolution = $2
            WHERE seq = $1 AND settled_at IS NULL",
            seq,
            resolution.as_str(),
        );
        Ok(self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?.rows_affected() == 1)
    }

    async fn newest(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let query = sqlx::query_as!(
            Listed,
            r#"SELECT seq, key, epoch, nonce, reason, detail, event_id, event_type, quarantined_at,
                (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS "requests!",
                message_id, publish_time, NULL::bytea AS payload, NULL::bytea AS attributes
            FROM quarantine q WHERE settled_at IS NULL ORDER BY seq DESC LIMIT $1"#,
            i64::from(limit),
        );
        let rows = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    /// Rows whose claim is final are due too: the replay source closes them.
    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let query = sqlx::query_as!(
            Listed,
            r#"SELECT q.seq, q.key, q.epoch, q.nonce, q.reason, q.detail, q.event_id, q.event_type, q.quarantined_at,
                (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS "requests!",
                q.message_id, q.publish_time, q.payload, q.attributes
            FROM quarantine q LEFT JOIN claims c ON c.key = q.key
            WHERE q.requested_at IS NOT NULL AND q.settled_at IS NULL AND q.payload IS NOT NULL
                AND (c.state = 1 AND c.lease_until + $2::interval > clock_timestamp()) IS NOT TRUE
                AND (c.state = 3 AND c.not_before > clock_timestamp()) IS NOT TRUE
            ORDER BY q.requested_at LIMIT $1"#,
            i64::from(limit),
            interval(self.lease.grace()),
        );
        let rows = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}

/// In the order of listings.
pub(super) fn by_reason(rows: impl Iterator<Item = (Reason, u64)>) -> Vec<(Reason, u64)> {
    let rows: Vec<_> = rows.collect();
    let total = |wanted| rows.iter().filter(|(reason, _)| *reason == wanted).map(|(_, rows)| rows).sum();
    Reason::ALL.into_iter().map(|reason| (reason, total(reason))).filter(|(_, rows)| *rows > 0).collect()
}
