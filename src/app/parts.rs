//! From the configuration to the concrete parts.

use std::sync::Arc;

use anyhow::Context;

use super::Basics;
use crate::{
    claims::{Claims, Tables},
    config::{Config, handler::Kind, store::Backend},
    handler::{Handler, echo::EchoHandler, exec::ExecHandler, http::HttpHandler},
    source::pubsub::{Limits, PubsubSource},
    store::{memory::MemoryStore, postgres::PostgresStore, sqlite::SqliteStore},
};

/// The claims in the configured store. A database need not answer yet.
pub(super) async fn claims(config: &Config, basics: &Basics) -> anyhow::Result<Arc<Claims>> {
    let tables = tables(config, basics).await?;
    Ok(Arc::new(Claims::new(tables, basics.lease, Arc::clone(&basics.clock), basics.metrics.clone())))
}

async fn tables(config: &Config, basics: &Basics) -> anyhow::Result<Tables> {
    let Basics { metrics, clock, lease } = basics;
    let (section, retention, clock) = (&config.store, config.claims.retention, Arc::clone(clock));
    let backend = section.backend();
    metrics.store_info.with_label_values(&[backend.as_str()]).set(1);
    Ok(match backend {
        Backend::Postgres => Tables::of(
            PostgresStore::open(&section.postgres(), *lease, retention, clock, metrics)
                .context("store.url can not be used")?,
        ),
        Backend::Sqlite | Backend::Auto => Tables::of(
            SqliteStore::open(&section.path, *lease, retention, clock).await.context("store.path can not be used")?,
        ),
        Backend::Memory => Tables::of(MemoryStore::new(*lease, retention, clock)),
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
