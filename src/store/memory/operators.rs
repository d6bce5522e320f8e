//! The memory store as operators and upkeep see it.

use std::time::Duration;

use async_trait::async_trait;

use super::{MemoryStore, Tables};
use crate::{
    claim::{
        Key, Standing,
        row::{Change, Row, before},
    },
    outcome::Reason,
    store::{
        ClaimLog, ClaimRecord, Counts, QuarantineRow, Readiness, Requeued, StoreError, Upkeep, record::EXPIRE_AT_ONCE,
    },
};

#[async_trait]
impl ClaimLog for MemoryStore {
    async fn quarantined(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        Ok(self.tables().quarantine.newest(limit))
    }

    async fn show(&self, key: Key) -> Result<Option<ClaimRecord>, StoreError> {
        Ok(self.tables().claims.get(&key).cloned().map(ClaimRecord::from))
    }

    async fn requeue(&self, seq: i64, _by: &str) -> Result<Requeued, StoreError> {
        let now = self.clock.now();
        let mut tables = self.tables();
        let Tables { claims, quarantine, .. } = &mut *tables;
        let Some(entry) = quarantine.open(seq) else { return Ok(Requeued::NotFound) };
        let posts_only = entry.row.reason == Reason::ReplyUndelivered;
        if entry.row.reason == Reason::Mismatch || (posts_only && !claims.contains_key(&entry.row.key)) {
            return Ok(Requeued::NoPayload);
        }
        let row = claims.entry(entry.row.key).or_insert_with(|| entry.forgotten_claim(now));
        if row.nonce == entry.row.nonce && row.may_still_run(now) {
            return Ok(Requeued::MayStillRun);
        }
        match row.requeue(entry.row.nonce, posts_only, now) {
            Change::Made => {
                entry.request();
                Ok(Requeued::Yes)
            }
            Change::Repeated | Change::Lost => Ok(Requeued::NotFound),
        }
    }

    async fn close(&self, seq: i64, _resolution: &str) -> Result<bool, StoreError> {
        let now = self.clock.now();
        Ok(self.tables().quarantine.open(seq).map(|entry| entry.settle(now)).is_some())
    }

    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let tables = self.tables();
        let now = self.clock.now();
        let due = |key: &Key| {
            let standing = tables.claims.get(key).map(|row| row.view(now, self.lease).standing);
            !matches!(standing, Some(Standing::Wait(_)))
        };
        Ok(tables.quarantine.requested(limit, due))
    }
}

#[async_trait]
impl Upkeep for MemoryStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        Ok(Readiness::Ready)
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        let now = self.clock.now();
        let mut tables = self.tables();
        let limit = before(now, self.retention);
        let old: Vec<_> = tables
            .claims
            .values()
            .filter(|row| row.finished_at.is_some() && row.first_seen_at < limit)
            .map(|row| row.key)
            .take(usize::from(EXPIRE_AT_ONCE))
            .collect();
        for key in &old {
            tables.forget(*key);
        }
        let payloads = tables.quarantine.expire(before(now, quarantine_retention));
        Ok(u64::try_from(old.len() + payloads).unwrap_or(u64::MAX))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let tables = self.tables();
        let now = self.clock.now();
        let count = |holds: &dyn Fn(&Row) -> bool| {
            u64::try_from(tables.claims.values().filter(|row| holds(row)).count()).unwrap_or(u64::MAX)
        };
        Ok(Counts {
            quarantined: tables.quarantine.open_by_reason(),
            oldest_quarantined_at: tables.quarantine.oldest_open(),
            stale: count(&|row| row.is_stale(now, self.lease)),
            stranded: count(&|row| row.is_stranded(now)),
        })
    }
}
