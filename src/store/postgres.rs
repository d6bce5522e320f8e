//! Claims in Postgres: any number of replicas, each event handled once.
//!
//! Every operation is one statement, so that it works behind a transaction pooler. Statements write what they are
//! given, by the server's clock, if the row still is what they were told; what to write is decided above the port.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    claim::{ClaimRef, Key, Lease},
    clock::Clock,
    metrics::Metrics,
    secret::Secret,
    store::{ClaimTable, Entered, Entry, Guard, Seen, StoreError, Swap, holdoff::Holdoff},
};

mod attempt;
mod connection;
mod enter;
mod error;
pub mod migrate;
mod open;
mod quarantine;
mod row;
mod session;
mod statement;
mod swap;
mod upkeep;

use connection::Connections;
use open::OpenClaims;

/// What the store needs to know of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `postgres://user:password@host:port/database?sslmode=…`; `options[search_path]=…` and the like are passed on. A
    /// transaction pooler in between is noticed; `statement-cache-capacity=0` says so where it cannot be.
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
    open: OpenClaims,
}

impl PostgresStore {
    /// A store on the server at `config.url`. Connects when first used: the server need not be up.
    ///
    /// # Errors
    /// `Refused` when the URL cannot be read.
    pub fn open(
        config: &Config,
        lease: Lease,
        retention: Duration,
        clock: Arc<dyn Clock>,
        metrics: &Metrics,
    ) -> Result<Self, StoreError> {
        let holdoff = Arc::new(Holdoff::new(lease.length(), clock));
        let timeout = lease.client_timeout().max(MIN_CLIENT_TIMEOUT);
        let connections = Connections::new(config, timeout, Arc::clone(&holdoff), metrics)?;
        Ok(Self { connections, holdoff, lease, retention, open: OpenClaims::default() })
    }
}

/// A lone item has a statement of its own kind: one on arrays is planned anew each time.
#[async_trait]
impl ClaimTable for PostgresStore {
    async fn enter(&self, entries: &[Entry]) -> Result<Vec<Entered>, StoreError> {
        match entries {
            [entry] => self.enter_one(entry).await,
            several => self.enter_all(several).await,
        }
    }

    async fn swap(&self, swaps: &[Swap]) -> Result<Vec<bool>, StoreError> {
        match swaps {
            [swap] if swap.rider.is_some() || swap.guard == Guard::Absent => self.swap_with(swap).await,
            [swap] => self.swap_one(swap).await,
            several => self.swap_all(several).await,
        }
    }

    async fn complete(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        match claims {
            [claim] => self.complete_one(*claim).await,
            several => self.complete_all(several).await,
        }
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        self.renew_all(claims).await
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Seen>>, StoreError> {
        self.read_all(keys).await
    }
}
