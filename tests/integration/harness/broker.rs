//! A Pub/Sub server as its users see it: gRPC, whichever server it is.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bellhop::pubsub_server::PubsubServer;
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    AcknowledgeRequest, PublishRequest, PubsubMessage, PullRequest, ReceivedMessage, Subscription as Definition, Topic,
    publisher_client::PublisherClient, subscriber_client::SubscriberClient,
};
use tokio::time::{self, Instant};
use tonic::transport::Channel;

use super::{Emulator, Front, event::Message, unique, wait::eventually};

/// The shortest ack deadline there is: what a dead process held comes back after it.
pub(crate) const ACK_DEADLINE: Duration = Duration::from_secs(10);

/// A running broker, kept alive as long as this lives.
#[derive(Debug)]
pub(crate) struct Broker {
    address: String,
    server: Server,
}

#[derive(Debug)]
enum Server {
    Emulator(Emulator),
    Embedded(#[expect(dead_code, reason = "keeps the server alive")] PubsubServer),
}

impl Broker {
    /// Google's emulator, the shared one.
    pub(crate) fn emulator() -> Self {
        Self::on(Emulator::shared())
    }

    /// That emulator.
    pub(crate) fn on(emulator: Emulator) -> Self {
        Self { address: emulator.address().to_owned(), server: Server::Emulator(emulator) }
    }

    /// The embedded server, one of its own.
    pub(crate) async fn embedded() -> Self {
        let server = PubsubServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.expect("a free port");
        Self { address: server.address().to_string(), server: Server::Embedded(server) }
    }

    /// A door that this broker needs when its clients are killed.
    pub(crate) async fn front(&self) -> Option<Front> {
        match &self.server {
            Server::Emulator(emulator) => Some(Front::of(emulator.address()).await),
            Server::Embedded(_) => None,
        }
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A new topic with one new subscription. It has no retry policy: with one, the emulator searches a list for every
    /// expired message at every pull, and stands still at a few hundred of them.
    pub(crate) async fn subscription(&self) -> Subscription {
        self.subscription_with(|_| {}).await
    }

    /// The same, with what `change` sets.
    pub(crate) async fn subscription_with(&self, change: impl FnOnce(&mut Definition)) -> Subscription {
        let channel = self.channel().await;
        let project = unique("project");
        let topic = format!("projects/{project}/topics/chat-events");
        let name = format!("projects/{project}/subscriptions/chat-events");
        let mut definition = Definition {
            name: name.clone(),
            topic: topic.clone(),
            ack_deadline_seconds: i32::try_from(ACK_DEADLINE.as_secs()).expect("small"),
            ..Definition::default()
        };
        change(&mut definition);
        let mut publisher = PublisherClient::new(channel.clone());
        let mut subscriber = SubscriberClient::new(channel);
        publisher
            .create_topic(Topic { name: topic.clone(), ..Topic::default() })
            .await
            .expect("a topic can be created");
        subscriber.create_subscription(definition).await.expect("a subscription can be created");
        Subscription { project, topic, name, publisher, subscriber }
    }

    async fn channel(&self) -> Channel {
        let endpoint = Channel::from_shared(format!("http://{}", self.address)).expect("an address");
        eventually("the broker to answer", Duration::from_secs(20), async || endpoint.connect().await.ok()).await
    }
}

/// A topic and its subscription.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    /// Project id.
    pub(crate) project: String,
    /// Full topic name.
    pub(crate) topic: String,
    /// Full subscription name.
    pub(crate) name: String,
    publisher: PublisherClient<Channel>,
    subscriber: SubscriberClient<Channel>,
}

impl Subscription {
    /// Publishes; every call makes new transport messages, so the same message again is a publisher's duplicate.
    pub(crate) async fn publish(&self, messages: &[Message]) {
        for batch in messages.chunks(500) {
            let messages = batch
                .iter()
                .map(|message| PubsubMessage {
                    data: message.data.clone(),
                    attributes: message.attributes.clone(),
                    ..PubsubMessage::default()
                })
                .collect();
            let request = PublishRequest { topic: self.topic.clone(), messages };
            self.publisher.clone().publish(request).await.expect("the broker accepts messages");
        }
    }

    /// What can be delivered right now. What it returns is out for one ack deadline.
    pub(crate) async fn pull(&self) -> Vec<ReceivedMessage> {
        #[expect(deprecated, reason = "the only way to ask without waiting for a message")]
        let request = PullRequest { subscription: self.name.clone(), return_immediately: true, max_messages: 1_000 };
        self.subscriber.clone().pull(request).await.expect("the broker answers").into_inner().received_messages
    }

    /// Acknowledges what [`Self::pull`] returned.
    pub(crate) async fn ack(&self, messages: &[ReceivedMessage]) {
        let ack_ids = messages.iter().map(|message| message.ack_id.clone()).collect();
        let request = AcknowledgeRequest { subscription: self.name.clone(), ack_ids };
        self.subscriber.clone().acknowledge(request).await.expect("the broker answers");
    }

    /// All that is still unacknowledged: pulls until nothing came for longer than any lease can last. Takes more than
    /// one ack deadline; call it when no bellhop runs any more.
    pub(crate) async fn leftovers(&self) -> Vec<ReceivedMessage> {
        let mut left = Vec::new();
        let end = Instant::now() + ACK_DEADLINE + Duration::from_secs(3);
        while Instant::now() < end {
            let messages = self.pull().await;
            if messages.is_empty() {
                time::sleep(Duration::from_millis(100)).await;
            } else {
                self.ack(&messages).await;
                left.extend(messages);
            }
        }
        left
    }
}
