//! The same API as JSON over HTTP/1.1: what the administration clients of Google's Rust library speak, and curl.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::any,
};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tonic::{Code, Request, Status};

use self::json::{
    AckIds, Deadline, ListJson, MessagesJson, PullJson, ReceivedJson, SeekJson, SubscriptionJson, TopicJson, Update,
};
use super::{
    MAX_WIRE_BYTES,
    proto::{
        AcknowledgeRequest, DeleteSubscriptionRequest, DeleteTopicRequest, GetSubscriptionRequest, GetTopicRequest,
        ListSubscriptionsRequest, ListTopicSubscriptionsRequest, ListTopicsRequest, ModifyAckDeadlineRequest,
        PublishRequest, Publisher, PullRequest, SeekRequest, Subscriber, UpdateSubscriptionRequest, UpdateTopicRequest,
        seek_request,
    },
    publisher::PublisherApi,
    shared::Shared,
    subscriber::SubscriberApi,
};

mod json;

/// One call, taken apart.
struct Call {
    method: Method,
    /// `projects/P/topics/T`, without the verb.
    name: String,
    /// What stands behind a colon.
    verb: String,
    page_size: i32,
    page_token: String,
    body: Bytes,
}

/// The routes, to stand beside gRPC on the same port.
pub(super) fn routes(router: Router, shared: &Arc<Shared>) -> Router {
    let shared = Arc::clone(shared);
    let serve = move |method: Method, uri: Uri, body: Bytes| {
        let shared = Arc::clone(&shared);
        async move {
            match Call::new(method, &uri, body) {
                Ok(call) => answer(serve(shared, call).await),
                Err(status) => answer(Err(status)),
            }
        }
    };
    // JSON carries data in base64.
    router.route("/v1/{*path}", any(serve).layer(DefaultBodyLimit::max(2 * MAX_WIRE_BYTES)))
}

async fn serve(shared: Arc<Shared>, call: Call) -> Result<Value, Status> {
    let parts: Vec<&str> = call.name.split('/').collect();
    match parts[..] {
        ["projects", _, "topics"] | ["projects", _, "topics", _] | ["projects", _, "topics", _, "subscriptions"] => {
            topics(PublisherApi(shared), &call, parts.len()).await
        }
        ["projects", _, "subscriptions"] | ["projects", _, "subscriptions", _] => {
            subscriptions(SubscriberApi(shared), &call, parts.len()).await
        }
        _ => Err(unknown(&call)),
    }
}

async fn topics(api: PublisherApi, call: &Call, depth: usize) -> Result<Value, Status> {
    let topic = call.name.clone();
    match (call.method.as_str(), depth, call.verb.as_str()) {
        ("GET", 3, "") => {
            let project = call.name.trim_end_matches("/topics").to_owned();
            let request = ListTopicsRequest { project, page_size: call.page_size, page_token: call.page_token.clone() };
            let page = api.list_topics(Request::new(request)).await?.into_inner();
            let topics = page.topics.into_iter().map(TopicJson::from).collect();
            written(ListJson { topics, next_page_token: page.next_page_token, ..ListJson::default() })
        }
        ("GET", 5, "") => {
            let topic = call.name.trim_end_matches("/subscriptions").to_owned();
            let request =
                ListTopicSubscriptionsRequest { topic, page_size: call.page_size, page_token: call.page_token.clone() };
            let page = api.list_topic_subscriptions(Request::new(request)).await?.into_inner();
            Ok(json!({ "subscriptions": page.subscriptions, "nextPageToken": page.next_page_token }))
        }
        ("GET", 4, "") => {
            written(TopicJson::from(api.get_topic(Request::new(GetTopicRequest { topic })).await?.into_inner()))
        }
        ("PUT", 4, "") => {
            let wanted = call.read::<TopicJson>()?.into_wire(topic)?;
            written(TopicJson::from(api.create_topic(Request::new(wanted)).await?.into_inner()))
        }
        ("PATCH", 4, "") => {
            let update = call.read::<Update>()?;
            let update_mask = Some(update.mask());
            let wanted = update.topic.unwrap_or_default().into_wire(topic)?;
            let request = UpdateTopicRequest { topic: Some(wanted), update_mask };
            written(TopicJson::from(api.update_topic(Request::new(request)).await?.into_inner()))
        }
        ("DELETE", 4, "") => {
            api.delete_topic(Request::new(DeleteTopicRequest { topic })).await?;
            Ok(json!({}))
        }
        ("POST", 4, "publish") => {
            let messages = call.read::<MessagesJson>()?.into_wire()?;
            let published = api.publish(Request::new(PublishRequest { topic, messages })).await?.into_inner();
            Ok(json!({ "messageIds": published.message_ids }))
        }
        _ => Err(unknown(call)),
    }
}

