//! The messages of one ordering key.
//!
//! What is out is always older than what waits: the front of the queue goes next, and only to the reader that holds the
//! ones before it. When one comes back, all after it come back too.

use std::collections::BTreeSet;

use super::{super::message::Seq, StreamId};

#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Waiting; only the first may be delivered.
    pub(super) queued: BTreeSet<Seq>,
    /// Delivered, unanswered.
    pub(super) out: BTreeSet<Seq>,
    /// Who holds what is out.
    holder: Option<StreamId>,
}

impl Lane {
    /// The only reader that may get the front now; `None` = any.
    pub(super) fn bound_to(&self) -> Option<StreamId> {
        if self.out.is_empty() { None } else { self.holder }
    }

    /// Notes that the front went to `stream`.
    pub(super) fn sent(&mut self, seq: Seq, stream: StreamId) {
        self.queued.remove(&seq);
        self.out.insert(seq);
        self.holder = Some(stream);
    }

    /// Takes `seq` and everything out behind it back into the queue; answers what was behind.
    pub(super) fn come_back(&mut self, seq: Seq) -> Vec<Seq> {
        let behind: Vec<Seq> = self.out.split_off(&seq).into_iter().filter(|other| *other != seq).collect();
        self.queued.insert(seq);
        self.queued.extend(&behind);
        behind
    }

    /// Forgets `seq`.
    pub(super) fn remove(&mut self, seq: Seq) {
        self.queued.remove(&seq);
        self.out.remove(&seq);
    }

    pub(super) fn front(&self) -> Option<Seq> {
        self.queued.first().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.out.is_empty()
    }
}
