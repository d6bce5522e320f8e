//! One subscription: which messages wait, who holds which and until when.
//!
//! A pure state machine: time comes in as an argument, nothing here waits or talks. The broker calls [`advance`] when
//! [`next_timer`] is due and [`dispatch`] after every change.
//!
//! [`advance`]: Subscription::advance
//! [`next_timer`]: Subscription::next_timer
//! [`dispatch`]: Subscription::dispatch

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::message::{self, Message, Seq};

mod answer;
mod lane;
mod pace;
mod settings;
mod stream;

use self::{
    answer::Answered,
    lane::Lane,
    stream::{BATCH_BYTES, BATCH_MESSAGES, Stream},
};
pub(super) use self::{
    answer::Verdict,
    pace::moment,
    settings::{Backoff, DeadLetter, Settings},
    stream::{StreamId, Window},
};

/// Ordered messages bound to a busy reader that are passed over before dispatch gives up until the next change.
const PASSED_OVER: usize = 1_000;

/// See the module's words.
#[derive(Debug)]
pub(super) struct Subscription {
    settings: Settings,
    /// In front of every ack id: tells this subscription of this server run from all others.
    ack_prefix: String,
    next_ack: u64,
    entries: BTreeMap<Seq, Entry>,
    ready: BTreeSet<Seq>,
    timers: BTreeSet<(Instant, Seq)>,
    /// The latest ack id of each message that was ever delivered.
    acks: HashMap<u64, Seq>,
    answered: Answered,
    lanes: HashMap<String, Lane>,
    streams: BTreeMap<StreamId, Stream>,
    /// Nothing published later was acknowledged.
    acked_until: Option<DateTime<Utc>>,
    /// Who was served last.
    served: StreamId,
    bytes: usize,
    /// Failed too often, not yet told to the broker.
    dead: Vec<Seq>,
    paused: bool,
}

/// A message not yet acknowledged.
#[derive(Debug)]
struct Entry {
    message: Arc<Message>,
    /// Nacks and expired leases, for the backoff.
    failures: u32,
    /// The same, counted only while there is a dead-letter policy.
    attempts: u32,
    place: Place,
    ack: Option<u64>,
}

impl Entry {
    fn is_held_by(&self, id: StreamId) -> bool {
        matches!(self.place, Place::Leased { stream, .. } if stream == id)
    }
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// May be delivered now.
    Ready,
    /// Behind another message of its ordering key.
    Behind,
    /// Waits out a backoff.
    Resting(Instant),
    /// Held by a reader.
    Leased { until: Instant, stream: StreamId },
    /// Failed too often; the broker takes it.
    Dead,
}

/// One message on its way to a reader.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) ack_id: String,
    pub(super) message: Arc<Message>,
    /// From one; zero without a dead-letter policy.
    pub(super) attempt: u32,
}

/// A look at a subscription.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Not acknowledged, wherever they are.
    pub unacked: usize,
    /// Could be delivered now.
    pub ready: usize,
    /// Held by a reader, or on the way to one.
    pub leased: usize,
    /// Wait out a backoff, or wait behind another message of their ordering key.
    pub delayed: usize,
    /// Open streams.
    pub streams: usize,
}

