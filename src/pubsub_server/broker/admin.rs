//! Topics and subscriptions are made, changed, listed and deleted.

use std::collections::BTreeSet;

use tonic::Status;

use super::{Broker, MAX_RESOURCES, Subscribed, names, not_found, proto};
use crate::pubsub_server::{
    checks,
    names::invalid,
    subscription::{Counts, Subscription},
};

impl Broker {
    pub(in crate::pubsub_server) fn create_topic(&mut self, topic: proto::Topic) -> Result<proto::Topic, Status> {
        checks::topic(&topic)?;
        if self.topics.contains_key(&topic.name) {
            return Err(exists("topic", &topic.name));
        }
        if self.topics.len() >= MAX_RESOURCES {
            return Err(too_many("topics"));
        }
        self.topics.insert(topic.name.clone(), topic.clone());
        Ok(topic)
    }

    pub(in crate::pubsub_server) fn topic(&self, name: &str) -> Result<proto::Topic, Status> {
        names::topic("topic", name)?;
        self.topics.get(name).cloned().ok_or_else(|| not_found("topic", name))
    }

    pub(in crate::pubsub_server) fn update_topic(
        &mut self,
        wanted: proto::Topic,
        mask: &[String],
    ) -> Result<proto::Topic, Status> {
        checks::topic(&wanted)?;
        let mut topic = self.topic(&wanted.name)?;
        for path in checked(mask)? {
            match path.as_str() {
                "labels" => topic.labels.clone_from(&wanted.labels),
                "message_retention_duration" => topic.message_retention_duration = wanted.message_retention_duration,
                "message_storage_policy" => topic.message_storage_policy.clone_from(&wanted.message_storage_policy),
                other => return Err(unchangeable(other)),
            }
        }
        self.topics.insert(topic.name.clone(), topic.clone());
        Ok(topic)
    }

    /// All topics of `projects/P`, by name, from behind `after`.
    pub(in crate::pubsub_server) fn topics(&self, project: &str, after: &str) -> impl Iterator<Item = &proto::Topic> {
        let prefix = format!("{project}/topics/");
        let after = after.to_owned();
        self.topics.values().filter(move |topic| topic.name.starts_with(&prefix) && topic.name > after)
    }

    /// Its subscriptions stay, without a topic.
    pub(in crate::pubsub_server) fn delete_topic(&mut self, name: &str) -> Result<(), Status> {
        names::topic("topic", name)?;
        self.topics.remove(name).ok_or_else(|| not_found("topic", name))?;
        for subscribed in self.subscriptions.values_mut().filter(|subscribed| subscribed.wire.topic == name) {
            names::DELETED_TOPIC.clone_into(&mut subscribed.wire.topic);
        }
        Ok(())
    }

    pub(in crate::pubsub_server) fn create_subscription(
        &mut self,
        mut wanted: proto::Subscription,
    ) -> Result<proto::Subscription, Status> {
        let settings = checks::subscription(&mut wanted)?;
        if self.subscriptions.contains_key(&wanted.name) {
            return Err(exists("subscription", &wanted.name));
        }
        if !self.topics.contains_key(&wanted.topic) {
            return Err(not_found("topic", &wanted.topic));
        }
        if self.subscriptions.len() >= MAX_RESOURCES {
            return Err(too_many("subscriptions"));
        }
        self.next_subscription += 1;
        let ack_prefix = format!("{}-{}-", self.start, self.next_subscription);
        wanted.state = proto::subscription::State::Active.into();
        let state = Subscription::new(settings, ack_prefix);
        let subscribed = Subscribed { wire: wanted.clone(), state, streams: BTreeSet::new() };
        self.subscriptions.insert(wanted.name.clone(), subscribed);
        Ok(wanted)
    }

    pub(in crate::pubsub_server) fn get_subscription(&self, name: &str) -> Result<proto::Subscription, Status> {
        names::subscription("subscription", name)?;
        let subscribed = self.subscriptions.get(name).ok_or_else(|| not_found("subscription", name))?;
        Ok(subscribed.wire.clone())
    }

    pub(in crate::pubsub_server) fn update_subscription(
        &mut self,
        mut wanted: proto::Subscription,
        mask: &[String],
    ) -> Result<proto::Subscription, Status> {
        let mut changed = self.get_subscription(&wanted.name)?;
        for path in checked(mask)? {
            match path.as_str() {
                "ack_deadline_seconds" => changed.ack_deadline_seconds = wanted.ack_deadline_seconds,
                "message_retention_duration" => changed.message_retention_duration = wanted.message_retention_duration,
                "labels" => changed.labels = std::mem::take(&mut wanted.labels),
                "enable_exactly_once_delivery" => {
                    changed.enable_exactly_once_delivery = wanted.enable_exactly_once_delivery;
                }
                "dead_letter_policy" => changed.dead_letter_policy = wanted.dead_letter_policy.take(),
                "retry_policy" => changed.retry_policy = wanted.retry_policy.take(),
                "expiration_policy" => changed.expiration_policy = wanted.expiration_policy,
                "retain_acked_messages" => changed.retain_acked_messages = wanted.retain_acked_messages,
                "push_config" => changed.push_config = wanted.push_config.take(),
                other => return Err(unchangeable(other)),
            }
        }
        let settings = checks::subscription(&mut changed)?;
        let subscribed = self.subscribed(&changed.name)?;
        subscribed.wire = changed.clone();
        subscribed.state.update(settings);
        Ok(changed)
    }

    /// All subscriptions of `projects/P`, by name, from behind `after`.
    pub(in crate::pubsub_server) fn subscriptions(
        &self,
        project: &str,
        after: &str,
    ) -> impl Iterator<Item = &proto::Subscription> {
        let prefix = format!("{project}/subscriptions/");
        let after = after.to_owned();
        let all = self.subscriptions.values().map(|subscribed| &subscribed.wire);
        all.filter(move |subscription| subscription.name.starts_with(&prefix) && subscription.name > after)
    }

    /// The names of a topic's subscriptions, from behind `after`.
    pub(in crate::pubsub_server) fn topic_subscriptions(&self, topic: &str, after: &str) -> Vec<String> {
        self.subscribed_to(topic).into_iter().filter(|name| name.as_str() > after).collect()
    }

    pub(in crate::pubsub_server) fn delete_subscription(&mut self, name: &str) -> Result<(), Status> {
        names::subscription("subscription", name)?;
        let gone = self.subscriptions.remove(name).ok_or_else(|| not_found("subscription", name))?;
        self.orphans.extend(gone.streams);
        Ok(())
    }

    pub(in crate::pubsub_server) fn deliveries(&self, name: &str) -> Option<u64> {
        self.subscriptions.get(name).map(|subscribed| subscribed.state.deliveries())
    }

    pub(in crate::pubsub_server) fn counts(&self, name: &str) -> Option<Counts> {
        self.subscriptions.get(name).map(|subscribed| subscribed.state.counts())
    }
}

fn checked(mask: &[String]) -> Result<&[String], Status> {
    if mask.is_empty() { Err(invalid("update_mask", "must name at least one field")) } else { Ok(mask) }
}

fn unchangeable(path: &str) -> Status {
    invalid("update_mask", &format!("{path} can not be changed"))
}

fn exists(kind: &str, name: &str) -> Status {
    Status::already_exists(format!("{kind} {name} exists already"))
}

fn too_many(kind: &str) -> Status {
    Status::resource_exhausted(format!("at most {MAX_RESOURCES} {kind} are allowed"))
}
