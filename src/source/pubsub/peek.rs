//! A look at what waits on a subscription: a few messages are read, shown, and given back.
//!
//! Given back while its stream is open, a message is sent again on it at once, which costs another attempt and hides it
//! for a whole lease. Only the server knows when a stream is closed: the client says that it has nothing more to say,
//! and the server ends the stream. The library cuts its streams instead, so this one is opened without it.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::DateTime;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    PubsubMessage, ReceivedMessage, StreamingPullRequest, Subscription,
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{self, Instant},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::TaskTracker;

use super::{
    clients::{Caller, Clients},
    config::Config,
    reason::{Failure, Reason},
    request_error::RequestError,
};
use crate::event::RawEvent;

/// How long one request may take, from connecting to the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long messages are held at a time, in seconds: so late they return when this process is killed.
const LEASE: i32 = 30;
/// Between two extensions. Each is a sign of life on the stream too, which the server wants every 30 s.
const EXTENSION: Duration = Duration::from_secs(10);
/// How long the server may take to end the stream.
const END: Duration = Duration::from_secs(5);
/// Ack ids in one request.
const BATCH: usize = 1_000;

/// Messages of one subscription, held until [`close`](Self::close). Dropped, they return when their lease ends.
pub struct Peek {
    subscription: String,
    max_attempts: Option<u32>,
    most: usize,
    read: usize,
    caller: Caller,
    /// Dropped, it tells the server that the stream is over.
    requests: mpsc::Sender<StreamingPullRequest>,
    messages: mpsc::Receiver<ReceivedMessage>,
    /// Of all that came, in order.
    ack_ids: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<Failure>>,
    extend_at: Instant,
}

/// What became of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenBack {
    /// So many were shown.
    pub read: usize,
    /// So many came beyond the limit. They went back too; what was still on its way returns after its ack deadline.
    pub beyond: usize,
    /// True when the server took them back. Otherwise they return after their ack deadline.
    pub confirmed: bool,
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
    pub async fn open(config: &Config, most: usize) -> Result<Self, RequestError> {
        let subscription = config.subscription_name()?;
        let clients = Clients::new(config.endpoint()?, config.credentials_file.clone());
        let mut caller = clients.caller().await?;
        let found = find(&mut caller, &subscription).await?;
        let most = most.max(1);
        let first = StreamingPullRequest {
            subscription: subscription.clone(),
            stream_ack_deadline_seconds: LEASE,
            max_outstanding_messages: i64::try_from(most).unwrap_or(i64::MAX),
            max_outstanding_bytes: i64::try_from(config.max_outstanding_bytes.as_u64().max(1)).unwrap_or(i64::MAX),
            protocol_version: 1,
            ..StreamingPullRequest::default()
        };
        let (requests, sent) = mpsc::channel(2);
        // It has room.
        let _ = requests.try_send(first);
        let (sender, messages) = mpsc::channel(most);
        let ack_ids = Arc::default();
        let reading = read(caller.clone(), subscription.clone(), sent, sender, Arc::clone(&ack_ids));
        let reader = Some(TaskTracker::new().spawn(reading));
        let policy = found.dead_letter_policy.map(|policy| policy.max_delivery_attempts);
        let max_attempts = policy.and_then(|attempts| u32::try_from(attempts).ok());
        let extend_at = Instant::now() + EXTENSION;
        Ok(Self { subscription, max_attempts, most, read: 0, caller, requests, messages, ack_ids, reader, extend_at })
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
    pub async fn next(&mut self, wait: Duration) -> Result<Option<RawEvent>, RequestError> {
        let end = Instant::now() + wait;
        while self.read < self.most
            && let Some(reader) = &mut self.reader
        {
            tokio::select! {
                biased;
                Some(received) = self.messages.recv() => {
                    self.read += 1;
                    return Ok(Some(raw_event(received)));
                }
                ended = reader => {
                    self.reader = None;
                    return Err(ended.unwrap_or_else(|_| Failure::new(Reason::Panicked, "the reader died")).into());
                }
                () = time::sleep_until(end) => return Ok(None),
                () = time::sleep_until(self.extend_at) => self.extend().await,
            }
        }
        Ok(None)
    }

    /// Keeps what came; a failure means that it returns early.
    async fn extend(&mut self) {
        self.extend_at = Instant::now() + EXTENSION;
        // A full channel means that the last sign of life has not left yet.
        let _ = self.requests.try_send(StreamingPullRequest::default());
        let ack_ids = self.ack_ids.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.modify(&ack_ids, LEASE).await;
    }

    /// Ends the stream, then gives back what came on it, shown or not. Returns within 15 s.
    pub async fn close(mut self) -> GivenBack {
        // Nobody listens on the first from here on, and nobody speaks on the second.
        self.messages.close();
        self.requests = mpsc::channel(1).0;
        if let Some(mut reader) = self.reader.take()
            && time::timeout(END, &mut reader).await.is_err()
        {
            reader.abort();
        }
        let ack_ids = mem::take(&mut *self.ack_ids.lock().unwrap_or_else(PoisonError::into_inner));
        let confirmed = self.modify(&ack_ids, 0).await;
        GivenBack { read: self.read, beyond: ack_ids.len() - self.read, confirmed }
    }

    async fn modify(&mut self, ack_ids: &[String], seconds: i32) -> bool {
        let all = async {
            for batch in ack_ids.chunks(BATCH) {
                self.caller.modify_ack_deadline(&self.subscription, batch.to_vec(), seconds).await?;
            }
            Ok::<_, Failure>(())
        };
        matches!(time::timeout(TIMEOUT, all).await, Ok(Ok(())))
    }
}

