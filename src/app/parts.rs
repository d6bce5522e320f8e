//! From the configuration to the concrete parts.

use std::{sync::Arc, time::Duration};

use anyhow::Context;

use crate::{
    claim::Lease,
    clock::Clock,
    config::{
        Config,
        handler::{Auth, Kind},
        store::Backend,
    },
    handler::{
        Handler,
        echo::EchoHandler,
        exec::{self, ExecHandler},
        http::{self, HttpHandler},
    },
    metrics::Metrics,
    source::pubsub::{self, Limits, PubsubSource},
    store::{
        ClaimStore, Upkeep,
        memory::MemoryStore,
        postgres::{self, PostgresStore},
    },
};

/// One store, seen through its ports.
#[derive(Debug)]
pub(super) struct Stores {
    pub(super) claims: Arc<dyn ClaimStore>,
    pub(super) upkeep: Arc<dyn Upkeep>,
}

impl Stores {
    fn of<S: ClaimStore + Upkeep + 'static>(store: S) -> Self {
        let store = Arc::new(store);
        Self { claims: Arc::clone(&store) as _, upkeep: store }
    }
}

pub(super) async fn store(
    config: &Config,
    lease: Lease,
    clock: &Arc<dyn Clock>,
    metrics: &Metrics,
) -> anyhow::Result<Stores> {
    let retention: Duration = config.claims.retention;
    let clock = Arc::clone(clock);
    let backend = config.store.backend();
    metrics.store_info.with_label_values(&[backend.as_str()]).set(1);
    Ok(match backend {
        Backend::Postgres => {
            let section =
                postgres::Config { url: config.store.url.clone(), max_connections: config.store.max_connections };
            let store = PostgresStore::open(&section, lease, retention, clock, metrics.clone())
                .context("store.url can not be used")?;
            Stores::of(store)
        }
        Backend::Memory => Stores::of(MemoryStore::new(lease, retention, clock)),
        Backend::Sqlite | Backend::Auto => anyhow::bail!("the SQLite store is being written"),
    })
}

pub(super) fn handler(config: &Config) -> anyhow::Result<Arc<dyn Handler>> {
    let section = &config.handler;
    Ok(match section.kind {
        Kind::Http => {
            let http = http::Config {
                url: section.url.clone(),
                proxy: section.proxy.clone(),
                signing_secret: section.signing_secret.clone(),
                auth: match section.auth {
                    Auth::None => http::Auth::None,
                    Auth::Bearer => http::Auth::Bearer,
                    Auth::GoogleIdToken => http::Auth::GoogleIdToken,
                },
                bearer_token: section.token.clone(),
                audience: section.audience.clone(),
                unauthenticated: section.unauthenticated,
                ..http::Config::default()
            };
            Arc::new(HttpHandler::new(&http, config.events.pass_credentials)?)
        }
        Kind::Exec => {
            let exec = exec::Config { command: section.command.clone(), env: section.env.clone() };
            Arc::new(ExecHandler::new(&exec, config.events.pass_credentials)?)
        }
        Kind::Echo => Arc::new(EchoHandler::new()),
    })
}

pub(super) fn source(config: &Config, clock: &Arc<dyn Clock>, metrics: &Metrics) -> anyhow::Result<PubsubSource> {
    let computed = config.computed();
    let section = &config.pubsub;
    let pubsub = pubsub::Config {
        project: section.project.clone(),
        subscription: section.subscription.clone(),
        endpoint: section.endpoint.clone(),
        allow_emulator: section.allow_emulator,
        streams: section.streams,
        max_outstanding_messages: section.max_outstanding_messages,
        max_outstanding_bytes: section.max_outstanding_bytes,
        lease_extension: section.lease_extension,
        silence: section.silence,
        ..pubsub::Config::default()
    };
    let limits = Limits {
        count: computed.max_outstanding_messages,
        bytes: section.max_outstanding_bytes.as_u64(),
        max_lease: computed.client_max_lease,
    };
    PubsubSource::open(&pubsub, limits, metrics.clone(), Arc::clone(clock)).context("[pubsub] can not be used")
}
