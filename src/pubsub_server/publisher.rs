//! The Publisher service, thinly over the broker.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::{
    checks,
    faults::Method,
    names::{self, invalid},
    page,
    proto::{
        self, DeleteTopicRequest, GetTopicRequest, ListTopicSubscriptionsRequest, ListTopicSubscriptionsResponse,
        ListTopicsRequest, ListTopicsResponse, PublishRequest, PublishResponse, Topic, UpdateTopicRequest,
    },
    shared::Shared,
};

/// See the module's words.
#[derive(Debug, Clone)]
pub(super) struct PublisherApi(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl proto::Publisher for PublisherApi {
    async fn create_topic(&self, request: Request<Topic>) -> Result<Response<Topic>, Status> {
        self.0.with(|broker, _| broker.create_topic(request.into_inner())).map(Response::new)
    }

    async fn update_topic(&self, request: Request<UpdateTopicRequest>) -> Result<Response<Topic>, Status> {
        let request = request.into_inner();
        let topic = request.topic.ok_or_else(|| invalid("topic", "is missing"))?;
        let mask = request.update_mask.unwrap_or_default().paths;
        self.0.with(|broker, _| broker.update_topic(topic, &mask)).map(Response::new)
    }

    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<PublishResponse>, Status> {
        self.0.faults.order(Method::Publish)?;
        let PublishRequest { topic, messages } = request.into_inner();
        names::topic("topic", &topic)?;
        checks::messages(&messages)?;
        let message_ids = self.0.with(|broker, now| broker.publish(&topic, messages, now))?;
        Ok(Response::new(PublishResponse { message_ids }))
    }

    async fn get_topic(&self, request: Request<GetTopicRequest>) -> Result<Response<Topic>, Status> {
        self.0.with(|broker, _| broker.topic(&request.into_inner().topic)).map(Response::new)
    }

    async fn list_topics(&self, request: Request<ListTopicsRequest>) -> Result<Response<ListTopicsResponse>, Status> {
        let request = request.into_inner();
        names::project("project", &request.project)?;
        let (topics, next_page_token) = self.0.with(|broker, _| {
            let topics = broker.topics(&request.project, &request.page_token).cloned();
            page(topics, request.page_size, |topic| topic.name.clone())
        })?;
        Ok(Response::new(ListTopicsResponse { topics, next_page_token }))
    }

    async fn list_topic_subscriptions(
        &self,
        request: Request<ListTopicSubscriptionsRequest>,
    ) -> Result<Response<ListTopicSubscriptionsResponse>, Status> {
        let request = request.into_inner();
        let (subscriptions, next_page_token) = self.0.with(|broker, _| {
            broker.topic(&request.topic)?;
            let names = broker.topic_subscriptions(&request.topic, &request.page_token);
            page(names.into_iter(), request.page_size, Clone::clone)
        })?;
        Ok(Response::new(ListTopicSubscriptionsResponse { subscriptions, next_page_token }))
    }

    async fn delete_topic(&self, request: Request<DeleteTopicRequest>) -> Result<Response<()>, Status> {
        self.0.with(|broker, _| broker.delete_topic(&request.into_inner().topic)).map(Response::new)
    }
}
