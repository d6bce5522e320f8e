//! From the configuration to the concrete parts.

use std::sync::Arc;

use anyhow::Context;

use super::Basics;
use crate::{
    config::{Config, handler::Kind, store::Backend},
    handler::{Handler, echo::EchoHandler, exec::ExecHandler, http::HttpHandler},
    metrics::Metrics,
    source::pubsub::{Limits, PubsubSource},
    store::{ClaimStore, Upkeep, memory::MemoryStore, postgres::PostgresStore, sqlite::SqliteStore, timed::TimedStore},
};

/// One store, seen through its ports.
#[derive(Debug)]
pub(super) struct Stores {
    pub(super) claims: Arc<dyn ClaimStore>,
    pub(super) upkeep: Arc<dyn Upkeep>,
}

impl Stores {
    fn of<S: ClaimStore + Upkeep + 'static>(store: S, metrics: &Metrics) -> Self {
        let store = Arc::new(TimedStore::new(store, metrics.clone()));
        Self { claims: Arc::clone(&store) as _, upkeep: store }
    }
}

/// The configured store. A database need not answer yet.
pub(super) async fn store(config: &Config, basics: &Basics) -> anyhow::Result<Stores> {
    let Basics { metrics, clock, lease } = basics;
    let (section, retention, clock) = (&config.store, config.claims.retention, Arc::clone(clock));
    let backend = section.backend();
    metrics.store_info.with_label_values(&[backend.as_str()]).set(1);
    Ok(match backend {
        Backend::Postgres => Stores::of(
            PostgresStore::open(&section.postgres(), *lease, retention, clock, metrics)
                .context("store.url can not be used")?,
            metrics,
        ),
        Backend::Sqlite | Backend::Auto => Stores::of(
            SqliteStore::open(&section.path, *lease, retention, clock).await.context("store.path can not be used")?,
            metrics,
        ),
        Backend::Memory => Stores::of(MemoryStore::new(*lease, retention, clock), metrics),
    })
}

/// The configured handler.
pub(super) fn handler(config: &Config) -> anyhow::Result<Arc<dyn Handler>> {
    let (section, pass_credentials) = (&config.handler, config.events.pass_credentials);
    Ok(match section.kind {
        Kind::Http => Arc::new(HttpHandler::new(&section.http(), pass_credentials)?),
        Kind::Exec => Arc::new(ExecHandler::new(&section.exec(), pass_credentials)?),
        Kind::Echo => Arc::new(EchoHandler::new()),
    })
}

/// The configured source. The server need not answer yet.
pub(super) fn source(config: &Config, basics: &Basics) -> anyhow::Result<PubsubSource> {
    let computed = config.computed();
    let limits = Limits {
        count: computed.max_outstanding_messages,
        bytes: config.pubsub.max_outstanding_bytes.as_u64(),
        max_lease: computed.client_max_lease,
    };
    PubsubSource::open(&config.pubsub, limits, basics.metrics.clone(), Arc::clone(&basics.clock))
        .context("[pubsub] can not be used")
}
