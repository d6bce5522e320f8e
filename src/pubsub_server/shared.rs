//! What all calls of one server share: the broker behind its lock, a bell per stream, and the task that watches the time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use tokio::{
    sync::Notify,
    time::{self, Instant},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::Status;

use super::{
    Options,
    broker::{Broker, Now},
    faults::Faults,
    subscription::{StreamId, Window},
};
use crate::clock::{Clock, SystemClock};

/// Rung when a stream has something to send, or is to end.
#[derive(Debug, Default)]
pub(super) struct Bell {
    pub(super) rung: Notify,
    /// Set once, before ringing: the stream must end with this.
    pub(super) end: OnceLock<Status>,
}

#[derive(Debug)]
struct State {
    broker: Broker,
    bells: HashMap<StreamId, Arc<Bell>>,
    /// When the timekeeper wakes.
    armed: Option<Instant>,
}

/// See the module's words.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    rearmed: Notify,
    pub(super) options: Options,
    pub(super) faults: Faults,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

impl Shared {
    pub(super) fn new(options: Options) -> Self {
        let broker = Broker::new(options.max_bytes, SystemClock.now());
        Self {
            state: Mutex::new(State { broker, bells: HashMap::new(), armed: None }),
            rearmed: Notify::new(),
            options,
            faults: Faults::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Runs one call on the broker and rings whom it concerns. Short, and never across an await.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut Broker, Now) -> R) -> R {
        let mut state = self.lock();
        let now = now();
        let result = call(&mut state.broker, now);
        self.settle(&mut state, now);
        result
    }

    /// Opens a stream; dropping the guard closes it.
    pub(super) fn open(self: &Arc<Self>, subscription: &str, window: Window) -> Result<OpenStream, Status> {
        let mut state = self.lock();
        let id = state.broker.open(subscription, window)?;
        let bell = Arc::new(Bell::default());
        state.bells.insert(id, Arc::clone(&bell));
        self.settle(&mut state, now());
        Ok(OpenStream { shared: Arc::clone(self), subscription: subscription.to_owned(), id, bell, lost: false })
    }

    /// Ends a call: rings whom it concerns and sees to the time.
    fn settle(&self, state: &mut State, now: Now) {
        let effects = state.broker.finish(now);
        for bell in effects.orphans.iter().filter_map(|id| state.bells.get(id)) {
            end(bell, Status::not_found("the subscription was deleted"));
        }
        for bell in effects.woken.iter().filter_map(|id| state.bells.get(id)) {
            bell.rung.notify_one();
        }
        if effects.timer.is_some_and(|at| state.armed.is_none_or(|armed| at < armed)) {
            state.armed = effects.timer;
            self.rearmed.notify_one();
        }
    }

    /// Ends all streams of a subscription with `status`; answers how many.
    pub(super) fn end_streams(&self, subscription: &str, status: &Status) -> usize {
        let state = self.lock();
        let ids = state.broker.streams(subscription);
        ids.iter().filter_map(|id| state.bells.get(id)).map(|bell| end(bell, status.clone())).count()
    }

    /// Advances the broker whenever something is due, until the server stops.
    pub(super) async fn keep_time(self: Arc<Self>) {
        while !self.stop.is_cancelled() {
            // Whatever is armed from here on counts, by this call or by others beside it.
            self.lock().armed = None;
            let others = self.with(Broker::advance);
            let next = {
                let mut state = self.lock();
                state.armed = state.armed.into_iter().chain(others).min();
                state.armed
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = self.rearmed.notified() => {}
                () = time::sleep_until(next.unwrap_or_else(far_away)) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open stream of a subscription. Dropped, it closes: see [`super::subscription::Subscription::close`].
#[derive(Debug)]
pub(super) struct OpenStream {
    shared: Arc<Shared>,
    pub(super) subscription: String,
    pub(super) id: StreamId,
    pub(super) bell: Arc<Bell>,
    /// The reader is gone for certain: what it holds goes back when the stream closes.
    pub(super) lost: bool,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.shared.lock().bells.remove(&self.id);
        self.shared.with(|broker, _| broker.close(&self.subscription, self.id, self.lost));
    }
}

fn end(bell: &Bell, status: Status) {
    // The first reason stands.
    drop(bell.end.set(status));
    bell.rung.notify_one();
}

fn now() -> Now {
    Now { instant: Instant::now(), wall: SystemClock.now() }
}

fn far_away() -> Instant {
    Instant::now() + std::time::Duration::from_secs(24 * 3600)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pubsub_server::proto::{PubsubMessage, Subscription, Topic};

    const TOPIC: &str = "projects/p/topics/events";
    const SUBSCRIPTION: &str = "projects/p/subscriptions/events";

    fn shared() -> Arc<Shared> {
        let shared = Arc::new(Shared::new(Options::default()));
        shared.with(|broker, now| {
            broker.create_topic(Topic { name: TOPIC.into(), ..Topic::default() }).unwrap();
            let subscription =
                Subscription { name: SUBSCRIPTION.into(), topic: TOPIC.into(), ..Subscription::default() };
            broker.create_subscription(subscription).unwrap();
            let message = PubsubMessage { data: b"a".into(), ..PubsubMessage::default() };
            broker.publish(TOPIC, vec![message], now).unwrap();
        });
        shared.tasks.spawn(Arc::clone(&shared).keep_time());
        shared
    }

    fn window() -> Window {
        Window { ack_deadline: Duration::from_secs(10), max_messages: None, max_bytes: None }
    }

    #[tokio::test(start_paused = true)]
    async fn leases_that_nobody_reads_run_out_again_and_again() {
        let shared = shared();
        let _stream = shared.open(SUBSCRIPTION, window()).unwrap();

        time::sleep(Duration::from_secs(35)).await;

        assert_eq!(shared.with(|broker, _| broker.deliveries(SUBSCRIPTION)), Some(4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_rung_when_a_lease_of_another_ends() {
        let shared = shared();
        let gone = shared.open(SUBSCRIPTION, window()).unwrap();
        shared.with(|broker, now| broker.subscription(SUBSCRIPTION, now).unwrap().take(gone.id, now.instant));
        drop(gone);
        let stream = shared.open(SUBSCRIPTION, window()).unwrap();
        let began = Instant::now();

        stream.bell.rung.notified().await;

        assert_eq!(began.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn the_timekeeper_ends_with_the_server() {
        let shared = shared();

        shared.stop.cancel();
        shared.tasks.close();

        shared.tasks.wait().await;
    }
}
