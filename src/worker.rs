//! The engine: from a delivery to its answer.
//!
//! delivery → decode → merge → slot → claim → handler → settle → answer. Everything a delivery starts is tracked, so
//! `run` returns when all of it is over.

mod answer;
mod arrival;
mod breaker;
mod call;
mod claiming;
mod config;
mod flights;
mod intake;
mod parking;
mod processor;
mod renewal;
mod report;
#[cfg(test)]
mod tests;
mod verdict;
mod waking;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    answer::{Answer, End},
    flights::Flights,
    parking::{Lot, Turned},
    processor::{Attempt, Processor},
    renewal::Renewal,
    report::Reporter,
};
pub use self::{
    config::{Config, DrainTimeout},
    intake::Intake,
    report::{Happening, Observer},
};
use crate::{
    claim::{Lease, Wait},
    claims::Claims,
    clock::Clock,
    handler::Handler,
    metrics::Metrics,
    retry::Backoff,
    rule::Rules,
    shutdown::Shutdown,
    source::{Source, SourceError},
    store::Readiness,
};

/// How long a copy that has no place in the lot is held: nacked at once it would come again at once.
const SURPLUS_HELD: Duration = Duration::from_secs(1);
/// From the abort to the end of `run`.
const LAST_STEPS: Duration = Duration::from_secs(3);

/// What the engine works with.
pub struct Parts {
    /// The claims.
    pub claims: Arc<Claims>,
    /// The team's code.
    pub handler: Arc<dyn Handler>,
    /// Which rule applies.
    pub rules: Rules,
    /// The `[worker]` section.
    pub config: Config,
    /// The times that follow from the lease.
    pub lease: Lease,
    /// The delays between attempts.
    pub backoff: Backoff,
    /// What keys belong to.
    pub scope: String,
    /// Events a process may put in quarantine per minute before the brake goes on.
    pub max_quarantined_per_minute: u32,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub metrics: Metrics,
    /// Who watches.
    pub observer: Option<Arc<dyn Observer>>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Everything that was begun was finished and answered.
    Clean,
    /// Some work was cut, or its answer may not have arrived: it will be delivered again.
    Abandoned,
}

/// How long the source must be able to keep a delivery: a parked copy must still be able to run when it wakes.
#[must_use]
pub fn longest_hold(longest_timeout: Duration, lease: Lease) -> Duration {
    longest_timeout * 2 + lease.length() + Duration::from_secs(600)
}

/// Takes deliveries from a source and sees each to its answer.
pub struct Worker {
    processor: Arc<Processor>,
    claims: Arc<Claims>,
    flights: Arc<Flights>,
    lot: Arc<Lot>,
    /// The one permit for events whose owner died: poison must not spend the budgets of innocents.
    suspects: Arc<Semaphore>,
    rules: Rules,
    config: Config,
    scope: String,
    longest_stay: Duration,
    tasks: TaskTracker,
}

impl Worker {
    /// Puts the engine together; nothing runs yet.
    #[must_use]
    pub fn new(parts: Parts, source_name: &str, shutdown: Shutdown) -> Self {
        let Parts { claims, handler, rules, config, lease, backoff, scope, clock, metrics, observer, .. } = parts;
        let longest = rules.longest_timeout();
        metrics.handler_slots.set(i64::try_from(config.concurrency).unwrap_or(i64::MAX));
        metrics.handler_timeout.set(longest.as_secs_f64());
        let intake = Intake::new(claims.watch(), parts.max_quarantined_per_minute, &metrics);
        let lot = Lot::new(config.parking_places(), metrics.clone());
        let renewal = Renewal::new(Arc::clone(&claims), lease, Arc::clone(&clock), metrics.clone());
        let processor = Processor {
            claims: Arc::clone(&claims),
            handler,
            intake,
            renewal,
            report: Reporter { metrics, clock, observer },
            lease,
            backoff,
            slots: Semaphore::new(config.concurrency),
            source: source_name.to_owned(),
            shutdown,
        };
        Self {
            processor: Arc::new(processor),
            claims,
            flights: Arc::default(),
            lot,
            suspects: Arc::new(Semaphore::new(1)),
            rules,
            config,
            scope,
            longest_stay: longest_hold(longest, lease).saturating_sub(longest),
            tasks: TaskTracker::new(),
        }
    }

    /// The gate in front of every claim, for readiness.
    #[must_use]
    pub fn intake(&self) -> Arc<Intake> {
        Arc::clone(&self.processor.intake)
    }

