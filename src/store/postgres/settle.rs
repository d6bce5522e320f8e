//! How an attempt ends.

use sqlx::types::Uuid;

use super::{
    PostgresStore,
    connection::Lane,
    micros,
    quarantine::{Guard, Verdict},
    row::{state, text},
};
use crate::{
    claim::{ClaimIntent, ClaimRef, State},
    outcome::{Certainty, Outcome, Reason},
    store::StoreError,
};

/// Written where the server refused the handler's own words.
const FIXED_NOTE: &str = "(what the handler said could not be stored)";

/// How an attempt is put back.
#[derive(Debug, Clone, Copy)]
struct HandBack<'a> {
    counts: bool,
    after_us: i64,
    certainty: Certainty,
    note: &'a str,
}

impl PostgresStore {
    /// Writes the outcome. Where the row is not what the write needs, it looks whether this very outcome was written
    /// before and only its answer was lost.
    pub(super) async fn settle_attempt(&self, claim: &ClaimRef, outcome: &Outcome) -> Result<(), StoreError> {
        let (written, state) = match outcome {
            Outcome::Done => (self.complete(claim).await?, State::Done),
            Outcome::Retry { counts, after, certainty, note } => {
                let after_us = after.map(micros).unwrap_or_default();
                let back = HandBack { counts: *counts, after_us, certainty: *certainty, note: note.as_str() };
                let written = match self.hand_back(claim, back).await {
                    Err(StoreError::Refused(_)) => self.hand_back(claim, HandBack { note: FIXED_NOTE, ..back }).await,
                    other => other,
                };
                (written?, State::Retry)
            }
            Outcome::Quarantine { reason, counts, certainty, detail } => {
                let verdict =
                    Verdict { reason: *reason, counts: *counts, certainty: *certainty, detail: detail.as_str() };
                let (intent, nonce) = (claim.intent(), claim.nonce().as_uuid());
                let written = match self.quarantine(intent, nonce, Guard::Own, verdict).await {
                    Err(StoreError::Refused(_)) => {
                        let verdict = Verdict { detail: FIXED_NOTE, ..verdict };
                        self.quarantine(intent, nonce, Guard::Own, verdict).await
                    }
                    other => other,
                };
                let state = if *reason == Reason::ReplyUndelivered { State::Done } else { State::Quarantined };
                (written?, state)
            }
        };
        if written || self.ended_so(claim, state).await? { Ok(()) } else { Err(StoreError::ClaimLost) }
    }

    /// "Done" from whoever the row names, whatever happened to it meanwhile; where the row is gone (a failover to a
    /// server that lagged) it is inserted.
    async fn complete(&self, claim: &ClaimRef) -> Result<bool, StoreError> {
        Ok(self.mark_done(claim).await? || self.insert_done(claim.intent()).await?)
    }

    async fn mark_done(&self, claim: &ClaimRef) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar!(
            r#"WITH d AS (
                UPDATE claims SET state = 2, finished_at = coalesce(finished_at, clock_timestamp())
                WHERE key = $1 AND nonce = $2
                RETURNING key, nonce, phase
            ),
            r AS (DELETE FROM replies USING d WHERE d.phase = 2 AND replies.key = d.key),
            q AS (
                UPDATE quarantine SET resolution = 'late_success', settled_at = clock_timestamp()
                FROM d WHERE quarantine.key = d.key AND quarantine.nonce = d.nonce AND settled_at IS NULL
                    AND reason NOT IN ('mismatch', 'reply_undelivered')
            )
            SELECT count(*) AS "moved!" FROM d"#,
            claim.key().as_uuid(),
            claim.nonce().as_uuid(),
        );
        let moved = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        Ok(moved == 1)
    }

    async fn insert_done(&self, intent: &ClaimIntent) -> Result<bool, StoreError> {
        let query = sqlx::query!(
            "INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce,
                lease_until, finished_at, note)
            VALUES ($1, $2, $3, $4, 2, 1, $5, 1, $6, clock_timestamp(), clock_timestamp(), 'inserted by its completion')
            ON CONFLICT (key) DO NOTHING",
            intent.key.as_uuid(),
            text(intent.event_id.as_str()),
            text(&intent.event_type),
            intent.fingerprint.0.as_slice(),
            intent.strict,
            intent.nonce.as_uuid(),
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        Ok(done.rows_affected() == 1)
    }

    /// Retry (costs a failure) or hand back (costs nothing). A strict event whose handler certainly did nothing may
    /// begin anew; any other keeps the phase that says it may have run.
    async fn hand_back(&self, claim: &ClaimRef, back: HandBack<'_>) -> Result<bool, StoreError> {
        let query = sqlx::query!(
            "UPDATE claims SET
                state = 3,
                phase = CASE WHEN phase = 2 THEN 2 WHEN strict AND $3 THEN 0 ELSE phase END,
                failures = failures + $4,
                not_before = clock_timestamp() + $5::bigint * interval '1 microsecond',
                deadline = CASE WHEN $6 THEN NULL ELSE deadline END,
                note = $7
            WHERE key = $1 AND nonce = $2 AND state = 1",
            claim.key().as_uuid(),
            claim.nonce().as_uuid(),
            back.certainty == Certainty::NotRun,
            i32::from(back.counts),
            back.after_us,
            back.certainty != Certainty::Open,
            back.note,
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        Ok(done.rows_affected() == 1)
    }

    /// Whether this attempt's own write of `ended` is what the row shows.
    async fn ended_so(&self, claim: &ClaimRef, ended: State) -> Result<bool, StoreError> {
        let query = sqlx::query!("SELECT state, nonce FROM claims WHERE key = $1", claim.key().as_uuid());
        let row = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_optional(wire))).await?;
        let nonce: Uuid = claim.nonce().as_uuid();
        row.map_or(Ok(false), |row| Ok(row.nonce == nonce && state(row.state)? == ended))
    }
}
