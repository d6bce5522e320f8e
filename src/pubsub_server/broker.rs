//! Topics, their subscriptions, and what passes between them. Pure, like the subscription: time is an argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tonic::Status;

use super::{
    message::{self, Message, Seq},
    names,
    proto::{self, PubsubMessage},
    subscription::{StreamId, Subscription, Window},
};

mod admin;

/// As many topics, and as many subscriptions, as Google allows in a project.
const MAX_RESOURCES: usize = 10_000;

/// The two clocks, read once per call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) instant: Instant,
    pub(super) wall: DateTime<Utc>,
}

/// See the module's words.
#[derive(Debug)]
pub(super) struct Broker {
    max_bytes: usize,
    /// In front of message ids and ack ids: the time of the start, so that no two runs of a server share one.
    start: String,
    next_seq: Seq,
    next_stream: StreamId,
    next_subscription: u64,
    topics: BTreeMap<String, proto::Topic>,
    subscriptions: BTreeMap<String, Subscribed>,
    /// Subscriptions to look at before the call ends.
    touched: BTreeSet<String>,
    /// Streams that ended with their subscription.
    orphans: Vec<StreamId>,
}

/// A subscription as clients see it, and its state.
#[derive(Debug)]
struct Subscribed {
    wire: proto::Subscription,
    state: Subscription,
    streams: BTreeSet<StreamId>,
}

/// What the caller must do after a call.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Streams that have something to send.
    pub(super) woken: BTreeSet<StreamId>,
    /// Streams whose subscription is gone.
    pub(super) orphans: Vec<StreamId>,
    /// When a subscription that changed needs [`Broker::advance`].
    pub(super) timer: Option<Instant>,
}

impl Broker {
    pub(super) fn new(max_bytes: usize, started: DateTime<Utc>) -> Self {
        Self {
            max_bytes,
            start: started.timestamp_micros().to_string(),
            next_seq: 0,
            next_stream: 0,
            next_subscription: 0,
            topics: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            touched: BTreeSet::new(),
            orphans: Vec::new(),
        }
    }

    /// Publishes all or nothing; answers the ids.
    pub(super) fn publish(
        &mut self,
        topic: &str,
        messages: Vec<PubsubMessage>,
        now: Now,
    ) -> Result<Vec<String>, Status> {
        if !self.topics.contains_key(topic) {
            return Err(not_found("topic", topic));
        }
        let subscribed = self.subscribed_to(topic);
        let wanted = messages.iter().map(message::footprint).sum::<usize>().saturating_mul(subscribed.len());
        if self.bytes().saturating_add(wanted) > self.max_bytes {
            return Err(Status::resource_exhausted(format!(
                "the server holds {} bytes of unacknowledged messages; its limit is {}",
                self.bytes(),
                self.max_bytes
            )));
        }
        Ok(messages.into_iter().map(|message| self.deliver(message, &subscribed, now)).collect())
    }

    /// Opens a stream on a subscription.
    pub(super) fn open(&mut self, name: &str, window: Window) -> Result<StreamId, Status> {
        self.next_stream += 1;
        let id = self.next_stream;
        let subscribed = self.subscribed(name)?;
        subscribed.streams.insert(id);
        subscribed.state.open(id, window);
        Ok(id)
    }

    /// Ends a stream; see [`Subscription::close`]. Nothing happens when its subscription is gone.
    pub(super) fn close(&mut self, name: &str, id: StreamId, lost: bool) {
        if let Ok(subscribed) = self.subscribed(name)
            && subscribed.streams.remove(&id)
        {
            subscribed.state.close(id, lost);
        }
    }

    /// The state of a subscription, brought up to `now`, to be changed.
    pub(super) fn subscription(&mut self, name: &str, now: Now) -> Result<&mut Subscription, Status> {
        let subscribed = self.subscribed(name)?;
        subscribed.state.advance(now.instant);
        Ok(&mut subscribed.state)
    }

    /// The open streams of a subscription.
    pub(super) fn streams(&self, name: &str) -> Vec<StreamId> {
        self.subscriptions.get(name).map(|subscribed| subscribed.streams.iter().copied().collect()).unwrap_or_default()
    }

