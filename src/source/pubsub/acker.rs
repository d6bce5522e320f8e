//! Answers to Pub/Sub: best effort on ordinary subscriptions, confirmed on exactly-once ones.

use std::sync::Arc;

use async_trait::async_trait;
use google_cloud_pubsub::subscriber::handler::Handler;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::{budget::Permit, held::Held, reason};
use crate::{metrics::Metrics, source::Acker};

/// Confirmations that may be awaited at once. On a dead network they pile up: the next ack then waits for a place.
const MAX_CONFIRMATIONS: usize = 1_000;

/// What all ackers of the source share.
#[derive(Debug)]
pub(super) struct Answers {
    tasks: TaskTracker,
    places: Arc<Semaphore>,
    metrics: Metrics,
}

impl Answers {
    /// Confirmations run in `tasks`, which `close` waits for.
    pub(super) fn new(tasks: TaskTracker, metrics: Metrics) -> Self {
        Self { tasks, places: Arc::new(Semaphore::new(MAX_CONFIRMATIONS)), metrics }
    }

    /// How many acks are not yet confirmed.
    pub(super) fn unconfirmed(&self) -> usize {
        MAX_CONFIRMATIONS - self.places.available_permits()
    }

    fn count(&self, operation: &str, result: &str) {
        self.metrics.pubsub_requests.with_label_values(&[operation, result]).inc();
    }
}

/// Answers one delivery. Dropped unanswered, it nacks: whatever becomes of the task that holds it, the message goes
/// back, and the stream can shut down.
#[derive(Debug)]
pub(super) struct PubsubAcker {
    handle: Option<Handler>,
    answers: Arc<Answers>,
    held: Held,
    _permit: Permit,
}

impl PubsubAcker {
    /// `held` and `permit` are given back when the answer is handed over.
    pub(super) fn new(handle: Handler, answers: Arc<Answers>, held: Held, permit: Permit) -> Self {
        Self { handle: Some(handle), answers, held, _permit: permit }
    }
}

#[async_trait]
impl Acker for PubsubAcker {
    async fn ack(mut self: Box<Self>) {
        if let Some(Handler::ExactlyOnce(_)) = &self.handle {
            // Before the handle leaves the guard: a caller that is cut here must still nack.
            let place = Arc::clone(&self.answers.places).acquire_owned().await;
            let (Some(Handler::ExactlyOnce(handle)), Ok(place)) = (self.handle.take(), place) else { return };
            let answers = Arc::clone(&self.answers);
            let message_id = Arc::clone(self.held.message_id());
            self.answers.tasks.spawn(async move {
                let result = handle.confirmed_ack().await;
                let label = reason::ack_result(&result);
                answers.count("ack", label);
                if result.is_err() {
                    warn!(
                        pubsub_message_id = %message_id,
                        reason = label,
                        "The ack of message {message_id} was not confirmed ({label}); it may be delivered again"
                    );
                }
                drop(place);
            });
        } else if let Some(handle) = self.handle.take() {
            handle.ack();
            self.answers.count("ack", "sent");
        }
    }

    async fn nack(self: Box<Self>) {
        drop(self);
    }
}

impl Drop for PubsubAcker {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.nack();
            self.answers.count("nack", "sent");
        }
    }
}
