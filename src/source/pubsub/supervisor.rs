//! Keeps one stream alive: whatever ends it, it comes back.

use std::{sync::Arc, time::Duration};

use google_cloud_pubsub::subscriber::ShutdownBehavior;
use tokio::time;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::debug;

use super::{
    clients::Clients,
    generation::Generation,
    health::Health,
    inlet::Inlet,
    notice::Notice,
    probe::{BACKOFF, Probe},
    reason::{Failure, Reason},
};
use crate::metrics::Metrics;

/// A stream that lasts so long works; one that is refused ends sooner.
const PROVEN: Duration = Duration::from_secs(10);

/// What a stream is opened with.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) subscription: String,
    /// This stream's share, never below 1: zero means no limit to the client.
    pub(super) messages: i64,
    pub(super) bytes: i64,
    pub(super) lease_extension: Duration,
    pub(super) max_lease: Duration,
    pub(super) silence: Duration,
    /// Of an emulator; see [`Settings::patience`].
    pub(super) emulated: bool,
}

impl Settings {
    /// How long a stream may be silent when as many before it were replaced for that. Google's emulator never forgets a
    /// stream that closed before anything came: it goes on sending to it, and each such message stays away for one ack
    /// deadline. So there an idle subscription is left alone longer and longer; the real thing is looked after evenly.
    fn patience(&self, replaced: u32) -> Duration {
        if self.emulated { self.silence.saturating_mul(1 << replaced.min(6)) } else { self.silence }
    }
}

/// One per stream.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) stream: usize,
    pub(super) settings: Settings,
    pub(super) clients: Arc<Clients>,
    pub(super) probe: Arc<Probe>,
    pub(super) health: Arc<Health>,
    pub(super) notice: Arc<Notice>,
    pub(super) inlet: Arc<Inlet>,
    pub(super) tasks: TaskTracker,
    pub(super) metrics: Metrics,
}

/// What the next step depends on.
#[derive(Debug, Default)]
struct Past {
    /// Failures in a row.
    failures: u16,
    /// Streams in a row that were replaced without having heard anything.
    replaced: u32,
}

#[derive(Debug)]
enum State {
    /// The probe is asked, then a stream is opened. A silent one stays until the new one reads.
    Rebuilding { old: Option<Generation> },
    /// A stream is read.
    Running(Generation),
    /// Something failed for the nth time in a row.
    BackingOff { old: Option<Generation>, failures: u16 },
    /// Stopped; what is left is drained.
    Closed(Option<Generation>),
}

impl Supervisor {
    /// Until `stopping`; then drains its stream and returns.
    pub(super) async fn run(self, stopping: CancellationToken) {
        let mut state = State::Rebuilding { old: None };
        let mut past = Past::default();
        loop {
            state = match state {
                State::Rebuilding { old } => self.rebuild(old, &mut past, &stopping).await,
                State::Running(generation) => self.watch(generation, &mut past, &stopping).await,
                State::BackingOff { old, failures } => {
                    let pause = time::sleep(BACKOFF.delay(failures, rand::random()));
                    match stopping.run_until_cancelled(pause).await {
                        Some(()) => State::Rebuilding { old },
                        None => State::Closed(old),
                    }
                }
                State::Closed(generation) => {
                    if let Some(generation) = generation {
                        generation.drain().await;
                    }
                    debug!(stream = self.stream, "Stream {} is closed", self.stream);
                    return;
                }
            };
        }
    }

    /// Opens a stream once the probe says that there is something to stream from.
    async fn rebuild(&self, old: Option<Generation>, past: &mut Past, stopping: &CancellationToken) -> State {
        let opened = async {
            self.probe.check().await?;
            self.open().await.inspect_err(|failure| self.notice.failed(&self.settings.subscription, failure))
        };
        match stopping.run_until_cancelled(opened).await {
            None => State::Closed(old),
            Some(Ok(generation)) => {
                debug!(stream = self.stream, "Stream {} is open", self.stream);
                State::Running(generation)
            }
            Some(Err(failure)) => {
                past.failures = past.failures.saturating_add(1);
                // Where nothing can be streamed from, the old one only spins.
                let old = old.filter(|_| !failure.reason.forbids_streaming());
                State::BackingOff { old, failures: past.failures }
            }
        }
    }

    async fn open(&self) -> Result<Generation, Failure> {
        let settings = &self.settings;
        let stream = self
            .clients
            .subscriber()
            .await?
            .subscribe(&settings.subscription)
            .set_max_outstanding_messages(settings.messages)
            .set_max_outstanding_bytes(settings.bytes)
            .set_max_lease_extension(settings.lease_extension)
            .set_max_lease(settings.max_lease)
            .set_shutdown_behavior(ShutdownBehavior::WaitForProcessing)
            .build();
        Ok(Generation::start(stream, Arc::clone(&self.inlet), &self.tasks, &self.health))
    }

    /// Until the stream ends, is silent for too long, or can only spin.
    async fn watch(&self, mut generation: Generation, past: &mut Past, stopping: &CancellationToken) -> State {
        let patience = self.settings.patience(past.replaced);
        let mut proven = false;
        let failure = loop {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return State::Closed(Some(generation)),
                over = generation.over(patience) => match over {
                    Some(failure) => break failure,
                    None => {
                        past.replaced = if generation.has_heard() { 1 } else { past.replaced.saturating_add(1) };
                        self.count(Reason::Silence);
                        debug!(stream = self.stream, "Stream {} was silent for long and is replaced", self.stream);
                        return State::Rebuilding { old: Some(generation) };
                    }
                },
                () = self.health.unusable() => {
                    break Failure::new(Reason::Unreachable, "the endpoint can not be reached");
                }
                () = time::sleep(PROVEN), if !proven => {
                    proven = true;
                    self.notice.recovered(&self.settings.subscription);
                }
            }
        };
        self.count(failure.reason);
        self.notice.failed(&self.settings.subscription, &failure);
        if failure.reason.blames_credentials() {
            self.clients.doubt_credentials().await;
        }
        past.failures = if generation.has_worked() { 1 } else { past.failures.saturating_add(1) };
        State::BackingOff { old: None, failures: past.failures }
    }

    fn count(&self, reason: Reason) {
        self.metrics.source_restarts.with_label_values(&["pubsub", reason.as_str()]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_subscription_of_an_emulator_is_left_alone_longer_and_longer() {
        let settings = |emulated| Settings {
            subscription: String::new(),
            messages: 2,
            bytes: 1,
            lease_extension: Duration::from_secs(60),
            max_lease: Duration::from_secs(600),
            silence: Duration::from_secs(300),
            emulated,
        };
        let minutes = |emulated, replaced| settings(emulated).patience(replaced).as_secs() / 60;

        assert_eq!([0, 1, 2, 6, 7, u32::MAX].map(|n| minutes(true, n)), [5, 10, 20, 320, 320, 320]);
        assert_eq!([0, 1, u32::MAX].map(|n| minutes(false, n)), [5, 5, 5]);
    }
}