    /// Does what has become due; answers when it must be called again.
    pub(super) fn advance(&mut self, now: Now) -> Option<Instant> {
        let due = |subscribed: &Subscribed| subscribed.state.next_timer().is_some_and(|at| at <= now.instant);
        let due: Vec<String> =
            self.subscriptions.iter().filter(|(_, it)| due(it)).map(|(name, _)| name.clone()).collect();
        for name in &due {
            if let Ok(subscribed) = self.subscribed(name) {
                subscribed.state.advance(now.instant);
            }
        }
        self.subscriptions.values().filter_map(|subscribed| subscribed.state.next_timer()).min()
    }

    /// To be called at the end of every call: moves dead letters on and hands out what is ready.
    pub(super) fn finish(&mut self, now: Now) -> Effects {
        let mut effects = Effects { orphans: std::mem::take(&mut self.orphans), ..Effects::default() };
        while let Some(name) = self.touched.pop_first() {
            self.move_dead_letters(&name, now);
            let Some(subscribed) = self.subscriptions.get_mut(&name) else { continue };
            effects.woken.extend(subscribed.state.dispatch(now.instant));
            effects.timer = effects.timer.into_iter().chain(subscribed.state.next_timer()).min();
        }
        effects
    }

    /// Memory held by messages, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.subscriptions.values().map(|subscribed| subscribed.state.bytes()).sum()
    }

    fn subscribed(&mut self, name: &str) -> Result<&mut Subscribed, Status> {
        let subscribed = self.subscriptions.get_mut(name).ok_or_else(|| not_found("subscription", name))?;
        self.touched.insert(name.to_owned());
        Ok(subscribed)
    }

    fn subscribed_to(&self, topic: &str) -> Vec<String> {
        let to = self.subscriptions.iter().filter(|(_, subscribed)| subscribed.wire.topic == topic);
        to.map(|(name, _)| name.clone()).collect()
    }

    fn deliver(&mut self, mut wire: PubsubMessage, subscribed: &[String], now: Now) -> String {
        self.next_seq += 1;
        wire.message_id = format!("{}{:07}", self.start, self.next_seq);
        wire.publish_time = Some(timestamp(now.wall));
        let message = Arc::new(Message::new(self.next_seq, wire, now.instant));
        for name in subscribed {
            if let Ok(subscribed) = self.subscribed(name) {
                subscribed.state.publish(Arc::clone(&message));
            }
        }
        message.wire.message_id.clone()
    }

    /// Forwards what failed too often. With no topic or no room to go to it is delivered again, as Google does.
    fn move_dead_letters(&mut self, name: &str, now: Now) {
        let Some(subscribed) = self.subscriptions.get_mut(name) else { return };
        for (dead, attempts) in subscribed.state.dead() {
            let Some(subscribed) = self.subscriptions.get(name) else { return };
            let topic = subscribed.state.settings().dead_letter.as_ref().map(|policy| policy.topic.clone());
            let copy = dead_letter(&dead.wire, name, attempts);
            let moved = topic.is_some_and(|topic| self.publish(&topic, vec![copy], now).is_ok());
            let Some(subscribed) = self.subscriptions.get_mut(name) else { return };
            if moved {
                subscribed.state.bury(dead.seq);
            } else {
                subscribed.state.revive(dead.seq);
            }
        }
    }
}

/// The copy that goes to the dead-letter topic: it tells where it came from, and gets a new id.
fn dead_letter(dead: &PubsubMessage, subscription: &str, attempts: u32) -> PubsubMessage {
    let (project, id) = names::split(subscription);
    let mut copy = PubsubMessage { message_id: String::new(), publish_time: None, ..dead.clone() };
    let published = dead.publish_time.as_ref().map(super::subscription::moment).map(|at| at.to_rfc3339());
    copy.attributes.extend(
        [
            ("CloudPubSubDeadLetterSourceDeliveryCount", attempts.to_string()),
            ("CloudPubSubDeadLetterSourceSubscription", id.to_owned()),
            ("CloudPubSubDeadLetterSourceSubscriptionProject", project.to_owned()),
            ("CloudPubSubDeadLetterSourceTopicPublishTime", published.unwrap_or_default()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    copy
}

pub(super) fn timestamp(at: DateTime<Utc>) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.timestamp(),
        nanos: i32::try_from(at.timestamp_subsec_nanos()).unwrap_or_default(),
    }
}

fn not_found(kind: &str, name: &str) -> Status {
    Status::not_found(format!("{kind} {name} does not exist"))
}
