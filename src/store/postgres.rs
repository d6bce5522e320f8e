//! Claims in Postgres: any number of replicas, each event handled once.
//!
//! Everything is one statement, so that it works behind a transaction pooler. All lease arithmetic is done by the
//! database's clock. `docs/CLAIMS.md` describes the protocol and why each guard is there.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    claim::{Claim, ClaimIntent, ClaimRef, ClaimView, Claimed, Key, Lease, Step},
    clock::Clock,
    metrics::Metrics,
    outcome::Outcome,
    secret::Secret,
    store::{ClaimLog, ClaimRecord, ClaimStore, Counts, QuarantineRow, Readiness, Requeued, StoreError, Upkeep},
};

mod attempt;
mod claim;
mod connection;
mod error;
mod holdoff;
mod log;
pub mod migrate;
mod quarantine;
mod row;
mod session;
mod settle;
mod statement;
mod upkeep;

use connection::Connections;
use holdoff::Holdoff;

/// What the store needs to know of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `postgres://user:password@host:port/database?sslmode=…`; `options[search_path]=…` and the like are passed on. A
    /// transaction pooler in between is noticed; `statement-cache-capacity=0` says so where it can not be.
    pub url: Secret,
    /// Connections of this process, the one for renewals included. At least 2 are used.
    pub max_connections: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { url: Secret::default(), max_connections: 5 }
    }
}

/// Below this the client timeout would cut healthy statements. A configured lease is never short enough to reach it.
const MIN_CLIENT_TIMEOUT: Duration = Duration::from_millis(800);

/// A claim store on a Postgres server.
#[derive(Debug)]
pub struct PostgresStore {
    connections: Connections,
    holdoff: Arc<Holdoff>,
    lease: Lease,
    retention: Duration,
    clock: Arc<dyn Clock>,
}

impl PostgresStore {
    /// A store on the server at `config.url`. Connects when first used: the server need not be up.
    ///
    /// # Errors
    /// `Refused` when the URL can not be read.
    pub fn open(
        config: &Config,
        lease: Lease,
        retention: Duration,
        clock: Arc<dyn Clock>,
        metrics: &Metrics,
    ) -> Result<Self, StoreError> {
        let holdoff = Arc::new(Holdoff::new(lease.length(), Arc::clone(&clock)));
        let timeout = lease.client_timeout().max(MIN_CLIENT_TIMEOUT);
        let connections = Connections::new(config, timeout, Arc::clone(&holdoff), metrics)?;
        Ok(Self { connections, holdoff, lease, retention, clock })
    }

    fn lease_us(&self) -> i64 {
        micros(self.lease.length())
    }

    fn grace_us(&self) -> i64 {
        micros(self.lease.grace())
    }

    /// Events born before this long ago must not look new: their rows may be forgotten already.
    fn fence_us(&self) -> i64 {
        const DAY: Duration = Duration::from_secs(86_400);
        micros(self.retention.saturating_sub(DAY).max(self.retention / 2))
    }
}

#[async_trait]
impl ClaimStore for PostgresStore {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        self.claim_event(intent).await
    }

    async fn advance(&self, claim: &Claim, step: &Step) -> Result<(), StoreError> {
        match step {
            Step::Started => self.start(claim).await,
            Step::ReplyPending(replies) => self.reply_pending(claim, replies).await,
        }
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<ClaimRef>, StoreError> {
        self.renew_all(claims).await
    }

    async fn settle(&self, claim: &ClaimRef, outcome: &Outcome) -> Result<(), StoreError> {
        self.settle_attempt(claim, outcome).await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<ClaimView>, StoreError> {
        self.look_at(keys).await
    }
}

#[async_trait]
impl ClaimLog for PostgresStore {
    async fn quarantined(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        self.newest_quarantined(limit).await
    }

    async fn show(&self, key: Key) -> Result<Option<ClaimRecord>, StoreError> {
        self.record(key).await
    }

    async fn requeue(&self, seq: i64, by: &str) -> Result<Requeued, StoreError> {
        self.put_back(seq, by).await
    }

    async fn close(&self, seq: i64, resolution: &str) -> Result<bool, StoreError> {
        self.close_row(seq, resolution).await
    }

    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        self.due_replays(limit).await
    }
}

#[async_trait]
impl Upkeep for PostgresStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        self.readiness().await
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        self.expire_in_steps(quarantine_retention).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.count_rows().await
    }
}

/// A span as the statements take it.
fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 4)
}

/// A span as a statement answered it; what lies in the past is zero.
fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
