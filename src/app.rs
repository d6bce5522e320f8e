//! Puts the parts together and runs them: the only place that names concrete stores, handlers and sources.

mod parts;
mod readiness;

use std::{convert::Infallible, sync::Arc};

use anyhow::Context;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::readiness::NotReady;
use self::readiness::Readiness;
use crate::{
    claim::Lease,
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

/// What nearly every part is made with.
struct Basics {
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    lease: Lease,
}

/// Tasks that run beside the work and end after it. One that ends by itself (a panic) makes the process count as dead.
struct Beside {
    tasks: TaskTracker,
    over: CancellationToken,
    health: Health,
}

impl Beside {
    fn new(health: Health) -> Self {
        Self { tasks: TaskTracker::new(), over: CancellationToken::new(), health }
    }

    fn run(&self, task: impl Future<Output = Infallible> + Send + 'static) {
        let alarm = Alarm { over: self.over.clone(), health: self.health.clone() };
        self.tasks.spawn(async move { alarm.over.run_until_cancelled(task).await });
    }

    async fn end(self) {
        self.over.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Rings when its task ends before its time.
struct Alarm {
    over: CancellationToken,
    health: Health,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if !self.over.is_cancelled() {
            self.health.task_died();
        }
    }
}

/// Runs until a stop is ordered and the drain is over.
///
/// # Errors
/// What can not be used as configured. A store or source that is merely away is waited for.
pub async fn run(config: Config, options: Options, shutdown: Shutdown) -> anyhow::Result<Drained> {
    let basics =
        Basics { metrics: Metrics::new()?, clock: Arc::new(SystemClock), lease: Lease::new(config.claims.lease) };
    let server = Server::bind(config.server.listen).await?;
    let address = server.address();
    tracing::info!(%address, "Listening on {address} for probes and scrapes");

    let health = Health::new();
    let beside = Beside::new(health.clone());
    // Its own farewell ends it: a draining process is watched to the last.
    beside.tasks.spawn(server.run(health.clone(), basics.metrics.clone(), beside.over.clone()));
    beside.run({
        let health = health.clone();
        async move { health.heartbeat().await }
    });
    let ended = work(&config, options, &basics, health, &beside, shutdown).await;
    beside.end().await;
    ended
}

async fn work(
    config: &Config,
    options: Options,
    basics: &Basics,
    health: Health,
    beside: &Beside,
    shutdown: Shutdown,
) -> anyhow::Result<Drained> {
    let claims = parts::claims(config, basics).await?;
    let handler = match options.handler {
        Some(handler) => handler,
        None => parts::handler(config)?,
    };
    let readiness = Readiness::new(Arc::clone(&claims), health.clone());
    if !readiness.await_store(options.no_wait, &shutdown).await? {
        return Ok(Drained::Clean);
    }
    let source = parts::source(config, basics)?;
    let parts = Parts {
        claims: Arc::clone(&claims),
        handler,
        rules: config.rules(),
        config: config.worker(),
        lease: basics.lease,
        backoff: Backoff::from(&config.retry),
        scope: config.computed().scope,
        max_quarantined_per_minute: config.quarantine.max_per_minute,
        clock: Arc::clone(&basics.clock),
        metrics: basics.metrics.clone(),
        observer: options.observer,
    };
    let worker = Worker::new(parts, source.name(), shutdown.clone());
    let sweeper = Sweeper::new(claims, config.quarantine.retention, basics.metrics.clone());
    beside.run(async move { sweeper.run().await });
    beside.run(readiness.watch(source.health(), worker.intake()));
    beside.run(async move {
        shutdown.stopping().await;
        health.set(Check::Draining, false);
        std::future::pending().await
    });
    worker.run(Box::new(source)).await.context("the source can not be used")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_makes_the_process_count_as_dead_and_an_ended_one_does_not() {
        let health = Health::new();
        health.beat();
        let beside = Beside::new(health.clone());

        beside.run(std::future::pending());
        beside.end().await;
        assert!(health.is_live());

        let beside = Beside::new(health.clone());
        beside.run(async { std::panic::panic_any("scripted") });
        beside.tasks.close();
        beside.tasks.wait().await;
        assert!(!health.is_live());
    }
}
