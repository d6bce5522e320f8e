//! Whether the server can be used, what may be forgotten, and what gauges show.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    PostgresStore,
    connection::Lane,
    error::{Unfit, sqlstate},
    micros,
    row::reason,
};
use crate::{
    outcome::Reason,
    store::{Counts, Readiness, StoreError},
};

/// The schema this code reads and writes.
pub(super) const NEEDED_SCHEMA: i64 = 1;
/// This code's own number, compared with the oldest one a schema admits.
pub(super) const CODE: i64 = 1;

/// Rows per delete: long enough to be worth a commit, short enough that no claim waits for it.
const STEP: i64 = 2_000;
/// Between two steps, so that the disk serves claims in between.
const PAUSE: Duration = Duration::from_millis(200);
/// Steps per call: the caller's next round takes the rest.
const STEPS: u32 = 10;
/// A claim untouched for so long after it was due has no delivery any more: the longest backoff and an hour.
const STRANDED_AFTER: Duration = Duration::from_secs(3_600 + 600);
/// How many of the newest events the gauges look at. There is no index on what changes, on purpose.
const COUNTED: i64 = 100_000;

impl PostgresStore {
    pub(super) async fn readiness(&self) -> Result<Readiness, StoreError> {
        match self.connections.session().await {
            Ok(session) => match session.unfit() {
                Some(unfit) => Ok(Readiness::Unfit(unfit)),
                None => self.schema().await,
            },
            Err(StoreError::Unknown(cause)) => match cause.downcast::<Unfit>() {
                Ok(unfit) => Ok(Readiness::Unfit(unfit.0)),
                Err(cause) => Err(StoreError::Unknown(cause)),
            },
            Err(other) => Err(other),
        }
    }

    async fn schema(&self) -> Result<Readiness, StoreError> {
        let query = sqlx::query!("SELECT version, min_code FROM schema_info");
        let found = match self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_optional(wire))).await {
            // No such table: nothing was ever migrated.
            Err(error) if sqlstate(&error) == Some("42P01") => None,
            other => other?,
        };
        Ok(match found {
            None => Readiness::SchemaTooOld { found: 0, needed: NEEDED_SCHEMA },
            Some(schema) if schema.version < NEEDED_SCHEMA => {
                Readiness::SchemaTooOld { found: schema.version, needed: NEEDED_SCHEMA }
            }
            Some(schema) if schema.min_code > CODE => Readiness::CodeTooOld { min_code: schema.min_code, mine: CODE },
            Some(_) => Readiness::Ready,
        })
    }

    /// Steps until nothing is left or the call has done its share.
    pub(super) async fn expire_in_steps(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for step in 0..STEPS {
            if step > 0 {
                sleep(PAUSE).await;
            }
            let claims = self.forget_finished().await?;
            let rows = self.forget_settled(quarantine_retention).await?;
            deleted += claims + rows;
            if claims.max(rows) < STEP.unsigned_abs() {
                break;
            }
        }
        Ok(deleted)
    }

    async fn forget_finished(&self) -> Result<u64, StoreError> {
        let query = sqlx::query_scalar!(
            r#"WITH gone AS (
                DELETE FROM claims WHERE key IN (
                    SELECT key FROM claims
                    WHERE state IN (2, 4) AND first_seen_at < clock_timestamp() - $1::bigint * interval '1 microsecond'
                    ORDER BY first_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED)
                RETURNING key
            ),
            r AS (DELETE FROM replies USING gone WHERE replies.key = gone.key)
            SELECT count(*) AS "gone!" FROM gone"#,
            micros(self.retention),
            STEP,
        );
        let gone = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        Ok(gone.unsigned_abs())
    }

    /// Rows, payload and all, that a human, a late verdict or a replay has dealt with. What is not settled is somebody's
    /// event still: it is never forgotten.
    async fn forget_settled(&self, retention: Duration) -> Result<u64, StoreError> {
        let query = sqlx::query!(
            "DELETE FROM quarantine WHERE seq IN (
                SELECT seq FROM quarantine
                WHERE settled_at IS NOT NULL AND quarantined_at < clock_timestamp() - $1::bigint * interval '1 microsecond'
                ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED)",
            micros(retention),
            STEP,
        );
        Ok(self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?.rows_affected())
    }

    pub(super) async fn count_rows(&self) -> Result<Counts, StoreError> {
        let query = sqlx::query!(
            r#"SELECT reason, count(*) AS "rows!", min(quarantined_at) AS oldest
            FROM quarantine WHERE settled_at IS NULL GROUP BY reason"#
        );
        let open = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        let query = sqlx::query!(
            r#"SELECT
                count(*) FILTER (WHERE state = 1
                    AND lease_until + $1::bigint * interval '1 microsecond' < clock_timestamp()) AS "stale!",
                count(*) FILTER (WHERE state IN (1, 3)
                    AND CASE WHEN state = 1 THEN lease_until ELSE not_before END
                        < clock_timestamp() - $2::bigint * interval '1 microsecond') AS "stranded!"
            FROM (SELECT state, lease_until, not_before FROM claims ORDER BY first_seen_at DESC LIMIT $3) newest"#,
            self.grace_us(),
            micros(STRANDED_AFTER),
            COUNTED,
        );
        let claims = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        Ok(Counts {
            oldest_quarantined_at: open.iter().filter_map(|row| row.oldest).min(),
            quarantined: by_reason(open.into_iter().map(|row| (reason(&row.reason), row.rows.unsigned_abs()))),
            stale: claims.stale.unsigned_abs(),
            stranded: claims.stranded.unsigned_abs(),
        })
    }
}

/// In the order of listings; names this code does not know count as an operator's.
fn by_reason(rows: impl Iterator<Item = (Reason, u64)>) -> Vec<(Reason, u64)> {
    let rows: Vec<_> = rows.collect();
    let total = |wanted| rows.iter().filter(|(reason, _)| *reason == wanted).map(|(_, rows)| rows).sum();
    Reason::ALL.into_iter().map(|reason| (reason, total(reason))).filter(|(_, rows)| *rows > 0).collect()
}