    /// Runs until the source ends or a stop is ordered, then drains: what runs is finished within the drain's time,
    /// what has not begun is nacked.
    ///
    /// # Errors
    /// When the source cannot be used as configured.
    pub async fn run(self, mut source: Box<dyn Source>) -> Result<Drained, SourceError> {
        let worker = Arc::new(self);
        let mut background = worker.background();
        let ended = tokio::select! {
            ended = worker.pull(source.as_mut()) => ended,
            Some(died) = background.join_next() => {
                tracing::error!(panicked = died.is_err(), "A background task of the worker ended; stopping");
                Err(SourceError::Refused("a background task of the worker ended".into()))
            }
        };
        let drain_over = CancellationToken::new();
        let (drained, closed) = tokio::join!(
            async {
                let drained = worker.drain().await;
                drain_over.cancel();
                drained
            },
            worker.close(source, &drain_over)
        );
        background.shutdown().await;
        ended?;
        let drained = match (drained, closed) {
            (Drained::Clean, Ok(())) => Drained::Clean,
            (Drained::Clean | Drained::Abandoned, Err(error)) => {
                tracing::warn!(%error, "Source did not confirm every answer; those events are delivered again");
                Drained::Abandoned
            }
            (Drained::Abandoned, Ok(())) => Drained::Abandoned,
        };
        match drained {
            Drained::Clean => tracing::info!("Drained: all that was begun is finished and answered"),
            Drained::Abandoned => {
                tracing::warn!("Drained, but some work was cut or not confirmed; it is delivered again")
            }
        }
        Ok(drained)
    }

    /// What runs beside the deliveries, to the end of the drain: leases are renewed until nothing runs any more.
    fn background(self: &Arc<Self>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let renewal = Arc::clone(&self.processor.renewal);
        tasks.spawn(async move { renewal.run().await });
        tasks.spawn(Arc::clone(self).wake_parked());
        tasks.spawn(Arc::clone(self).admit_suspects());
        tasks.spawn(Arc::clone(self).await_store());
        tasks
    }

    async fn pull(self: &Arc<Self>, source: &mut dyn Source) -> Result<(), SourceError> {
        loop {
            let next = tokio::select! {
                biased;                                   // stopping wins
                () = self.processor.shutdown.stopping() => return Ok(()),
                next = source.next() => next?,            // cancel-safe, and its doc says so
            };
            let Some(delivery) = next else {
                self.processor.shutdown.stop();
                return Ok(());
            };
            self.accept(delivery).await;
        }
    }

    /// Starts an attempt, with the suspect permit or without.
    fn start(self: &Arc<Self>, attempt: Attempt, suspect: Option<OwnedSemaphorePermit>) {
        let worker = Arc::clone(self);
        self.tasks.spawn(async move {
            let end = worker.processor.process(&attempt, suspect).await;
            worker.finish(attempt, end).await;
        });
    }

    /// Tells what became of an event, and answers its copies. The one place that does.
    async fn finish(&self, attempt: Attempt, end: End) {
        let key = attempt.key;
        self.processor.report.ended(&attempt, &end);
        match end.answer() {
            Answer::Ack => attempt.flight.ack().await,
            Answer::Nack => attempt.flight.nack().await,
            Answer::Park { wake_in, why } => self.park(attempt, wake_in, why).await,
        }
        if let End::Settled { .. } = end {
            self.lot.wake(key);
        }
    }

    /// Parks an event's copies; what is over the lot's size is held a moment, then nacked.
    async fn park(&self, attempt: Attempt, wake_in: Duration, why: Wait) {
        let turned = match self.lot.park(attempt, wake_in, why) {
            None => return,
            Some(Turned::Closed(attempt)) => attempt,
            Some(Turned::Surplus(attempt)) => {
                self.processor.report.metrics.parked_over_cap.inc();
                tokio::select! {
                    () = time::sleep(SURPLUS_HELD) => {}
                    () = self.processor.shutdown.stopping() => {}
                }
                attempt
            }
        };
        turned.flight.nack().await;
    }

    /// Asks a store that went away whether it is back.
    async fn await_store(self: Arc<Self>) {
        loop {
            self.claims.watch().lost().await;
            if let Ok(Readiness::Ready) = self.claims.prepare().await {
                continue;
            }
            time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Closes the source beside the drain: what it holds goes back at once, not when the last handler has ended.
    async fn close(&self, source: Box<dyn Source>, drain_over: &CancellationToken) -> Result<(), SourceError> {
        let end = async {
            drain_over.cancelled().await;
            time::sleep(LAST_STEPS).await;
        };
        tokio::select! {
            closed = source.close(Instant::now() + self.drain_time() + LAST_STEPS * 2) => closed,
            () = end => Err(SourceError::Unconfirmed { unconfirmed: 1 }),
        }
    }

    fn drain_time(&self) -> Duration {
        self.config.drain_timeout.for_handlers(self.rules.longest_timeout())
    }

    /// Waits for everything that was begun; cuts it when the drain's time is over.
    async fn drain(&self) -> Drained {
        let processor = &self.processor;
        processor.shutdown.stop();
        processor.report.metrics.shutting_down.set(1);
        let time = self.drain_time();
        tracing::info!(drain_seconds = time.as_secs(), "Draining: what runs is finished, the rest is handed back");
        for parked in self.lot.close() {
            parked.flight.nack().await;
        }
        self.tasks.close();
        tokio::select! {
            biased;
            () = self.tasks.wait() => return Drained::Clean,
            () = time::sleep(time) => {}
            () = processor.shutdown.aborting() => {}
        }
        processor.shutdown.abort();
        tracing::warn!("Drain is over; running handlers are cut");
        if time::timeout(LAST_STEPS, self.tasks.wait()).await.is_err() {
            tracing::error!("Some attempts did not end; their events are delivered again");
        }
        Drained::Abandoned
    }
}
