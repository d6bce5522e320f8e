//! Puts the parts together and runs them: the only place that names concrete stores, handlers and sources.

mod parts;
mod readiness;

use std::sync::Arc;

use anyhow::Context;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{parts::Stores, readiness::Readiness};
use crate::{
    claim::Lease,
    cli::Exit,
    clock::{Clock, SystemClock},
    config::Config,
    handler::Handler,
    metrics::Metrics,
    retry::Backoff,
    server::{Check, Health, Server},
    shutdown::Shutdown,
    source::Source,
    sweeper::Sweeper,
    worker::{Drained, Observer, Parts, Worker},
};

/// What a command may change about a run.
#[derive(Default)]
pub struct Options {
    /// Do not wait for a store that can not be used: fail.
    pub no_wait: bool,
    /// Called instead of the configured handler.
    pub handler: Option<Arc<dyn Handler>>,
    /// Hears what happens to each event.
    pub observer: Option<Arc<dyn Observer>>,
}

/// Runs until a stop is ordered and the drain is over.
///
/// # Errors
/// What can not be used as configured. A store or source that is merely away is waited for.
pub async fn run(config: Config, options: Options, shutdown: Shutdown) -> anyhow::Result<Exit> {
    let metrics = Metrics::new()?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let lease = Lease::new(config.claims.lease);
    let stores = parts::store(&config, lease, &clock, &metrics).await?;
    let handler = match options.handler {
        Some(handler) => handler,
        None => parts::handler(&config)?,
    };
    let server = Server::bind(config.server.listen).await?;
    let address = server.address();
    tracing::info!(%address, "Listening on {address} for probes and scrapes");

    let health = Health::new();
    let beside = TaskTracker::new();
    let over = CancellationToken::new();
    beside.spawn(server.run(health.clone(), metrics.clone(), over.clone()));
    beside.spawn(until(over.clone(), {
        let health = health.clone();
        async move { health.heartbeat().await }
    }));
    let ended = work(
        config,
        Composed {
            stores,
            handler,
            observer: options.observer,
            no_wait: options.no_wait,
            metrics,
            clock,
            lease,
            health,
            beside: beside.clone(),
            over: over.clone(),
        },
        shutdown,
    )
    .await;
    over.cancel();
    beside.close();
    beside.wait().await;
    ended
}

/// Everything `work` runs with.
struct Composed {
    stores: Stores,
    handler: Arc<dyn Handler>,
    observer: Option<Arc<dyn Observer>>,
    no_wait: bool,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    lease: Lease,
    health: Health,
    beside: TaskTracker,
    over: CancellationToken,
}

async fn work(config: Config, with: Composed, shutdown: Shutdown) -> anyhow::Result<Exit> {
    let Composed { stores, handler, observer, no_wait, metrics, clock, lease, health, beside, over } = with;
    let readiness = Readiness::new(Arc::clone(&stores.upkeep), health.clone(), metrics.clone());
    if !readiness.await_store(no_wait, &shutdown).await? {
        return Ok(Exit::Ok);
    }
    let source = parts::source(&config, &clock, &metrics)?;
    let worker = Worker::new(
        Parts {
            store: stores.claims,
            upkeep: Arc::clone(&stores.upkeep),
            handler,
            rules: config.rules(),
            config: config.worker.clone(),
            lease,
            backoff: Backoff::from(&config.retry),
            scope: config.computed().scope,
            max_quarantined_per_minute: config.quarantine.max_per_minute,
            clock,
            metrics: metrics.clone(),
            observer,
        },
        source.name(),
        shutdown.clone(),
    );
    let sweeper = Sweeper::new(stores.upkeep, config.quarantine.retention, metrics);
    beside.spawn(until(over.clone(), async move { sweeper.run().await }));
    beside.spawn(until(over.clone(), readiness.watch(source.health(), worker.intake())));
    beside.spawn(until(over, async move {
        shutdown.stopping().await;
        health.set(Check::Draining, false);
    }));
    let drained = worker.run(Box::new(source)).await.context("the source can not be used")?;
    Ok(match drained {
        Drained::Clean => Exit::Ok,
        Drained::Abandoned => Exit::Failed,
    })
}

/// Runs `task` until it ends or `over` is called.
async fn until(over: CancellationToken, task: impl Future<Output = ()>) {
    let _ = over.run_until_cancelled(task).await;
}
