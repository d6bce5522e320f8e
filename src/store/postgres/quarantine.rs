//! Writing to quarantine. The claim row and the quarantine row are written by one statement, or neither.

use sqlx::types::Uuid;

use super::{
    PostgresStore,
    connection::Lane,
    row::{attributes, payload_hash, text},
};
use crate::{
    claim::{ClaimIntent, State},
    outcome::{Certainty, Reason},
    store::StoreError,
};

/// What the claim row must be for it to be quarantined, beside naming the nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// Running: by its owner.
    Own,
    /// Running with a lease that is over, on a server whose leases can be trusted: by anybody.
    Stale,
    /// Between two attempts: by anybody.
    Resting,
}

/// How an attempt ended in quarantine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict<'a> {
    pub(super) reason: Reason,
    pub(super) counts: bool,
    pub(super) certainty: Certainty,
    pub(super) detail: &'a str,
}

impl PostgresStore {
    /// Quarantines a row another attempt left behind; false when it moved on meanwhile.
    pub(super) async fn quarantine_seen(
        &self,
        intent: &ClaimIntent,
        seen: Uuid,
        guard: Guard,
        reason: Reason,
    ) -> Result<bool, StoreError> {
        let verdict = Verdict { reason, counts: false, certainty: Certainty::Open, detail: "" };
        self.quarantine(intent, seen, guard, verdict).await
    }

    /// The claim row to QUARANTINED (DONE where only the reply failed) and the payload to quarantine.
    pub(super) async fn quarantine(
        &self,
        intent: &ClaimIntent,
        nonce: Uuid,
        guard: Guard,
        verdict: Verdict<'_>,
    ) -> Result<bool, StoreError> {
        let state = if verdict.reason == Reason::ReplyUndelivered { State::Done } else { State::Quarantined };
        let query = sqlx::query_scalar!(
            r#"WITH q AS (
                UPDATE claims SET
                    state = $3, failures = failures + $4, strict = strict OR $5, finished_at = clock_timestamp(),
                    deadline = CASE WHEN $6 THEN NULL ELSE deadline END, note = $7
                WHERE key = $1 AND nonce = $2 AND CASE
                    WHEN $8 THEN state = 1
                    WHEN $9 THEN state = 1 AND phase <> 2 AND $10
                        AND lease_until + $11::bigint * interval '1 microsecond' < clock_timestamp()
                        AND server_identity() = $12
                    ELSE state = 3 END
                RETURNING key, epoch, nonce, strict
            ),
            i AS (
                INSERT INTO quarantine (key, epoch, nonce, strict, reason, detail, event_id, event_type, fingerprint,
                    message_id, publish_time, payload, payload_hash, attributes)
                SELECT q.key, q.epoch, q.nonce, q.strict, $7, $13, $14, $15, $16, $17, $18, $19, $20, $21 FROM q
                ON CONFLICT DO NOTHING
            )
            SELECT count(*) AS "moved!" FROM q"#,
            intent.key.as_uuid(),
            nonce,
            state.code(),
            i32::from(verdict.counts),
            intent.strict,
            verdict.certainty != Certainty::Open,
            verdict.reason.as_str(),
            guard == Guard::Own,
            guard == Guard::Stale,
            self.holdoff.left().is_none(),
            self.grace_us(),
            self.holdoff.server(),
            verdict.detail,
            text(intent.event_id.as_str()),
            text(&intent.event_type),
            intent.fingerprint.0.as_slice(),
            text(&intent.raw.message_id),
            intent.raw.publish_time,
            intent.raw.data.as_ref(),
            payload_hash(&intent.raw),
            attributes(&intent.raw),
        );
        let moved = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        Ok(moved > 0)
    }

    /// An event so old that its row may have been forgotten gets a final row, so that its other copies are acked and
    /// an operator can put it back; false when there is a row by now.
    pub(super) async fn quarantine_too_old(&self, intent: &ClaimIntent) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar!(
            r#"WITH q AS (
                INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce,
                    lease_until, finished_at, note)
                VALUES ($1, $2, $3, $4, 4, 0, $5, 1, $6, clock_timestamp(), clock_timestamp(), $7)
                ON CONFLICT (key) DO NOTHING
                RETURNING key, epoch, nonce, strict
            ),
            i AS (
                INSERT INTO quarantine (key, epoch, nonce, strict, reason, event_id, event_type, fingerprint,
                    message_id, publish_time, payload, payload_hash, attributes)
                SELECT q.key, q.epoch, q.nonce, q.strict, $7, $2, $3, $4, $8, $9, $10, $11, $12 FROM q
                ON CONFLICT DO NOTHING
            )
            SELECT count(*) AS "moved!" FROM q"#,
            intent.key.as_uuid(),
            text(intent.event_id.as_str()),
            text(&intent.event_type),
            intent.fingerprint.0.as_slice(),
            intent.strict,
            intent.nonce.as_uuid(),
            Reason::TooOld.as_str(),
            text(&intent.raw.message_id),
            intent.raw.publish_time,
            intent.raw.data.as_ref(),
            payload_hash(&intent.raw),
            attributes(&intent.raw),
        );
        let moved = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        Ok(moved > 0)
    }

    /// Keeps the payload of an event that carries another one's id, once, under the attempt its row names; false when
    /// it was kept before. The claim row stays with the event it belongs to.
    pub(super) async fn record_mismatch(
        &self,
        intent: &ClaimIntent,
        nonce: Uuid,
        epoch: i32,
    ) -> Result<bool, StoreError> {
        let query = sqlx::query!(
            "INSERT INTO quarantine (key, epoch, nonce, strict, reason, event_id, event_type, fingerprint,
                message_id, publish_time, payload, payload_hash, attributes)
            SELECT $1::uuid, $2::integer, $3::uuid, $4::boolean, $5::text, $6::text, $7::text, $8::bytea, $9::text,
                $10::timestamptz, $11::bytea, $12::bytea, $13::bytea
            WHERE NOT EXISTS (
                SELECT 1 FROM quarantine WHERE key = $1 AND reason = $5 AND payload_hash = $12)
            ON CONFLICT DO NOTHING",
            intent.key.as_uuid(),
            epoch,
            nonce,
            intent.strict,
            Reason::Mismatch.as_str(),
            text(intent.event_id.as_str()),
            text(&intent.event_type),
            intent.fingerprint.0.as_slice(),
            text(&intent.raw.message_id),
            intent.raw.publish_time,
            intent.raw.data.as_ref(),
            payload_hash(&intent.raw),
            attributes(&intent.raw),
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        Ok(done.rows_affected() == 1)
    }
}
