//! The Subscriber service, thinly over the broker.

use std::{sync::Arc, time::Duration};

use tokio::time::{self, Instant};
use tonic::{Request, Response, Status, Streaming};

use super::{
    answers, checks,
    faults::{Method, ModAck},
    names::{self, invalid},
    page,
    proto::{
        self, AcknowledgeRequest, DeleteSubscriptionRequest, GetSubscriptionRequest, ListSubscriptionsRequest,
        ListSubscriptionsResponse, ModifyAckDeadlineRequest, PullRequest, PullResponse, SeekRequest, SeekResponse,
        StreamingPullRequest, Subscription, UpdateSubscriptionRequest, seek_request,
    },
    shared::Shared,
    streaming::{self, ResponseStream, received},
    subscription::{Window, moment},
};

/// How long a Pull waits for a first message.
const PULL_WAIT: Duration = Duration::from_secs(20);

/// See the module's words.
#[derive(Debug, Clone)]
pub(super) struct SubscriberApi(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl proto::Subscriber for SubscriberApi {
    async fn create_subscription(&self, request: Request<Subscription>) -> Result<Response<Subscription>, Status> {
        self.0.with(|broker, _| broker.create_subscription(request.into_inner())).map(Response::new)
    }

    async fn get_subscription(
        &self,
        request: Request<GetSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        self.0.faults.order(Method::GetSubscription)?;
        self.0.with(|broker, _| broker.get_subscription(&request.into_inner().subscription)).map(Response::new)
    }

    async fn update_subscription(
        &self,
        request: Request<UpdateSubscriptionRequest>,
    ) -> Result<Response<Subscription>, Status> {
        let request = request.into_inner();
        let subscription = request.subscription.ok_or_else(|| invalid("subscription", "is missing"))?;
        let mask = request.update_mask.unwrap_or_default().paths;
        self.0.with(|broker, _| broker.update_subscription(subscription, &mask)).map(Response::new)
    }

    async fn list_subscriptions(
        &self,
        request: Request<ListSubscriptionsRequest>,
    ) -> Result<Response<ListSubscriptionsResponse>, Status> {
        let request = request.into_inner();
        names::project("project", &request.project)?;
        let (subscriptions, next_page_token) = self.0.with(|broker, _| {
            let subscriptions = broker.subscriptions(&request.project, &request.page_token).cloned();
            page(subscriptions, request.page_size, |subscription| subscription.name.clone())
        })?;
        Ok(Response::new(ListSubscriptionsResponse { subscriptions, next_page_token }))
    }

    async fn delete_subscription(&self, request: Request<DeleteSubscriptionRequest>) -> Result<Response<()>, Status> {
        self.0.with(|broker, _| broker.delete_subscription(&request.into_inner().subscription)).map(Response::new)
    }

    async fn modify_ack_deadline(&self, request: Request<ModifyAckDeadlineRequest>) -> Result<Response<()>, Status> {
        let order = self.0.faults.order(Method::ModifyAckDeadline)?;
        let ModifyAckDeadlineRequest { subscription, ack_ids, ack_deadline_seconds: seconds } = request.into_inner();
        names::subscription("subscription", &subscription)?;
        some("ack_ids", &ack_ids)?;
        let extension = checks::extension("ack_deadline_seconds", seconds)?;
        let modack = ModAck { subscription, ack_ids, seconds };
        answers::modify(&self.0, modack, extension, order)?.into_status().map(Response::new)
    }

    async fn acknowledge(&self, request: Request<AcknowledgeRequest>) -> Result<Response<()>, Status> {
        let order = self.0.faults.order(Method::Acknowledge)?;
        let AcknowledgeRequest { subscription, ack_ids } = request.into_inner();
        names::subscription("subscription", &subscription)?;
        some("ack_ids", &ack_ids)?;
        answers::acknowledge(&self.0, &subscription, ack_ids, order)?.into_status().map(Response::new)
    }

    async fn pull(&self, request: Request<PullRequest>) -> Result<Response<PullResponse>, Status> {
        self.0.faults.order(Method::Pull)?;
        let request = request.into_inner();
        names::subscription("subscription", &request.subscription)?;
        let max_messages = usize::try_from(request.max_messages).unwrap_or_default().min(1_000);
        if max_messages == 0 {
            return Err(invalid("max_messages", "must be at least 1"));
        }
        #[expect(deprecated, reason = "clients still send it")]
        let wait = if request.return_immediately { Duration::ZERO } else { PULL_WAIT };
        self.pull_some(&request.subscription, max_messages, wait).await.map(Response::new)
    }

    type StreamingPullStream = ResponseStream;

    async fn streaming_pull(
        &self,
        request: Request<Streaming<StreamingPullRequest>>,
    ) -> Result<Response<ResponseStream>, Status> {
        self.0.faults.order(Method::StreamingPull)?;
        streaming::open(&self.0, request.into_inner()).await.map(Response::new)
    }

    async fn seek(&self, request: Request<SeekRequest>) -> Result<Response<SeekResponse>, Status> {
        let SeekRequest { subscription, target } = request.into_inner();
        names::subscription("subscription", &subscription)?;
        let time = match target {
            Some(seek_request::Target::Time(time)) => moment(&time),
            Some(seek_request::Target::Snapshot(_)) => return Err(invalid("snapshot", "this server has no snapshots")),
            None => return Err(invalid("time", "is missing")),
        };
        if self.0.with(|broker, now| broker.subscription(&subscription, now).map(|it| it.seek(time)))? {
            Ok(Response::new(SeekResponse {}))
        } else {
            Err(Status::failed_precondition(
                "time: messages published after it were acknowledged, and this server does not keep those",
            ))
        }
    }
}

impl SubscriberApi {
    /// A Pull is a stream that ends with its first response.
    async fn pull_some(&self, name: &str, max_messages: usize, wait: Duration) -> Result<PullResponse, Status> {
        let ack_deadline =
            self.0.with(|broker, now| broker.subscription(name, now).map(|it| it.settings().ack_deadline))?;
        let window = Window { ack_deadline, max_messages: Some(max_messages), max_bytes: None };
        let stream = self.0.open(name, window)?;
        let until = Instant::now() + wait;
        loop {
            let batch =
                self.0.with(|broker, now| broker.subscription(name, now).map(|it| it.take(stream.id, now.instant)))?;
            if !batch.is_empty() {
                return Ok(PullResponse { received_messages: batch.into_iter().map(received).collect() });
            }
            tokio::select! {
                biased;
                () = self.0.stop.cancelled() => return Err(Status::unavailable("the server is stopping")),
                () = stream.bell.rung.notified() => {
                    if let Some(end) = stream.bell.end.get() {
                        return Err(end.clone());
                    }
                }
                () = time::sleep_until(until) => return Ok(PullResponse::default()),
            }
        }
    }
}

fn some(field: &str, ids: &[String]) -> Result<(), Status> {
    if ids.is_empty() { Err(invalid(field, "must not be empty")) } else { Ok(()) }
}
