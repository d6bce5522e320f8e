//! What readers answer: acknowledge, extend, nack; and how late answers are taken.

use std::collections::{HashSet, VecDeque};

use tokio::time::Instant;

use super::{Duration, Place, Subscription, message::Seq};

/// Acks of the past that are still known, so that one sent twice is confirmed twice.
const REMEMBERED: usize = 10_000;

/// What came of one ack id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pubsub_server) enum Verdict {
    Done,
    /// Not an id of a lease that runs. Without exactly-once the caller keeps quiet about it.
    Invalid,
}

/// The ack ids acknowledged last.
#[derive(Debug, Default)]
pub(super) struct Answered {
    order: VecDeque<u64>,
    known: HashSet<u64>,
}

impl Answered {
    fn note(&mut self, ack: u64) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(ack);
        self.known.insert(ack);
    }
}

impl Subscription {
    /// Acknowledges one delivery. A late ack counts while nobody got the message again, but not under exactly-once.
    pub(in crate::pubsub_server) fn acknowledge(&mut self, ack_id: &str) -> Verdict {
        let Some(ack) = self.parse(ack_id) else { return Verdict::Invalid };
        if self.answered.known.contains(&ack) {
            return Verdict::Done;
        }
        let Some(seq) = self.acks.get(&ack).copied() else { return Verdict::Invalid };
        if self.settings.exactly_once && self.leased_until(seq).is_none() {
            return Verdict::Invalid;
        }
        self.remove(seq);
        self.answered.note(ack);
        Verdict::Done
    }

    /// Sets the lease of one delivery to end `extension` from now; zero hands it back.
    pub(in crate::pubsub_server) fn modify(&mut self, ack_id: &str, extension: Duration, now: Instant) -> Verdict {
        let leased = self.parse(ack_id).and_then(|ack| self.acks.get(&ack).copied());
        let Some((seq, before)) = leased.and_then(|seq| Some((seq, self.leased_until(seq)?))) else {
            return Verdict::Invalid;
        };
        if extension.is_zero() {
            self.fail(seq, now);
        } else if let Some(entry) = self.entries.get_mut(&seq)
            && let Place::Leased { until, .. } = &mut entry.place
        {
            *until = now + extension;
            self.timers.remove(&(before, seq));
            self.timers.insert((*until, seq));
        }
        Verdict::Done
    }

    fn leased_until(&self, seq: Seq) -> Option<Instant> {
        match self.entries.get(&seq)?.place {
            Place::Leased { until, .. } => Some(until),
            Place::Ready | Place::Behind | Place::Resting(_) | Place::Dead => None,
        }
    }

    fn parse(&self, ack_id: &str) -> Option<u64> {
        ack_id.strip_prefix(&self.ack_prefix)?.parse().ok()
    }
}
