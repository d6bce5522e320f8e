//! Deliveries pulled from a Pub/Sub subscription with Google's client library.
//!
//! ```text
//! supervisor ─ probe, open, watch ─┐           (one per stream)
//!                                  ▼
//!   Pub/Sub ══ stream ══► reader ──► budget ──► channel ──► `next`
//!      ▲                                                      │
//!      └──────────────── acker: ack, confirmed ack, nack ◄────┘
//! ```
//! The library gives up on errors that pass, shows no outage, spins on an endpoint that does not speak gRPC and has no
//! limit of its own on what it holds; the parts here make up for it. It extends the leases of all that it delivered.

mod acker;
mod budget;
mod clients;
mod config;
mod endpoint;
mod generation;
mod health;
mod held;
mod inlet;
mod notice;
mod peek;
mod probe;
mod publishing;
mod pulse;
mod reader;
mod reason;
mod request_error;
mod supervisor;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tracing::{info, warn};

use self::{
    acker::Answers,
    budget::Budget,
    clients::Clients,
    health::Health,
    inlet::Inlet,
    notice::Notice,
    probe::Probe,
    supervisor::{Settings, Supervisor},
};
pub use self::{
    config::{Config, Problem},
    endpoint::{Endpoint, EndpointError},
    peek::{GivenBack, Peek},
    publishing::Topic,
    request_error::RequestError,
};
use super::{Delivery, Source, SourceError};
use crate::{clock::Clock, metrics::Metrics};

/// What the rest of the configuration decides for the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Deliveries held unanswered, over all streams; at least 1.
    pub count: usize,
    /// Their bytes, over all streams; at least 1, at most 4 GiB - 1.
    pub bytes: u64,
    /// How long the lease on one delivery is kept up at most; longer than any delivery is ever held.
    pub max_lease: Duration,
}

/// Pulls from one subscription.
pub struct PubsubSource {
    subscription: String,
    deliveries: mpsc::Receiver<Delivery>,
    budget: Arc<Budget>,
    answers: Arc<Answers>,
    health: Arc<Health>,
    /// What reads and probes.
    supervisors: TaskTracker,
    /// What must be over before the last answer is known to have been sent.
    tasks: TaskTracker,
    stopping: CancellationToken,
    /// A source that is dropped without `close` still gives back what it holds.
    _dropped: DropGuard,
}

impl fmt::Debug for PubsubSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PubsubSource").field("subscription", &self.subscription).finish_non_exhaustive()
    }
}

impl PubsubSource {
    /// Starts to pull, in tasks of the current runtime. Returns at once: a server or a subscription that is not there
    /// is waited for.
    ///
    /// # Errors
    /// [`SourceError::Refused`] when subscription or endpoint can not be told from `config`.
    pub fn open(config: &Config, limits: Limits, metrics: Metrics, clock: Arc<dyn Clock>) -> Result<Self, SourceError> {
        let refused = |why: String| SourceError::Refused(why.into());
        let subscription =
            config.subscription_name().map_err(|problem| refused(format!("{} {}", problem.field, problem.message)))?;
        let endpoint = config.endpoint().map_err(|error| SourceError::Refused(error.into()))?;
        if endpoint.is_plain() {
            let endpoint = endpoint.as_str();
            warn!(endpoint, "Pulling from {endpoint} without encryption and without credentials: an emulator");
        }
        info!(subscription, streams = config.streams, limits.count, limits.bytes, "Pulling from {subscription}");

        let stopping = CancellationToken::new();
        let (tasks, supervisors) = (TaskTracker::new(), TaskTracker::new());
        let (sender, deliveries) = mpsc::channel(limits.count.max(1));
        let budget = Arc::new(Budget::new(limits.count, limits.bytes, metrics.clone()));
        let answers = Arc::new(Answers::new(tasks.clone(), metrics.clone()));
        let health = Arc::new(Health::new(metrics.clone()));
        let notice = Arc::new(Notice::about("A stream of the subscription"));
        let clients = Arc::new(Clients::new(endpoint, config.credentials_file.clone()));
        let probe =
            Arc::new(Probe::new(subscription.clone(), Arc::clone(&clients), Arc::clone(&health), metrics.clone()));
        let inlet = Arc::new(Inlet {
            budget: Arc::clone(&budget),
            answers: Arc::clone(&answers),
            held: Arc::default(),
            deliveries: sender,
            stopping: stopping.clone(),
            metrics: metrics.clone(),
            clock,
        });
        for stream in 0..config.streams.max(1) {
            let supervisor = Supervisor {
                stream,
                settings: settings(config, &subscription, limits),
                clients: Arc::clone(&clients),
                probe: Arc::clone(&probe),
                health: Arc::clone(&health),
                notice: Arc::clone(&notice),
                inlet: Arc::clone(&inlet),
                tasks: tasks.clone(),
                metrics: metrics.clone(),
            };
            supervisors.spawn(supervisor.run(stopping.clone()));
        }
        let stop_probe = stopping.clone();
        supervisors.spawn(async move { probe.run(&stop_probe).await });
        let dropped = stopping.clone().drop_guard();
        Ok(Self { subscription, deliveries, budget, answers, health, supervisors, tasks, stopping, _dropped: dropped })
    }