impl Subscription {
    pub(super) fn new(settings: Settings, ack_prefix: String) -> Self {
        Self {
            settings,
            ack_prefix,
            next_ack: 0,
            entries: BTreeMap::new(),
            ready: BTreeSet::new(),
            timers: BTreeSet::new(),
            acks: HashMap::new(),
            answered: Answered::default(),
            lanes: HashMap::new(),
            streams: BTreeMap::new(),
            acked_until: None,
            served: 0,
            bytes: 0,
            dead: Vec::new(),
            paused: false,
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// New settings hold for what happens from now on; leases given stay as they are.
    pub(super) fn update(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// How often a message was assigned to a reader.
    pub(super) fn deliveries(&self) -> u64 {
        self.next_ack
    }

    /// Memory held, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts { unacked: self.entries.len(), streams: self.streams.len(), ..Counts::default() };
        for entry in self.entries.values() {
            match entry.place {
                Place::Ready | Place::Dead => counts.ready += 1,
                Place::Behind | Place::Resting(_) => counts.delayed += 1,
                Place::Leased { .. } => counts.leased += 1,
            }
        }
        counts
    }

    /// Takes in a new message. Sequence numbers only grow.
    pub(super) fn publish(&mut self, message: Arc<Message>) {
        let seq = message.seq;
        self.bytes += message.footprint();
        let key = self.lane_key(&message);
        self.entries.insert(seq, Entry { message, failures: 0, attempts: 0, place: Place::Behind, ack: None });
        if let Some(key) = key {
            self.lanes.entry(key.clone()).or_default().queued.insert(seq);
            self.call_front(&key);
        } else {
            self.make_ready(seq);
        }
    }

    /// Lets a reader in.
    pub(super) fn open(&mut self, id: StreamId, window: Window) {
        self.streams.insert(id, Stream::new(window));
    }

    /// Changes a reader's lease time.
    pub(super) fn set_ack_deadline(&mut self, id: StreamId, ack_deadline: Duration) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.window.ack_deadline = ack_deadline;
        }
    }

    /// Lets a reader go. What it was not handed yet goes back at once; what it was handed stays leased to whoever
    /// answers it, unless `lost`: then that goes back at once too. Neither counts as a failure.
    pub(super) fn close(&mut self, id: StreamId, lost: bool) {
        let Some(stream) = self.streams.remove(&id) else { return };
        let back: Vec<Seq> = if lost {
            self.entries.iter().filter(|(_, entry)| entry.is_held_by(id)).map(|(seq, _)| *seq).collect()
        } else {
            stream.outbox.iter().filter_map(|(ack, _)| self.acks.get(ack).copied()).collect()
        };
        for seq in back {
            // Of an ordering key the first takes the others along.
            if self.entries.get(&seq).is_some_and(|entry| entry.is_held_by(id)) {
                self.give_back(seq, None);
            }
        }
    }

    /// Assigns what is ready to readers with room, in publish order, each reader in turn. Answers who got something.
    pub(super) fn dispatch(&mut self, now: Instant) -> BTreeSet<StreamId> {
        let mut woken = BTreeSet::new();
        let mut from = 0;
        let mut passed_over = 0;
        while !self.paused
            && passed_over < PASSED_OVER
            && let Some(&seq) = self.ready.range(from..).next()
        {
            let Some(bytes) = self.entries.get(&seq).map(|entry| entry.message.bytes) else { break };
            let bound = self.lane_of(seq).and_then(Lane::bound_to);
            let reader = match bound {
                Some(id) => self.streams.get(&id).is_some_and(|stream| stream.has_room(bytes)).then_some(id),
                None => self.next_reader(bytes),
            };
            match (reader, bound) {
                (Some(id), _) => {
                    self.lease(seq, id, now);
                    self.served = id;
                    woken.insert(id);
                }
                (None, Some(_)) => passed_over += 1,
                (None, None) => break,
            }
            from = seq + 1;
        }
        woken
    }

