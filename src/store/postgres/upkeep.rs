//! Whether the server can be used, what may be forgotten, and what gauges show.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;

use super::{
    PostgresStore,
    connection::Lane,
    error::{Unfit, sqlstate},
    quarantine::by_reason,
    row::{interval, reason},
};
use crate::store::{Counts, EXPIRE_AT_ONCE, Readiness, StoreError, Upkeep};

/// The schema this code reads and writes.
pub(super) const NEEDED_SCHEMA: i64 = 2;
/// This code's own number, compared with the oldest one a schema admits.
pub(super) const CODE: i64 = 1;

/// Between two deletes, so that the disk serves claims in between.
const PAUSE: Duration = Duration::from_millis(200);
/// Steps per call: the caller's next round takes the rest.
const STEPS: u32 = 10;

#[async_trait]
impl Upkeep for PostgresStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        let session = match self.connections.session().await {
            Err(StoreError::Unknown(cause)) if cause.is::<Unfit>() => return Ok(Readiness::Unfit(cause.to_string())),
            session => session?,
        };
        match session.unfit() {
            Some(unfit) => Ok(Readiness::Unfit(unfit)),
            None => self.schema().await,
        }
    }

    /// Steps until nothing is left or the call has done its share.
    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        let mut deleted = 0;
        for step in 0..STEPS {
            if step > 0 {
                sleep(PAUSE).await;
            }
            let claims = self.forget_finished().await?;
            let rows = self.forget_settled(quarantine_retention).await?;
            deleted += claims + rows;
            if claims.max(rows) < u64::from(EXPIRE_AT_ONCE) {
                break;
            }
        }
        Ok(deleted)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let query = sqlx::query!(
            r#"SELECT reason, count(*) AS "rows!", min(quarantined_at) AS oldest
            FROM quarantine WHERE settled_at IS NULL GROUP BY reason"#
        );
        let open = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        let idle = self.count_idle().await?;
        Ok(Counts {
            oldest_quarantined_at: open.iter().filter_map(|row| row.oldest).min(),
            quarantined: by_reason(open.into_iter().map(|row| (reason(&row.reason), row.rows.unsigned_abs()))),
            stale: idle.stale,
            stranded: idle.stranded,
        })
    }
}

impl PostgresStore {
    async fn schema(&self) -> Result<Readiness, StoreError> {
        let query = sqlx::query!("SELECT version, min_code FROM schema_info");
        let found = match self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_optional(wire))).await {
            // No such table: nothing was ever migrated.
            Err(error) if sqlstate(&error) == Some("42P01") => None,
            other => other?,
        };
        let (version, min_code) = found.map_or((0, 0), |schema| (schema.version, schema.min_code));
        Ok(if version < NEEDED_SCHEMA {
            Readiness::SchemaTooOld { found: version, needed: NEEDED_SCHEMA }
        } else if min_code > CODE {
            Readiness::CodeTooOld { min_code, mine: CODE }
        } else {
            Readiness::Ready
        })
    }

    async fn forget_finished(&self) -> Result<u64, StoreError> {
        let query = sqlx::query!(
            "DELETE FROM claims WHERE key IN (
                SELECT key FROM claims
                WHERE state IN (2, 4) AND first_seen_at < clock_timestamp() - $1::interval
                ORDER BY first_seen_at LIMIT $2 FOR UPDATE SKIP LOCKED)",
            interval(self.retention),
            i64::from(EXPIRE_AT_ONCE),
        );
        Ok(self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?.rows_affected())
    }

    /// Rows, payload and all, that a human, a late verdict or a replay has dealt with. What is not settled is somebody's
    /// event still: it is never forgotten.
    async fn forget_settled(&self, retention: Duration) -> Result<u64, StoreError> {
        let query = sqlx::query!(
            "DELETE FROM quarantine WHERE seq IN (
                SELECT seq FROM quarantine
                WHERE settled_at IS NOT NULL AND quarantined_at < clock_timestamp() - $1::interval
                ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED)",
            interval(retention),
            i64::from(EXPIRE_AT_ONCE),
        );
        Ok(self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?.rows_affected())
    }
}
