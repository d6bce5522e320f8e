//! bellhop as it is.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::bail;
use async_trait::async_trait;
use bellhop::{
    claim::{ClaimIntent, Claimed, Lease},
    claims::{Claims, Tables},
    clock::SystemClock,
    metrics::Metrics,
    outcome::Outcome,
    secret::Secret,
    store::{
        memory::MemoryStore,
        postgres::{Config, PostgresStore},
        sqlite::SqliteStore,
    },
};

use super::{
    event::{Claimer, Held, LEASE, RETENTION},
    server::Database,
    storm::PROCESSES,
};

/// Take-overs are held off for a lease after the start: short enough to be waited for.
const STORM_LEASE: Lease = Lease::new(Duration::from_secs(30));

#[async_trait]
impl Claimer for Claims {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> anyhow::Result<Option<Held>> {
        match Self::claim(self, intent).await? {
            Claimed::Mine(claim) => Ok(Some(Held::Claim(Box::new(claim)))),
            Claimed::Wait { .. } => Ok(None),
            other => bail!("the event is neither mine nor somebody else's: {other:?}"),
        }
    }

    async fn complete(&self, held: Held) -> anyhow::Result<()> {
        let Held::Claim(claim) = held else { bail!("not claimed here") };
        Ok(self.settle(&claim, &Outcome::Done).await?)
    }
}

fn claims(tables: Tables, lease: Lease, metrics: Metrics) -> Arc<dyn Claimer> {
    Arc::new(Claims::new(tables, lease, Arc::new(SystemClock), metrics))
}

fn postgres(database: &Database, lease: Lease) -> anyhow::Result<Arc<dyn Claimer>> {
    let metrics = Metrics::new()?;
    let config = Config { url: Secret::from(database.url.as_str()), ..Config::default() };
    let store = PostgresStore::open(&config, lease, RETENTION, Arc::new(SystemClock), &metrics)?;
    Ok(claims(Tables::of(store), lease, metrics))
}

pub(crate) fn in_postgres(database: &Database) -> anyhow::Result<Arc<dyn Claimer>> {
    postgres(database, LEASE)
}

pub(crate) fn processes_in_postgres(database: &Database) -> anyhow::Result<Vec<Arc<dyn Claimer>>> {
    (0..PROCESSES).map(|_| postgres(database, STORM_LEASE)).collect()
}

pub(crate) fn storm_ready_after() -> Duration {
    STORM_LEASE.length() + Duration::from_secs(1)
}

pub(crate) async fn in_sqlite(path: &Path) -> anyhow::Result<Arc<dyn Claimer>> {
    let store = SqliteStore::open(path, LEASE, RETENTION, Arc::new(SystemClock)).await?;
    Ok(claims(Tables::of(store), LEASE, Metrics::new()?))
}

pub(crate) fn in_memory() -> anyhow::Result<Arc<dyn Claimer>> {
    let store = MemoryStore::new(LEASE, RETENTION, Arc::new(SystemClock));
    Ok(claims(Tables::of(store), LEASE, Metrics::new()?))
}