/// Reads until the server ends the stream. The wait is raced against nothing: what is cut may be lost for a lease.
async fn read(
    mut caller: Caller,
    subscription: String,
    requests: mpsc::Receiver<StreamingPullRequest>,
    messages: mpsc::Sender<ReceivedMessage>,
    ack_ids: Arc<Mutex<Vec<String>>>,
) -> Failure {
    let mut stream = match caller.streaming_pull(&subscription, ReceiverStream::new(requests)).await {
        Ok(stream) => stream,
        Err(failure) => return failure,
    };
    loop {
        match stream.message().await {
            Ok(Some(response)) => {
                for received in response.received_messages {
                    ack_ids.lock().unwrap_or_else(PoisonError::into_inner).push(received.ack_id.clone());
                    // Closed once enough were read; the rest only goes back.
                    let _ = messages.send(received).await;
                }
            }
            Ok(None) => return Failure::new(Reason::Ended, "the stream ended"),
            Err(status) => return Failure::from(&status),
        }
    }
}

fn raw_event(received: ReceivedMessage) -> RawEvent {
    let attempt = u32::try_from(received.delivery_attempt).ok().filter(|attempt| *attempt > 0);
    let PubsubMessage { data, attributes, message_id, publish_time, ordering_key } =
        received.message.unwrap_or_default();
    let publish_time = publish_time
        .and_then(|time| DateTime::from_timestamp(time.seconds, u32::try_from(time.nanos).unwrap_or_default()));
    RawEvent {
        data: data.into(),
        attributes: attributes.into_iter().collect(),
        message_id,
        publish_time,
        ordering_key,
        delivery_attempt: attempt,
    }
}

async fn find(caller: &mut Caller, subscription: &str) -> Result<Subscription, RequestError> {
    match time::timeout(TIMEOUT, caller.get_subscription(subscription)).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(Failure { reason: Reason::NotFound, .. })) => {
            Err(RequestError::NotFound(format!("subscription {subscription} does not exist")))
        }
        Ok(Err(failure)) => Err(failure.into()),
        Err(_) => Err(RequestError::Unreachable("no answer in time".into())),
    }
}