    /// Tells at any time, even after the source is gone, whether the subscription answers and is read.
    #[must_use]
    pub fn health(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let health = Arc::clone(&self.health);
        Arc::new(move || health.is_good())
    }
}

#[async_trait]
impl Source for PubsubSource {
    fn name(&self) -> &str {
        "pubsub"
    }

    async fn next(&mut self) -> Result<Option<Delivery>, SourceError> {
        Ok(self.deliveries.recv().await)
    }

    /// Nothing is handed over from the first poll on, and what waited goes back. Call it as soon as the drain begins,
    /// beside the handlers that still run: it returns when the last of them has answered.
    async fn close(mut self: Box<Self>, deadline: Instant) -> Result<(), SourceError> {
        self.stopping.cancel();
        self.deliveries.close();
        let mut waiting = Vec::new();
        while let Some(delivery) = self.deliveries.recv().await {
            waiting.push(delivery);
        }
        // Given back once the streams are closed: an open one would be sent them again at once, and what is on its way
        // to a stream that closes stays away for a whole lease.
        self.supervisors.close();
        let _ = time::timeout_at(deadline, self.supervisors.wait()).await;
        drop(waiting);
        self.tasks.close();
        if time::timeout_at(deadline, self.tasks.wait()).await.is_ok() {
            return Ok(());
        }
        let unconfirmed = (self.budget.outstanding() + self.answers.unconfirmed()).max(1);
        Err(SourceError::Unconfirmed { unconfirmed })
    }
}

/// One stream's share: never 0, which would mean no limit, and 2 messages, since one alone waits for the other.
fn settings(config: &Config, subscription: &str, limits: Limits) -> Settings {
    let streams = config.streams.max(1);
    let share = limits.count.div_ceil(streams).max(2);
    let bytes = limits.bytes.div_ceil(streams as u64).max(1);
    Settings {
        subscription: subscription.to_owned(),
        messages: i64::try_from(share).unwrap_or(i64::MAX),
        bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        lease_extension: config.lease_extension,
        max_lease: limits.max_lease,
        silence: config.silence,
        emulated: config.endpoint().is_ok_and(|endpoint| endpoint.is_plain()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(count: usize, bytes: u64, streams: usize) -> (i64, i64) {
        let config = Config { streams, ..Config::default() };
        let settings = settings(&config, "s", Limits { count, bytes, max_lease: Duration::MAX });
        (settings.messages, settings.bytes)
    }

    #[test]
    fn limits_are_divided_over_the_streams_and_never_switched_off() {
        assert_eq!(shares(32, 64, 1), (32, 64));
        assert_eq!(shares(32, 64, 4), (8, 16));
        assert_eq!(shares(5, 10, 4), (2, 3));
        assert_eq!(shares(0, 0, 0), (2, 1));
        assert_eq!(shares(usize::MAX, u64::MAX, 1), (i64::MAX, i64::MAX));
    }
}
