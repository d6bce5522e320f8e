//! Generates the server side of Google Pub/Sub for the embedded server.
//!
//! The message types come from a crate that has clients only, so the services are described here by hand; no protoc.

use tonic_build::manual::{Builder, Method, Service};

/// Where the generated code finds the message types.
const TYPES: &str = "crate::pubsub_server::proto";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let publisher = [
        ("CreateTopic", "Topic", "Topic"),
        ("UpdateTopic", "UpdateTopicRequest", "Topic"),
        ("Publish", "PublishRequest", "PublishResponse"),
        ("GetTopic", "GetTopicRequest", "Topic"),
        ("ListTopics", "ListTopicsRequest", "ListTopicsResponse"),
        ("ListTopicSubscriptions", "ListTopicSubscriptionsRequest", "ListTopicSubscriptionsResponse"),
        ("DeleteTopic", "DeleteTopicRequest", "Empty"),
    ];
    let subscriber = [
        ("CreateSubscription", "Subscription", "Subscription"),
        ("GetSubscription", "GetSubscriptionRequest", "Subscription"),
        ("UpdateSubscription", "UpdateSubscriptionRequest", "Subscription"),
        ("ListSubscriptions", "ListSubscriptionsRequest", "ListSubscriptionsResponse"),
        ("DeleteSubscription", "DeleteSubscriptionRequest", "Empty"),
        ("ModifyAckDeadline", "ModifyAckDeadlineRequest", "Empty"),
        ("Acknowledge", "AcknowledgeRequest", "Empty"),
        ("Pull", "PullRequest", "PullResponse"),
        ("StreamingPull", "StreamingPullRequest", "StreamingPullResponse"),
        ("Seek", "SeekRequest", "SeekResponse"),
    ];
    Builder::new()
        .build_client(false)
        .build_transport(false)
        .compile(&[service("Publisher", &publisher), service("Subscriber", &subscriber)]);
}

fn service(name: &str, methods: &[(&str, &str, &str)]) -> Service {
    methods
        .iter()
        .fold(Service::builder().package("google.pubsub.v1").name(name), |service, (route, input, output)| {
            service.method(method(route, input, output))
        })
        .build()
}

fn method(route: &str, input: &str, output: &str) -> Method {
    let method = Method::builder()
        .name(snake_case(route))
        .route_name(route)
        .input_type(format!("{TYPES}::{input}"))
        .output_type(format!("{TYPES}::{output}"))
        .codec_path("tonic_prost::ProstCodec");
    if route == "StreamingPull" { method.client_streaming().server_streaming().build() } else { method.build() }
}

fn snake_case(name: &str) -> String {
    name.char_indices().fold(String::new(), |mut snake, (at, letter)| {
        if at > 0 && letter.is_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}
