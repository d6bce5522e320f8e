//! Readiness, retention and counts.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use sqlx::Row as _;

use super::{
    SqliteStore,
    error::classify,
    rows::{self, corrupt, micros, time},
    statements,
};
use crate::{
    claim::row::before,
    outcome::Reason,
    store::{Counts, Readiness, StoreError, Upkeep, record::EXPIRE_AT_ONCE},
};

impl SqliteStore {
    async fn forget(&self, statement: &'static str, limit: DateTime<Utc>) -> Result<u64, StoreError> {
        let query = sqlx::query(statement).bind(micros(limit)).bind(EXPIRE_AT_ONCE);
        Ok(query.execute(&self.pool).await.map_err(classify)?.rows_affected())
    }
}

#[async_trait]
impl Upkeep for SqliteStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        let mut tx = self.begin().await?;
        let found: i64 = sqlx::query_scalar(statements::FIND_VERSION).fetch_one(&mut *tx).await.map_err(classify)?;
        tx.commit().await.map_err(classify)?;
        Ok(match found {
            statements::VERSION => Readiness::Ready,
            _ => Readiness::Unfit(format!("its schema version became {found}")),
        })
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        let now = self.clock.now();
        let claims = self.forget(statements::FORGET_CLAIMS, before(now, self.retention)).await?;
        let rows = self.forget(statements::FORGET_SETTLED, before(now, quarantine_retention)).await?;
        Ok(claims + rows)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let now = self.clock.now();
        let mut counts = Counts::default();
        let mut db = self.pool.acquire().await.map_err(classify)?;
        for row in sqlx::query(statements::COUNT_OPEN).fetch_all(&mut *db).await.map_err(classify)? {
            let reason =
                Reason::from_name(row.try_get("reason").map_err(classify)?).ok_or_else(|| corrupt("reason"))?;
            counts.quarantined.push((reason, row.try_get("rows").map_err(classify)?));
            let oldest = time(row.try_get("oldest").map_err(classify)?);
            counts.oldest_quarantined_at =
                Some(counts.oldest_quarantined_at.map_or(oldest, |known: DateTime<Utc>| known.min(oldest)));
        }
        let mut open = sqlx::query(statements::OPEN_CLAIMS).fetch(&mut *db);
        while let Some(row) = open.try_next().await.map_err(classify)? {
            let claim = rows::read(&row)?;
            counts.stale += u64::from(claim.is_stale(now, self.lease));
            counts.stranded += u64::from(claim.is_stranded(now));
        }
        Ok(counts)
    }
}
