//! StreamingPull: one task per stream, between the client's requests, the broker's bell and the transport.

use std::{pin::Pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use tokio::{
    sync::mpsc,
    time::{self, MissedTickBehavior},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use super::{
    answers, checks,
    faults::{Method, ModAck},
    names::{self, invalid},
    proto::{
        ReceivedMessage, StreamingPullRequest, StreamingPullResponse,
        streaming_pull_response::{AcknowledgeConfirmation, ModifyAckDeadlineConfirmation, SubscriptionProperties},
    },
    shared::{OpenStream, Shared},
    subscription::{Delivery, Window},
};

/// An empty response so often keeps clients sure of the connection.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// How long a stream's end waits to be told to a client that does not read.
const LAST_WORD: Duration = Duration::from_secs(1);

/// What a StreamingPull answers with.
pub(super) type ResponseStream = Pin<Box<dyn Stream<Item = Result<StreamingPullResponse, Status>> + Send>>;

/// Opens a stream. Like Google's server it answers, headers included, only when it has a first response: a client
/// library that gives up waiting for an "open" finds out here.
pub(super) async fn open(
    shared: &Arc<Shared>,
    mut requests: Streaming<StreamingPullRequest>,
) -> Result<ResponseStream, Status> {
    let first = requests.message().await?.ok_or_else(|| invalid("subscription", "the first request is missing"))?;
    names::subscription("subscription", &first.subscription)?;
    let window = Window {
        ack_deadline: checks::ack_deadline("stream_ack_deadline_seconds", first.stream_ack_deadline_seconds)?,
        max_messages: limit(first.max_outstanding_messages),
        max_bytes: limit(first.max_outstanding_bytes),
    };
    let open = shared.open(&first.subscription, window)?;
    let (responses, mut received) = mpsc::channel(1);
    let pump = Pump { shared: Arc::clone(shared), open, responses, pending: StreamingPullResponse::default() };
    shared.tasks.spawn(pump.run(first, requests));
    let first = received.recv().await.unwrap_or_else(|| Err(Status::unavailable("the server is stopping")))?;
    Ok(stream::once(async { Ok(first) }).chain(ReceiverStream::new(received)).boxed())
}

/// A delivery on the wire.
pub(super) fn received(delivery: Delivery) -> ReceivedMessage {
    ReceivedMessage {
        ack_id: delivery.ack_id,
        message: Some(delivery.message.wire.clone()),
        delivery_attempt: i32::try_from(delivery.attempt).unwrap_or(i32::MAX),
    }
}

struct Pump {
    shared: Arc<Shared>,
    open: OpenStream,
    responses: mpsc::Sender<Result<StreamingPullResponse, Status>>,
    /// Confirmations that wait to be sent.
    pending: StreamingPullResponse,
}

/// Why the pump stopped.
enum End {
    /// The server ends the stream.
    Ours(Status),
    /// The client closed it, or ended its side.
    Client,
    /// The connection broke.
    Lost,
}

impl Pump {
    async fn run(mut self, first: StreamingPullRequest, mut requests: Streaming<StreamingPullRequest>) {
        let end = match self.answer(first) {
            Ok(()) => self.pump(&mut requests).await,
            Err(status) => End::Ours(status),
        };
        match end {
            // A client that does not read does not hold up the end.
            End::Ours(status) => drop(self.responses.send_timeout(Err(status), LAST_WORD).await),
            End::Client => {}
            End::Lost => self.open.lost = self.shared.options.release_on_disconnect,
        }
    }

    async fn pump(&mut self, requests: &mut Streaming<StreamingPullRequest>) -> End {
        let stop = self.shared.stop.clone();
        let bell = Arc::clone(&self.open.bell);
        let mut heartbeat = time::interval_at(time::Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut to_send = false;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return End::Ours(Status::unavailable("the server is stopping")),
                () = bell.rung.notified() => {
                    if let Some(end) = bell.end.get() {
                        return End::Ours(end.clone());
                    }
                    to_send = true;
                }
                request = requests.message() => match request {
                    Ok(Some(request)) => match self.answer(request) {
                        Ok(()) => to_send |= self.pending != StreamingPullResponse::default(),
                        Err(status) => return End::Ours(status),
                    },
                    Ok(None) => return End::Client,
                    Err(status) => return ended(&status),
                },
                permit = self.responses.clone().reserve_owned(), if to_send => match permit {
                    Ok(permit) => {
                        let Some(response) = self.response() else {
                            to_send = false;
                            continue;
                        };
                        permit.send(Ok(response));
                        heartbeat.reset();
                    }
                    Err(_) => return self.client_left(requests).await,
                },
                () = self.responses.closed() => return self.client_left(requests).await,
                _ = heartbeat.tick() => {
                    // When the last response has not left yet, the client has a reader's problem, not a doubt.
                    drop(self.responses.try_send(Ok(self.empty())));
                }
            }
        }
    }

    /// The response side is gone; the request side tells how.
    async fn client_left(&self, requests: &mut Streaming<StreamingPullRequest>) -> End {
        let rest = async {
            loop {
                match requests.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return End::Client,
                    Err(status) => return ended(&status),
                }
            }
        };
        time::timeout(Duration::from_secs(1), rest).await.unwrap_or(End::Client)
    }

    /// Does what a request asks.
    fn answer(&mut self, request: StreamingPullRequest) -> Result<(), Status> {
        let shared = Arc::clone(&self.shared);
        let name = self.open.subscription.clone();
        if request.stream_ack_deadline_seconds != 0 {
            let deadline = checks::ack_deadline("stream_ack_deadline_seconds", request.stream_ack_deadline_seconds)?;
            shared.with(|broker, now| {
                broker.subscription(&name, now).map(|it| it.set_ack_deadline(self.open.id, deadline))
            })?;
        }
        if !request.ack_ids.is_empty() {
            let order = shared.faults.order(Method::Acknowledge)?;
            let results = answers::acknowledge(&shared, &name, request.ack_ids, order)?;
            if results.exactly_once {
                let confirmation = self.pending.acknowledge_confirmation.get_or_insert_default();
                add(results, confirmation);
            }
        }
        if request.modify_deadline_ack_ids.len() != request.modify_deadline_seconds.len() {
            return Err(invalid("modify_deadline_seconds", "must have one entry for each of modify_deadline_ack_ids"));
        }
        for (id, seconds) in request.modify_deadline_ack_ids.into_iter().zip(request.modify_deadline_seconds) {
            let extension = checks::extension("modify_deadline_seconds", seconds)?;
            let order = shared.faults.order(Method::ModifyAckDeadline)?;
            let modack = ModAck { subscription: name.clone(), ack_ids: vec![id], seconds };
            let results = answers::modify(&shared, modack, extension, order)?;
            if results.exactly_once {
                let confirmation = self.pending.modify_ack_deadline_confirmation.get_or_insert_default();
                confirm(results, confirmation);
            }
        }
        Ok(())
    }

    /// The next response, if there is something to say.
    fn response(&mut self) -> Option<StreamingPullResponse> {
        let batch = self.shared.with(|broker, now| {
            broker.subscription(&self.open.subscription, now).map(|it| it.take(self.open.id, now.instant))
        });
        let pending = std::mem::take(&mut self.pending);
        let batch = batch.unwrap_or_default();
        if batch.is_empty() && pending == StreamingPullResponse::default() {
            return None;
        }
        Some(StreamingPullResponse {
            received_messages: batch.into_iter().map(received).collect(),
            subscription_properties: self.empty().subscription_properties,
            ..pending
        })
    }

    fn empty(&self) -> StreamingPullResponse {
        let properties = self.shared.with(|broker, now| {
            broker.subscription(&self.open.subscription, now).map(|it| SubscriptionProperties {
                exactly_once_delivery_enabled: it.settings().exactly_once,
                message_ordering_enabled: it.settings().ordered,
            })
        });
        StreamingPullResponse { subscription_properties: properties.ok(), ..StreamingPullResponse::default() }
    }
}

fn add(results: answers::Results, confirmation: &mut AcknowledgeConfirmation) {
    confirmation.ack_ids.extend(results.done);
    for (id, reason) in results.failed {
        let ids = if reason == answers::INVALID_ACK_ID {
            &mut confirmation.invalid_ack_ids
        } else {
            &mut confirmation.temporary_failed_ack_ids
        };
        ids.push(id);
    }
}

fn confirm(results: answers::Results, confirmation: &mut ModifyAckDeadlineConfirmation) {
    confirmation.ack_ids.extend(results.done);
    confirmation.invalid_ack_ids.extend(results.failed.into_iter().map(|(id, _)| id));
}

/// A client that cancels resets its stream; anything else is the connection.
fn ended(status: &Status) -> End {
    if status.code() == Code::Cancelled { End::Client } else { End::Lost }
}

/// Zero and below mean no limit.
fn limit(wire: i64) -> Option<usize> {
    usize::try_from(wire).ok().filter(|limit| *limit > 0)
}
