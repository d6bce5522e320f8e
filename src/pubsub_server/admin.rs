//! The server from inside the process: no network, no client.

use std::sync::Arc;

use tonic::Status;

use super::{
    checks, names,
    proto::{PubsubMessage, Subscription, Topic},
    shared::Shared,
    subscription::Counts,
};

/// A handle on a running server. Clones share it.
#[derive(Debug, Clone)]
pub struct Admin {
    shared: Arc<Shared>,
}

impl Admin {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Makes a topic, by full name.
    ///
    /// # Errors
    /// As CreateTopic.
    pub fn create_topic(&self, name: &str) -> Result<(), Status> {
        let topic = Topic { name: name.to_owned(), ..Topic::default() };
        self.shared.with(|broker, _| broker.create_topic(topic)).map(drop)
    }

    /// Makes a subscription; what is left out has Google's defaults.
    ///
    /// # Errors
    /// As CreateSubscription.
    pub fn create_subscription(&self, subscription: Subscription) -> Result<Subscription, Status> {
        self.shared.with(|broker, _| broker.create_subscription(subscription))
    }

    /// Deletes a subscription; its streams end with `NOT_FOUND`.
    ///
    /// # Errors
    /// As DeleteSubscription.
    pub fn delete_subscription(&self, name: &str) -> Result<(), Status> {
        self.shared.with(|broker, _| broker.delete_subscription(name))
    }

    /// The full names of the subscriptions of `projects/P`.
    #[must_use]
    pub fn subscriptions(&self, project: &str) -> Vec<String> {
        self.shared.with(|broker, _| broker.subscriptions(project, "").map(|it| it.name.clone()).collect())
    }

    /// Publishes; answers the message ids.
    ///
    /// # Errors
    /// As Publish.
    pub fn publish(&self, topic: &str, messages: Vec<PubsubMessage>) -> Result<Vec<String>, Status> {
        names::topic("topic", topic)?;
        checks::messages(&messages)?;
        self.shared.with(|broker, now| broker.publish(topic, messages, now))
    }

    /// How many messages a subscription has, and where; `None` when there is no such subscription.
    #[must_use]
    pub fn counts(&self, subscription: &str) -> Option<Counts> {
        self.shared.with(|broker, _| broker.counts(subscription))
    }

    /// How often a message of a subscription was assigned to a reader, copies included.
    #[must_use]
    pub fn deliveries(&self, subscription: &str) -> Option<u64> {
        self.shared.with(|broker, _| broker.deliveries(subscription))
    }

    /// Memory held by unacknowledged messages, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shared.with(|broker, _| broker.bytes())
    }

    /// Ends all open streams of a subscription with `status`; answers how many.
    pub fn end_streams(&self, subscription: &str, status: &Status) -> usize {
        self.shared.end_streams(subscription, status)
    }

    /// Delivers a message that is out a second time, now. False when it is not out.
    pub fn deliver_again(&self, subscription: &str, message_id: &str) -> bool {
        self.shared
            .with(|broker, now| broker.subscription(subscription, now).is_ok_and(|it| it.deliver_again(message_id)))
    }

    /// Streams stay open but nothing is handed out, until called with false.
    pub fn pause(&self, subscription: &str, paused: bool) {
        self.shared.with(|broker, now| {
            if let Ok(it) = broker.subscription(subscription, now) {
                it.pause(paused);
            }
        });
    }
}
