//! The suite that every store passes, on Postgres: directly, and as through a transaction pooler.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bellhop::{
    clock::{Clock, SystemClock},
    metrics::Metrics,
    secret::Secret,
    store::{
        StoreError, Upkeep,
        postgres::{Config, PostgresStore},
    },
    testing::conformance::{self, Bench, Place, Process, Reach, Settings},
};
use tokio::time::sleep;

use super::Database;

/// Cases that run at the same time on one database.
const AT_ONCE: usize = 4;

#[derive(Clone)]
struct OnPostgres {
    url: String,
}

#[async_trait]
impl Bench for OnPostgres {
    fn reach(&self) -> Reach {
        Reach::ManyProcesses
    }

    fn short_lease(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    async fn place(&self) -> Box<dyn Place> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Place for OnPostgres {
    async fn process(&self, settings: Settings) -> Process {
        let config = Config { url: Secret::from(self.url.as_str()), ..Config::default() };
        let metrics = Metrics::new().unwrap();
        let store = PostgresStore::open(&config, settings.lease, settings.retention, self.clock(), &metrics).unwrap();
        // A busy machine may not answer in time; the daemon asks again, too.
        while let Err(error) = store.prepare().await {
            assert!(matches!(error, StoreError::Unknown(_)), "{error:?}");
        }
        Process::of(store, settings, self.clock())
    }

    async fn pass(&self, span: Duration) {
        sleep(span).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_postgres_store_conforms() {
    let database = Database::migrated().await;

    conformance::run(&OnPostgres { url: database.url.clone() }, AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_postgres_store_conforms_through_a_pooler() {
    let database = Database::migrated().await;

    conformance::run(&OnPostgres { url: format!("{}&statement-cache-capacity=0", database.url) }, AT_ONCE).await;
}
