//! The engine: from a delivery to its answer.
//!
//! delivery → decode → merge → slot → claim → handler → settle → answer. Everything a delivery starts is tracked, so
//! `run` returns when all of it is over.

mod breaker;
mod call;
mod claiming;
mod config;
mod flights;
mod intake;
mod parking;
mod processor;
mod renewal;
mod repeats;
mod report;
#[cfg(test)]
mod tests;
mod verdict;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::{
    config::{Config, DrainTimeout},
    intake::Intake,
    report::{Happening, Observer},
};
use self::{
    flights::Flights,
    intake::Intake as Gate,
    parking::{Lot, Parked},
    processor::{Attempt, Processor},
    renewal::Renewal,
    repeats::Repeats,
    report::Reporter,
};
use crate::{
    claim::{Key, Lease, Standing},
    clock::Clock,
    event::{self, Event, RawEvent},
    handler::Handler,
    metrics::Metrics,
    retry::Backoff,
    rule::{Action, Rules},
    shutdown::Shutdown,
    source::{Acker, Delivery, Source, SourceError},
    store::{ClaimStore, Readiness, StoreError, Upkeep},
};

/// Payloads larger than this are decoded on a thread of their own, so that others flow meanwhile.
const LARGE: usize = 64 * 1024;
/// From the abort to the end of `run`.
const LAST_STEPS: Duration = Duration::from_secs(3);

/// What the engine works with.
pub struct Parts {
    /// Where claims are kept.
    pub store: Arc<dyn ClaimStore>,
    /// Tells whether the store is back after an outage.
    pub upkeep: Arc<dyn Upkeep>,
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
    flights: Arc<Flights>,
    repeats: Repeats,
    rules: Rules,
    upkeep: Arc<dyn Upkeep>,
    config: Config,
    scope: String,
    longest_stay: Duration,
    tasks: TaskTracker,
}

impl Worker {
    /// Puts the engine together; nothing runs yet.
    #[must_use]
    pub fn new(parts: Parts, source_name: &str, shutdown: Shutdown) -> Self {
        let Parts { store, upkeep, handler, rules, config, lease, backoff, scope, clock, metrics, observer, .. } =
            parts;
        let longest = rules.longest_timeout();
        metrics.handler_slots.set(i64::try_from(config.concurrency).unwrap_or(i64::MAX));
        metrics.handler_timeout.set(longest.as_secs_f64());
        let intake = Gate::new(parts.max_quarantined_per_minute, metrics.clone());
        let lot = Lot::new(config.parking_places(), metrics.clone());
        let renewal = Renewal::new(Arc::clone(&store), lease, Arc::clone(&clock), Arc::clone(&intake), metrics.clone());
        let processor = Processor {
            store,
            handler,
            intake,
            lot,
            renewal,
            report: Reporter { metrics, clock, observer },
            lease,
            backoff,
            slots: Semaphore::new(config.concurrency),
            suspects: Arc::new(Semaphore::new(1)),
            source: source_name.to_owned(),
            shutdown,
        };
        Self {
            processor: Arc::new(processor),
            flights: Arc::default(),
            repeats: Repeats::default(),
            rules,
            upkeep,
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
    /// When the source can not be used as configured.
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

    /// Decodes a delivery, applies skip rules, merges it with a copy that is here, or starts its attempt.
    async fn accept(self: &Arc<Self>, Delivery { raw, acker }: Delivery) {
        let received_at = Instant::now();
        if raw.data.len() <= LARGE {
            let event = Arc::new(event::decode(&raw));
            return self.board(event, acker, received_at).await;
        }
        let worker = Arc::clone(self);
        self.tasks.spawn(async move {
            match worker.decode_apart(raw).await {
                Some(event) => worker.board(event, acker, received_at).await,
                None => acker.nack().await,
            }
        });
    }

    async fn decode_apart(&self, raw: Arc<RawEvent>) -> Option<Arc<Event>> {
        match self.tasks.spawn_blocking(move || Arc::new(event::decode(&raw))).await {
            Ok(event) => Some(event),
            Err(error) => {
                tracing::error!(panicked = error.is_panic(), "Decoding died; the delivery is nacked");
                None
            }
        }
    }

    async fn board(self: &Arc<Self>, event: Arc<Event>, acker: Box<dyn Acker>, received_at: Instant) {
        let ruling = self.rules.ruling(&event);
        if ruling.action == Action::Skip {
            self.processor.report.skipped(&event, &ruling);
            return acker.ack().await;
        }
        let key = Key::derive(&self.scope, &event);
        match self.flights.board((key, event.fingerprint), acker) {
            None => self.processor.report.merged(&event),
            Some(flight) => {
                self.processor.report.noticed(&event, self.repeats.is_repeat(&event));
                self.start(Attempt { event, key, ruling, flight, received_at });
            }
        }
    }

    fn start(&self, attempt: Attempt) {
        let processor = Arc::clone(&self.processor);
        self.tasks.spawn(async move { processor.process(attempt).await });
    }

    /// Wakes parked copies when they are due: one look serves all of them.
    async fn wake_parked(self: Arc<Self>) {
        loop {
            let due = self.processor.lot.due().await;
            let keys: Vec<_> = due.iter().map(|one| one.attempt.key).collect();
            match self.processor.store.look(&keys).await {
                Ok(views) => {
                    for one in due {
                        let view = views.iter().find(|view| view.key == one.attempt.key);
                        self.wake(one, view.map_or(Standing::Absent, |view| view.standing)).await;
                    }
                }
                Err(error) => {
                    if matches!(error, StoreError::Unknown(_)) {
                        self.processor.intake.store_failed();
                    }
                    for one in due {
                        self.wake(one, Standing::Wait(Duration::from_secs(1))).await;
                    }
                }
            }
        }
    }

    async fn wake(&self, parked: Parked, standing: Standing) {
        let Parked { attempt, why, .. } = parked;
        match standing {
            Standing::Settled | Standing::Quarantined => {
                self.processor.report.duplicate(&attempt.event);
                attempt.flight.ack().await;
            }
            Standing::Wait(_) if attempt.received_at.elapsed() > self.longest_stay => {
                self.processor.report.metrics.parked_expired.inc();
                attempt.flight.nack().await;
            }
            Standing::Wait(wake_in) => {
                let processor = Arc::clone(&self.processor);
                self.tasks.spawn(async move { processor.park(attempt, wake_in, why).await });
            }
            Standing::Absent | Standing::Claimable => self.start(attempt),
        }
    }

    /// Asks a store that went away whether it is back.
    async fn await_store(self: Arc<Self>) {
        loop {
            self.processor.intake.store_lost().await;
            if let Ok(Readiness::Ready) = self.upkeep.prepare().await {
                self.processor.intake.store_answered();
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
        for parked in processor.lot.clear() {
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
