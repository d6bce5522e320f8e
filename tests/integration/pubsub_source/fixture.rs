//! A fresh topic and subscription on the emulator, used past the source under test.

use std::time::Duration;

use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    AcknowledgeRequest, DeleteSubscriptionRequest, PublishRequest, PubsubMessage, PullRequest,
    Subscription as Definition, Topic, publisher_client::PublisherClient, subscriber_client::SubscriberClient,
};
use tokio::time::{self, Instant};
use tonic::transport::Channel;

/// The shortest there is: what is lost comes back after it.
pub(super) const ACK_DEADLINE: Duration = Duration::from_secs(10);

/// `host:port` of the emulator that the test set-up started.
pub(super) fn emulator() -> String {
    std::env::var("BELLHOP_TEST_EMULATOR").expect("BELLHOP_TEST_EMULATOR is host:port of a Pub/Sub emulator")
}

/// Waits until it holds.
pub(super) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(40);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        time::sleep(Duration::from_millis(10)).await;
    }
}

#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) name: String,
    topic: String,
    exactly_once: bool,
    server: String,
}

impl Subscription {
    pub(super) fn not_yet() -> Self {
        Self::not_yet_on(&emulator())
    }

    fn not_yet_on(server: &str) -> Self {
        let id = uuid::Uuid::new_v4().simple().to_string();
        Self {
            name: format!("projects/test/subscriptions/s-{id}"),
            topic: format!("projects/test/topics/t-{id}"),
            exactly_once: false,
            server: server.to_owned(),
        }
    }

    pub(super) async fn new() -> Self {
        let new = Self::not_yet();
        new.create().await;
        new
    }

    /// On that server, `host:port`.
    pub(super) async fn on(server: &str) -> Self {
        let new = Self::not_yet_on(server);
        new.create().await;
        new
    }

    pub(super) async fn exactly_once() -> Self {
        Self::exactly_once_on(&emulator()).await
    }

    pub(super) async fn exactly_once_on(server: &str) -> Self {
        let new = Self { exactly_once: true, ..Self::not_yet_on(server) };
        new.create().await;
        new
    }

    /// The topic too, when it does not exist.
    pub(super) async fn create(&self) {
        let topic = Topic { name: self.topic.clone(), ..Topic::default() };
        let _exists = self.publisher().await.create_topic(topic).await;
        let definition = Definition {
            name: self.name.clone(),
            topic: self.topic.clone(),
            ack_deadline_seconds: i32::try_from(ACK_DEADLINE.as_secs()).unwrap(),
            enable_exactly_once_delivery: self.exactly_once,
            ..Definition::default()
        };
        self.subscriber().await.create_subscription(definition).await.unwrap();
    }

    pub(super) async fn delete(&self) {
        let request = DeleteSubscriptionRequest { subscription: self.name.clone() };
        self.subscriber().await.delete_subscription(request).await.unwrap();
    }

    /// Each with its place in the batch as the attribute `number`.
    pub(super) async fn publish<T: Into<String>>(&self, texts: impl IntoIterator<Item = T>) {
        let message = |(number, text): (usize, T)| PubsubMessage {
            data: text.into().into_bytes(),
            attributes: [("number".to_owned(), number.to_string())].into(),
            ..PubsubMessage::default()
        };
        let messages = texts.into_iter().enumerate().map(message).collect();
        let request = PublishRequest { topic: self.topic.clone(), messages };
        self.publisher().await.publish(request).await.unwrap();
    }

    /// Takes and acks until there were so many, as another process would. The emulator may send what was given back to
    /// the closed stream first: then it takes one deadline.
    pub(super) async fn take(&self, count: usize) -> Vec<String> {
        let mut subscriber = self.subscriber().await;
        let mut texts = Vec::new();
        let end = Instant::now() + ACK_DEADLINE * 3;
        while texts.len() < count {
            assert!(Instant::now() < end, "only {} of {count} came", texts.len());
            texts.extend(self.pull(&mut subscriber).await);
            time::sleep(Duration::from_millis(20)).await;
        }
        texts
    }

    /// All that comes within more than one deadline. Once nobody holds anything, this is all there is.
    pub(super) async fn leftovers(&self) -> Vec<String> {
        let mut subscriber = self.subscriber().await;
        let mut texts = Vec::new();
        let end = Instant::now() + ACK_DEADLINE + Duration::from_secs(2);
        while Instant::now() < end {
            texts.extend(self.pull(&mut subscriber).await);
            time::sleep(Duration::from_millis(100)).await;
        }
        texts
    }

    async fn pull(&self, subscriber: &mut SubscriberClient<Channel>) -> Vec<String> {
        #[expect(deprecated, reason = "the only way to ask without waiting for a message")]
        let request = PullRequest { subscription: self.name.clone(), return_immediately: true, max_messages: 100 };
        let received = subscriber.pull(request).await.unwrap().into_inner().received_messages;
        if !received.is_empty() {
            let ack_ids = received.iter().map(|one| one.ack_id.clone()).collect();
            let request = AcknowledgeRequest { subscription: self.name.clone(), ack_ids };
            subscriber.acknowledge(request).await.unwrap();
        }
        let text = |message: PubsubMessage| String::from_utf8(message.data.to_vec()).unwrap();
        received.into_iter().filter_map(|one| one.message.map(text)).collect()
    }

    async fn publisher(&self) -> PublisherClient<Channel> {
        PublisherClient::new(self.channel().await)
    }

    async fn subscriber(&self) -> SubscriberClient<Channel> {
        SubscriberClient::new(self.channel().await)
    }

    async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.server)).unwrap().connect().await.unwrap()
    }
}
