//! What time does: leases end, rests end, messages grow too old; and what failing too often leads to.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use prost_types::Timestamp;
use tokio::time::Instant;

use super::{
    Place, Subscription,
    message::{Message, Seq},
};

impl Subscription {
    /// When [`advance`](Self::advance) has something to do.
    pub(in crate::pubsub_server) fn next_timer(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let oldest = self.entries.first_key_value().map(|(_, entry)| entry.message.published + self.settings.retention);
        timer.into_iter().chain(oldest).min()
    }

    /// Does what has become due.
    pub(in crate::pubsub_server) fn advance(&mut self, now: Instant) {
        while let Some(&(at, seq)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            match self.entries.get(&seq).map(|entry| entry.place) {
                Some(Place::Leased { .. }) => self.fail(seq, now),
                Some(Place::Resting(_)) => self.make_ready(seq),
                Some(Place::Ready | Place::Behind | Place::Dead) | None => {}
            }
        }
        while let Some((&seq, entry)) = self.entries.first_key_value()
            && entry.message.published + self.settings.retention <= now
        {
            self.remove(seq);
        }
    }

    /// A delivery failed: nacked, or its lease ended.
    pub(super) fn fail(&mut self, seq: Seq, now: Instant) {
        let Some(entry) = self.entries.get_mut(&seq) else { return };
        entry.failures = entry.failures.saturating_add(1);
        if let Some(policy) = &self.settings.dead_letter {
            entry.attempts = entry.attempts.saturating_add(1);
            if entry.attempts >= policy.max_attempts {
                self.give_back(seq, None);
                self.lift(seq);
                if let Some(entry) = self.entries.get_mut(&seq) {
                    entry.place = Place::Dead;
                    self.dead.push(seq);
                }
                return;
            }
        }
        let rest = self.settings.retry.map(|backoff| backoff.after(entry.failures)).filter(|rest| !rest.is_zero());
        self.give_back(seq, rest.map(|rest| now + rest));
    }

    /// The messages that failed too often since the last call, each with its attempts. The broker must answer each with
    /// [`bury`](Self::bury) or [`revive`](Self::revive).
    pub(in crate::pubsub_server) fn dead(&mut self) -> Vec<(Arc<Message>, u32)> {
        let dead = std::mem::take(&mut self.dead);
        let entries = dead.iter().filter_map(|seq| self.entries.get(seq)).filter(|entry| entry.place == Place::Dead);
        entries.map(|entry| (Arc::clone(&entry.message), entry.attempts)).collect()
    }

    /// The dead letter is on its way: forget it here.
    pub(in crate::pubsub_server) fn bury(&mut self, seq: Seq) {
        self.remove(seq);
    }

    /// The dead letter has nowhere to go: it is delivered again.
    pub(in crate::pubsub_server) fn revive(&mut self, seq: Seq) {
        self.give_back(seq, None);
    }

    /// Forgets what was published before `time`. False, and nothing done, when something published later is gone
    /// already: it can not come back.
    pub(in crate::pubsub_server) fn seek(&mut self, time: DateTime<Utc>) -> bool {
        if self.acked_until.is_some_and(|acked| acked >= time) {
            return false;
        }
        let old = self.entries.iter().filter(|(_, entry)| published(&entry.message) < time);
        for seq in old.map(|(seq, _)| *seq).collect::<Vec<Seq>>() {
            self.remove(seq);
        }
        true
    }

    /// Delivers a message that is out once more, beside its running delivery. False when it is not out.
    pub(in crate::pubsub_server) fn deliver_again(&mut self, message_id: &str) -> bool {
        let out = |entry: &super::Entry| {
            entry.message.wire.message_id == message_id && matches!(entry.place, Place::Leased { .. })
        };
        let Some(seq) = self.entries.iter().find(|(_, entry)| out(entry)).map(|(seq, _)| *seq) else { return false };
        self.give_back(seq, None);
        true
    }
}

/// When a message was published.
pub(super) fn published(message: &Message) -> DateTime<Utc> {
    message.wire.publish_time.as_ref().map_or(DateTime::<Utc>::MAX_UTC, moment)
}

/// A wire timestamp; out of range is the end of time.
pub(in crate::pubsub_server) fn moment(at: &Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp(at.seconds, u32::try_from(at.nanos).unwrap_or_default())
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}