async fn subscriptions(api: SubscriberApi, call: &Call, depth: usize) -> Result<Value, Status> {
    let subscription = call.name.clone();
    match (call.method.as_str(), depth, call.verb.as_str()) {
        ("GET", 3, "") => {
            let project = call.name.trim_end_matches("/subscriptions").to_owned();
            let request =
                ListSubscriptionsRequest { project, page_size: call.page_size, page_token: call.page_token.clone() };
            let page = api.list_subscriptions(Request::new(request)).await?.into_inner();
            let subscriptions = page.subscriptions.into_iter().map(SubscriptionJson::from).collect();
            written(ListJson { subscriptions, next_page_token: page.next_page_token, ..ListJson::default() })
        }
        ("GET", 4, "") => {
            let request = Request::new(GetSubscriptionRequest { subscription });
            written(SubscriptionJson::from(api.get_subscription(request).await?.into_inner()))
        }
        ("PUT", 4, "") => {
            let wanted = call.read::<SubscriptionJson>()?.into_wire(subscription)?;
            written(SubscriptionJson::from(api.create_subscription(Request::new(wanted)).await?.into_inner()))
        }
        ("PATCH", 4, "") => {
            let update = call.read::<Update>()?;
            let update_mask = Some(update.mask());
            let wanted = update.subscription.unwrap_or_default().into_wire(subscription)?;
            let request = UpdateSubscriptionRequest { subscription: Some(wanted), update_mask };
            written(SubscriptionJson::from(api.update_subscription(Request::new(request)).await?.into_inner()))
        }
        ("DELETE", 4, "") => {
            api.delete_subscription(Request::new(DeleteSubscriptionRequest { subscription })).await?;
            Ok(json!({}))
        }
        ("POST", 4, "acknowledge") => {
            let AckIds { ack_ids } = call.read()?;
            api.acknowledge(Request::new(AcknowledgeRequest { subscription, ack_ids })).await?;
            Ok(json!({}))
        }
        ("POST", 4, "modifyAckDeadline") => {
            let Deadline { ack_ids, ack_deadline_seconds } = call.read()?;
            let request = ModifyAckDeadlineRequest { subscription, ack_ids, ack_deadline_seconds };
            api.modify_ack_deadline(Request::new(request)).await?;
            Ok(json!({}))
        }
        ("POST", 4, "pull") => {
            let PullJson { max_messages, return_immediately } = call.read()?;
            #[expect(deprecated, reason = "clients still send it")]
            let request = PullRequest { subscription, max_messages, return_immediately };
            let pulled = api.pull(Request::new(request)).await?.into_inner().received_messages;
            Ok(json!({ "receivedMessages": pulled.into_iter().map(ReceivedJson::from).collect::<Vec<_>>() }))
        }
        ("POST", 4, "seek") => {
            let time = call.read::<SeekJson>()?.time.map(json::timestamp).map(seek_request::Target::Time);
            api.seek(Request::new(SeekRequest { subscription, target: time })).await?;
            Ok(json!({}))
        }
        _ => Err(unknown(call)),
    }
}

impl Call {
    fn new(method: Method, uri: &Uri, body: Bytes) -> Result<Self, Status> {
        let path = percent_decode_str(uri.path().trim_start_matches("/v1/"));
        let path = path.decode_utf8().map_err(|_| Status::invalid_argument("the path is not UTF-8"))?;
        // A project may have a colon in it, the last part has one only before a verb.
        let (name, verb) = match path.rsplit_once(':') {
            Some((name, verb)) if !verb.contains('/') => (name.to_owned(), verb.to_owned()),
            _ => (path.into_owned(), String::new()),
        };
        let parameter = |wanted: &str| {
            let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.into_iter().find(|(key, _)| *key == wanted).map(|(_, value)| value).unwrap_or_default();
            percent_decode_str(value).decode_utf8_lossy().into_owned()
        };
        let page_size = match parameter("pageSize").as_str() {
            "" => 0,
            size => size.parse().map_err(|_| Status::invalid_argument("pageSize: not a number"))?,
        };
        let page_token = parameter("pageToken");
        Ok(Self { method, name, verb, page_size, page_token, body })
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, Status> {
        let body = if self.body.is_empty() { b"{}" } else { &self.body[..] };
        serde_json::from_slice(body).map_err(|error| Status::invalid_argument(format!("the body: {error}")))
    }
}

fn unknown(call: &Call) -> Status {
    Status::unimplemented(format!("{} on {} is not in this server", call.method, call.name))
}

fn written(answer: impl serde::Serialize) -> Result<Value, Status> {
    serde_json::to_value(answer).map_err(|error| Status::internal(error.to_string()))
}

fn answer(result: Result<Value, Status>) -> Response {
    let status = match result {
        Ok(value) => return Json(value).into_response(),
        Err(status) => status,
    };
    let (http, name) = match status.code() {
        Code::InvalidArgument => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
        Code::FailedPrecondition => (StatusCode::BAD_REQUEST, "FAILED_PRECONDITION"),
        Code::Unauthenticated => (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED"),
        Code::PermissionDenied => (StatusCode::FORBIDDEN, "PERMISSION_DENIED"),
        Code::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        Code::AlreadyExists => (StatusCode::CONFLICT, "ALREADY_EXISTS"),
        Code::Aborted => (StatusCode::CONFLICT, "ABORTED"),
        Code::ResourceExhausted => (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED"),
        Code::Cancelled => (StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST), "CANCELLED"),
        Code::Unimplemented => (StatusCode::NOT_IMPLEMENTED, "UNIMPLEMENTED"),
        Code::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        Code::DeadlineExceeded => (StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED"),
        Code::OutOfRange => (StatusCode::BAD_REQUEST, "OUT_OF_RANGE"),
        Code::DataLoss => (StatusCode::INTERNAL_SERVER_ERROR, "DATA_LOSS"),
        Code::Unknown => (StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN"),
        Code::Internal | Code::Ok => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    };
    let error = json!({ "error": { "code": http.as_u16(), "message": status.message(), "status": name } });
    (http, Json(error)).into_response()
}
