//! A look at what waits on a subscription: a few messages are read, shown, and given back.
//!
//! The library can only stream, so this is a stream of its own: asked for so many messages and no more, read by the
//! same loop as every other, held until it is closed. Given back earlier, they would be sent again on the same stream.

use std::{fmt, sync::Arc, time::Duration};

use futures::FutureExt;
use google_cloud_pubsub::subscriber::{MessageStream, ShutdownBehavior, ShutdownToken, handler::Handler};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::Subscription;
use tokio::{sync::mpsc, task::JoinHandle, time};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    acker::Answers,
    budget::Budget,
    clients::Clients,
    config::Config,
    inlet::Inlet,
    pulse::Pulse,
    reader,
    reason::{Failure, Reason},
};
use crate::{
    clock::Clock,
    event::RawEvent,
    metrics::Metrics,
    source::{Acker, Delivery},
};

/// How long the subscription may be looked for, from connecting to the answer.
const PROBE: Duration = Duration::from_secs(10);
/// The shortest there is: what is lost on the way comes back after it.
const LEASE: Duration = Duration::from_secs(10);
/// Longer than anybody looks.
const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the stream is read on for what was sent beyond the limit, and the pause that ends it sooner.
const DRAIN: Duration = Duration::from_millis(500);
const QUIET: Duration = Duration::from_millis(100);
/// How long giving back may take.
const GIVE_BACK: Duration = Duration::from_secs(10);

/// Messages of one subscription, held until [`close`](Self::close). Close it after an error too: dropped, nobody waits
/// until the answers are sent.
pub struct Peek {
    subscription: String,
    max_attempts: Option<u32>,
    most: usize,
    deliveries: mpsc::Receiver<Delivery>,
    held: Vec<Box<dyn Acker>>,
    reader: Reader,
    pulse: Arc<Pulse>,
    token: ShutdownToken,
    stopping: CancellationToken,
}

/// The reading task, which gives what came after the stop.
#[derive(Debug)]
enum Reader {
    Reads(JoinHandle<(Failure, Vec<Handler>)>),
    Ended(Vec<Handler>),
}

/// What became of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenBack {
    /// So many were shown.
    pub read: usize,
    /// So many came beyond the limit. They went back too; what was still on its way returns after its ack deadline.
    pub beyond: usize,
    /// True when all answers were sent in time. Otherwise the messages return after their ack deadline.
    pub in_time: bool,
}

/// Why there is nothing (more) to see. The text holds no payload.
#[derive(Debug, thiserror::Error)]
pub enum PeekError {
    /// Subscription or endpoint can not be told from the configuration.
    #[error("{0}")]
    Unclear(String),
    /// The subscription does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The server can not be reached, or does not answer.
    #[error("Pub/Sub can not be reached: {0}")]
    Unreachable(String),
    /// The server refused, or ended the stream.
    #[error("Pub/Sub refused ({reason}): {words}")]
    Refused {
        /// Its class.
        reason: &'static str,
        /// What it said.
        words: String,
        /// What can be done about it.
        advice: &'static str,
    },
}

impl From<Failure> for PeekError {
    fn from(Failure { reason, words }: Failure) -> Self {
        match reason {
            Reason::NotFound => Self::NotFound(words),
            Reason::Unreachable | Reason::Timeout => Self::Unreachable(words),
            other => Self::Refused { reason: other.as_str(), words, advice: other.advice() },
        }
    }
}

impl fmt::Debug for Peek {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek").field("subscription", &self.subscription).finish_non_exhaustive()
    }
}

