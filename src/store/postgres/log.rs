//! What operators and the replay source ask for.

use super::{
    PostgresStore,
    connection::Lane,
    row::{Quarantined, state, text},
};
use crate::{
    claim::Key,
    outcome::Reason,
    store::{ClaimRecord, QuarantineRow, Requeued, StoreError},
};

/// A quarantine row with its claim, as a requeue that changed nothing finds them.
struct Found {
    reason: String,
    has_payload: bool,
    settled: bool,
    has_claim: bool,
    may_run: bool,
}

impl Found {
    /// Why nothing was put back.
    fn verdict(&self) -> Requeued {
        let reply_only = self.reason == Reason::ReplyUndelivered.as_str();
        if self.settled {
            Requeued::NotFound
        } else if !self.has_payload || self.reason == Reason::Mismatch.as_str() || (reply_only && !self.has_claim) {
            Requeued::NoPayload
        } else if self.may_run {
            Requeued::MayStillRun
        } else {
            // Put back before, or another attempt has the event by now.
            Requeued::NotFound
        }
    }
}

impl PostgresStore {
    pub(super) async fn newest_quarantined(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let query = sqlx::query_as!(
            Quarantined,
            r#"SELECT seq, key, epoch, nonce, reason, detail, event_id, event_type, quarantined_at,
                (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS "requests!",
                message_id, publish_time, NULL::bytea AS payload, NULL::bytea AS attributes
            FROM quarantine q WHERE settled_at IS NULL ORDER BY seq DESC LIMIT $1"#,
            i64::from(limit),
        );
        let rows = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }

    pub(super) async fn record(&self, key: Key) -> Result<Option<ClaimRecord>, StoreError> {
        let query = sqlx::query!(
            "SELECT event_id, event_type, state, epoch, failures, lost, strict, note, first_seen_at, finished_at
            FROM claims WHERE key = $1",
            key.as_uuid(),
        );
        let row = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_optional(wire))).await?;
        row.map(|row| {
            Ok(ClaimRecord {
                key,
                event_id: row.event_id,
                event_type: row.event_type,
                state: state(row.state)?,
                epoch: row.epoch.unsigned_abs(),
                failures: u16::try_from(row.failures).unwrap_or(u16::MAX),
                lost: u16::try_from(row.lost).unwrap_or(u16::MAX),
                strict: row.strict,
                note: row.note,
                first_seen_at: row.first_seen_at,
                finished_at: row.finished_at,
            })
        })
        .transpose()
    }

    /// The claim row becomes claimable under the next epoch and the quarantine row the delivery, in one statement. A
    /// claim row that retention has removed is made again. Where only the reply failed, only the reply is due again.
    pub(super) async fn put_back(&self, seq: i64, by: &str) -> Result<Requeued, StoreError> {
        let query = sqlx::query_scalar!(
            r#"WITH r AS (
                SELECT * FROM quarantine
                WHERE seq = $1 AND settled_at IS NULL AND payload IS NOT NULL AND reason <> 'mismatch'
            ),
            c AS (
                UPDATE claims c SET
                    state = 3, phase = CASE WHEN r.reason = 'reply_undelivered' THEN 2 ELSE 0 END,
                    epoch = c.epoch + 1, failures = 0, lost = 0, not_before = clock_timestamp(), finished_at = NULL,
                    deadline = NULL, note = 'requeued'
                FROM r
                WHERE c.key = r.key AND c.nonce = r.nonce
                    AND c.state = CASE WHEN r.reason = 'reply_undelivered' THEN 2 ELSE 4 END
                    AND coalesce(c.deadline < clock_timestamp(), true)
                RETURNING c.epoch
            ),
            i AS (
                INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce,
                    lease_until, not_before, note)
                SELECT r.key, r.event_id, r.event_type, r.fingerprint, 3, 0, r.strict, r.epoch + 1, r.nonce,
                    clock_timestamp(), clock_timestamp(), 'requeued'
                FROM r
                WHERE r.reason <> 'reply_undelivered' AND NOT EXISTS (SELECT 1 FROM claims WHERE key = r.key)
                ON CONFLICT (key) DO NOTHING
                RETURNING epoch
            ),
            n AS (SELECT epoch FROM c UNION ALL SELECT epoch FROM i),
            u AS (
                UPDATE quarantine SET
                    requested_at = clock_timestamp(), requested_epoch = n.epoch,
                    requested_by = $2
                FROM n WHERE seq = $1
            )
            SELECT count(*) AS "moved!" FROM n"#,
            seq,
            text(by),
        );
        let moved = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        if moved > 0 { Ok(Requeued::Yes) } else { self.why_not_put_back(seq).await }
    }

    async fn why_not_put_back(&self, seq: i64) -> Result<Requeued, StoreError> {
        let query = sqlx::query_as!(
            Found,
            r#"SELECT q.reason, q.payload IS NOT NULL AS "has_payload!", q.settled_at IS NOT NULL AS "settled!",
                c.key IS NOT NULL AS "has_claim!",
                coalesce(c.nonce = q.nonce AND c.deadline >= clock_timestamp(), false) AS "may_run!"
            FROM quarantine q LEFT JOIN claims c ON c.key = q.key
            WHERE q.seq = $1"#,
            seq,
        );
        let found = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_optional(wire))).await?;
        Ok(found.map_or(Requeued::NotFound, |found| found.verdict()))
    }

    pub(super) async fn close_row(&self, seq: i64, resolution: &str) -> Result<bool, StoreError> {
        let query = sqlx::query!(
            "UPDATE quarantine SET settled_at = clock_timestamp(), closed_at = clock_timestamp(), resolution = $2
            WHERE seq = $1 AND settled_at IS NULL",
            seq,
            text(resolution),
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        Ok(done.rows_affected() == 1)
    }

    /// Requested and unsettled, unless somebody is at it or it is not due. A claim that is final by now is offered
    /// too: the replay source closes the row with it.
    pub(super) async fn due_replays(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let query = sqlx::query_as!(
            Quarantined,
            r#"SELECT q.seq, q.key, q.epoch, q.nonce, q.reason, q.detail, q.event_id, q.event_type, q.quarantined_at,
                (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS "requests!",
                q.message_id, q.publish_time, q.payload, q.attributes
            FROM quarantine q LEFT JOIN claims c ON c.key = q.key
            WHERE q.requested_at IS NOT NULL AND q.settled_at IS NULL AND q.payload IS NOT NULL
                AND (c.state = 1 AND c.lease_until + $2::bigint * interval '1 microsecond' > clock_timestamp())
                    IS NOT TRUE
                AND (c.state = 3 AND c.not_before > clock_timestamp()) IS NOT TRUE
            ORDER BY q.requested_at LIMIT $1"#,
            i64::from(limit),
            self.grace_us(),
        );
        let rows = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        Ok(rows.into_iter().map(Into::into).collect())
    }
}