    /// One response for a reader; its leases start now.
    pub(super) fn take(&mut self, id: StreamId, now: Instant) -> Vec<Delivery> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        let Some(stream) = self.streams.get_mut(&id) else { return batch };
        let until = now + stream.window.ack_deadline;
        while batch.len() < BATCH_MESSAGES && bytes < BATCH_BYTES {
            let Some(ack) = stream.next_out() else { break };
            let Some(&seq) = self.acks.get(&ack) else { continue };
            let Some(entry) = self.entries.get_mut(&seq) else { continue };
            let Place::Leased { until: before, .. } = entry.place else { continue };
            entry.place = Place::Leased { until, stream: id };
            self.timers.remove(&(before, seq));
            self.timers.insert((until, seq));
            bytes += entry.message.bytes;
            batch.push(Delivery {
                ack_id: format!("{}{ack}", self.ack_prefix),
                message: Arc::clone(&entry.message),
                attempt: if self.settings.dead_letter.is_some() { entry.attempts + 1 } else { 0 },
            });
        }
        batch
    }

    /// Stops handing out (streams stay open, leases run), or goes on.
    pub(super) fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// The reader after the one served last that has room.
    fn next_reader(&self, bytes: usize) -> Option<StreamId> {
        let after = self.streams.range(self.served + 1..);
        let before = self.streams.range(..=self.served);
        after.chain(before).find(|(_, stream)| stream.has_room(bytes)).map(|(id, _)| *id)
    }

    fn lease(&mut self, seq: Seq, id: StreamId, now: Instant) {
        let Some(entry) = self.entries.get_mut(&seq) else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some(old) = entry.ack.take() {
            self.acks.remove(&old);
        }
        self.next_ack += 1;
        let until = now + stream.window.ack_deadline;
        entry.ack = Some(self.next_ack);
        entry.place = Place::Leased { until, stream: id };
        stream.hold(self.next_ack, entry.message.bytes);
        self.ready.remove(&seq);
        self.timers.insert((until, seq));
        self.acks.insert(self.next_ack, seq);
        let key = entry.message.wire.ordering_key.clone();
        if let Some(lane) = self.lanes.get_mut(&key) {
            lane.sent(seq, id);
            self.call_front(&key);
        }
    }

    fn make_ready(&mut self, seq: Seq) {
        if let Some(entry) = self.entries.get_mut(&seq) {
            entry.place = Place::Ready;
            self.ready.insert(seq);
        }
    }

    /// Makes the first of a key's queue deliverable.
    fn call_front(&mut self, key: &str) {
        let front = self.lanes.get(key).and_then(Lane::front);
        let waits = |seq: &Seq| self.entries.get(seq).is_some_and(|entry| entry.place == Place::Behind);
        if let Some(seq) = front.filter(waits) {
            self.make_ready(seq);
        }
    }

    fn lane_key(&self, message: &Message) -> Option<String> {
        let key = &message.wire.ordering_key;
        (self.settings.ordered && !key.is_empty()).then(|| key.clone())
    }

    fn lane_of(&self, seq: Seq) -> Option<&Lane> {
        if self.lanes.is_empty() {
            return None;
        }
        self.lanes.get(&self.entries.get(&seq)?.message.wire.ordering_key)
    }

    /// Ends a message's stay wherever it is: no timer, no reader, not ready. Its place is then up to the caller.
    fn lift(&mut self, seq: Seq) {
        let Some(entry) = self.entries.get_mut(&seq) else { return };
        match entry.place {
            Place::Ready => {
                self.ready.remove(&seq);
            }
            Place::Resting(until) => {
                self.timers.remove(&(until, seq));
            }
            Place::Leased { until, stream } => {
                self.timers.remove(&(until, seq));
                if let Some(stream) = self.streams.get_mut(&stream) {
                    stream.let_go(entry.message.bytes);
                }
            }
            Place::Behind | Place::Dead => {}
        }
        entry.place = Place::Behind;
    }

    /// Puts a message back: ready at once, or after a rest. Of an ordering key, all behind it come back with it.
    fn give_back(&mut self, seq: Seq, rest_until: Option<Instant>) {
        self.lift(seq);
        let Some(entry) = self.entries.get(&seq) else { return };
        let key = entry.message.wire.ordering_key.clone();
        if let Some(lane) = self.lanes.get_mut(&key) {
            let front = lane.front();
            let behind = lane.come_back(seq);
            for other in front.into_iter().chain(behind).filter(|other| *other != seq) {
                self.lift(other);
            }
        }
        if let Some(until) = rest_until {
            if let Some(entry) = self.entries.get_mut(&seq) {
                entry.place = Place::Resting(until);
                self.timers.insert((until, seq));
            }
        } else {
            self.make_ready(seq);
        }
    }

    /// Forgets a message.
    fn remove(&mut self, seq: Seq) -> Option<Arc<Message>> {
        self.lift(seq);
        let entry = self.entries.remove(&seq)?;
        self.bytes = self.bytes.saturating_sub(entry.message.footprint());
        self.acked_until = self.acked_until.max(Some(pace::published(&entry.message)));
        if let Some(ack) = entry.ack {
            self.acks.remove(&ack);
        }
        let key = &entry.message.wire.ordering_key;
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.remove(seq);
            if lane.is_empty() {
                self.lanes.remove(key);
            } else {
                self.call_front(key);
            }
        }
        Some(entry.message)
    }
}

#[cfg(test)]
mod tests;