impl Peek {
    /// Looks for the configured subscription and opens a stream for at most `most` messages, at least one, and as many
    /// bytes as `pubsub.max_outstanding_bytes`.
    ///
    /// # Errors
    /// Subscription or server is not there, within 10 s; or they can not be told from `config`.
    pub async fn open(config: &Config, most: usize, clock: Arc<dyn Clock>) -> Result<Self, PeekError> {
        let subscription = config
            .subscription_name()
            .map_err(|problem| PeekError::Unclear(format!("pubsub.{} {}", problem.field, problem.message)))?;
        let endpoint = config.endpoint().map_err(|error| PeekError::Unclear(format!("pubsub.endpoint {error}")))?;
        let clients = Clients::new(endpoint, config.credentials_file.clone());
        let found = find(&clients, &subscription).await?;
        let most = most.max(1);
        let bytes = config.max_outstanding_bytes.as_u64().max(1);
        let stream = clients
            .subscriber()
            .await?
            .subscribe(&subscription)
            .set_max_outstanding_messages(i64::try_from(most).unwrap_or(i64::MAX))
            .set_max_outstanding_bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
            .set_max_lease_extension(LEASE)
            .set_max_lease(MAX_LEASE)
            .set_shutdown_behavior(ShutdownBehavior::WaitForProcessing)
            .build();
        let metrics = Metrics::new().map_err(|error| Failure::new(Reason::Other, error.to_string()))?;
        let (sender, deliveries) = mpsc::channel(most);
        let stopping = CancellationToken::new();
        let tasks = TaskTracker::new();
        let inlet = Inlet {
            budget: Arc::new(Budget::new(most, bytes, metrics.clone())),
            answers: Arc::new(Answers::new(tasks.clone(), metrics.clone())),
            deliveries: sender,
            stopping: stopping.clone(),
            metrics,
            clock,
        };
        let (token, pulse) = (stream.shutdown_token(), Arc::new(Pulse::new()));
        let reader = Reader::Reads(tasks.spawn(read(stream, inlet, Arc::clone(&pulse))));
        let policy = found.dead_letter_policy.map(|policy| policy.max_delivery_attempts);
        let max_attempts = policy.and_then(|attempts| u32::try_from(attempts).ok());
        Ok(Self { subscription, max_attempts, most, deliveries, held: Vec::new(), reader, pulse, token, stopping })
    }

    /// The full name of the subscription.
    #[must_use]
    pub fn subscription(&self) -> &str {
        &self.subscription
    }

    /// After so many attempts the subscription's dead-letter policy takes a message, if there is one.
    #[must_use]
    pub const fn max_attempts(&self) -> Option<u32> {
        self.max_attempts
    }

    /// The next message; `None` when all that were wanted came, or none for `wait`. Cancel-safe.
    ///
    /// # Errors
    /// The stream ended. What came before can still be given back.
    pub async fn next(&mut self, wait: Duration) -> Result<Option<Arc<RawEvent>>, PeekError> {
        if self.held.len() >= self.most {
            return Ok(None);
        }
        let Reader::Reads(reader) = &mut self.reader else { return Ok(None) };
        tokio::select! {
            biased;
            Some(delivery) = self.deliveries.recv() => {
                self.held.push(delivery.acker);
                Ok(Some(delivery.raw))
            }
            ended = reader => {
                let (failure, kept) = ended.unwrap_or_else(|error| (died(&error), Vec::new()));
                self.reader = Reader::Ended(kept);
                Err(failure.into())
            }
            () = time::sleep(wait) => Ok(None),
        }
    }

    /// Closes the stream, then gives back what came on it, shown or not. Returns within 21 s.
    pub async fn close(mut self) -> GivenBack {
        let read = self.held.len();
        self.stopping.cancel();
        let kept = match self.reader {
            Reader::Ended(kept) => kept,
            Reader::Reads(reader) => {
                // In time or not: what is left in the client goes back with the last answer.
                let _ = time::timeout(DRAIN, self.pulse.silent_for(QUIET)).await;
                // The order is given at the first poll; the answers, which it waits for, are still to come.
                let _ = self.token.shutdown().now_or_never();
                match time::timeout(GIVE_BACK, reader).await {
                    Ok(Ok((_, kept))) => kept,
                    Ok(Err(_)) | Err(_) => Vec::new(),
                }
            }
        };
        let mut unseen = Vec::new();
        self.deliveries.close();
        while let Some(delivery) = self.deliveries.recv().await {
            unseen.push(delivery);
        }
        let beyond = kept.len() + unseen.len();
        drop((self.held, unseen, kept));
        let in_time = time::timeout(GIVE_BACK, self.token.shutdown()).await.is_ok();
        GivenBack { read, beyond, in_time }
    }
}

/// Reads until the stream is told to end. What is left of it is gone when this returns; the handles live on.
async fn read(mut stream: MessageStream, inlet: Inlet, pulse: Arc<Pulse>) -> (Failure, Vec<Handler>) {
    let mut kept = Vec::new();
    let failure = reader::read(&mut stream, &inlet, &pulse, &mut kept).await;
    (failure, kept)
}

async fn find(clients: &Clients, subscription: &str) -> Result<Subscription, PeekError> {
    let asked = async { clients.caller().await?.get_subscription(subscription).await };
    match time::timeout(PROBE, asked).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(Failure { reason: Reason::NotFound, .. })) => {
            Err(PeekError::NotFound(format!("subscription {subscription} does not exist")))
        }
        Ok(Err(failure)) => Err(failure.into()),
        Err(_) => Err(PeekError::Unreachable("no answer in time".into())),
    }
}

fn died(error: &tokio::task::JoinError) -> Failure {
    Failure::new(Reason::Panicked, if error.is_panic() { "the reader died" } else { "the reader was cut" })
}
