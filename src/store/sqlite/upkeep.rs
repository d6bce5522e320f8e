//! Readiness, retention and counts.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    SqliteStore, VERSION, find_version, quarantine,
    rows::{get, micros, time},
};
use crate::{
    claim::row::{STRANDED_AFTER, before},
    store::{Counts, EXPIRE_AT_ONCE, Readiness, StoreError, Upkeep},
};

#[async_trait]
impl Upkeep for SqliteStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        let mut db = self.database.begin().await?;
        let found = find_version(&mut db).await?;
        if found != VERSION {
            db.commit().await?;
            return Ok(Readiness::Unfit(format!("its schema version became {found}")));
        }
        // Writes what is there: a full or broken disk is seen here, and not by an event.
        db.write(sqlx::query("PRAGMA user_version = 1")).await?;
        db.commit().await?;
        Ok(Readiness::Ready)
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        let claims = sqlx::query(
            "DELETE FROM claims WHERE key IN (SELECT key FROM claims
                WHERE first_seen_at < ?1 AND state IN (2, 4) ORDER BY first_seen_at LIMIT ?2)",
        );
        let payloads = sqlx::query(
            "DELETE FROM quarantine WHERE seq IN (SELECT seq FROM quarantine
                WHERE settled_at IS NOT NULL AND quarantined_at < ?1 ORDER BY quarantined_at LIMIT ?2)",
        );
        let now = self.database.clock.now();
        let claims = claims.bind(micros(before(now, self.retention))).bind(EXPIRE_AT_ONCE);
        let payloads = payloads.bind(micros(before(now, quarantine_retention))).bind(EXPIRE_AT_ONCE);
        Ok(self.database.write(claims).await? + self.database.write(payloads).await?)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let by_reason = sqlx::query(
            "SELECT reason, count(*) AS rows, min(quarantined_at) AS oldest FROM quarantine
            WHERE settled_at IS NULL GROUP BY reason",
        );
        let overdue = sqlx::query(
            "SELECT count(*) FILTER (WHERE state = 1 AND lease_until < ?1) AS stale,
                count(*) FILTER (WHERE iif(state = 1, lease_until, coalesce(not_before, first_seen_at)) < ?2) AS stranded
            FROM claims WHERE state IN (1, 3)",
        );
        let now = self.database.clock.now();
        let overdue = overdue.bind(micros(before(now, self.lease.grace()))).bind(micros(before(now, STRANDED_AFTER)));
        let mut counts = Counts::default();
        for row in self.database.rows(by_reason).await? {
            counts.quarantined.push((quarantine::reason(&row)?, get(&row, "rows")?));
            let oldest = time(get(&row, "oldest")?);
            counts.oldest_quarantined_at = Some(counts.oldest_quarantined_at.map_or(oldest, |known| oldest.min(known)));
        }
        for row in self.database.rows(overdue).await? {
            (counts.stale, counts.stranded) = (get(&row, "stale")?, get(&row, "stranded")?);
        }
        Ok(counts)
    }
}
