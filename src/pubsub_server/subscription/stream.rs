//! One reader of a subscription: its window, what it holds, what is on its way to it.

use std::{collections::VecDeque, time::Duration};

/// Names a stream, unique in one server.
pub(in crate::pubsub_server) type StreamId = u64;

/// A response is filled up to this many messages,
pub(super) const BATCH_MESSAGES: usize = 1_000;
/// and this many bytes (one message may be larger).
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// What a reader asked for when it came.
#[derive(Debug, Clone, Copy)]
pub(in crate::pubsub_server) struct Window {
    /// The lease of each message sent on this stream.
    pub(in crate::pubsub_server) ack_deadline: Duration,
    /// Messages it may hold unanswered; `None` = any number.
    pub(in crate::pubsub_server) max_messages: Option<usize>,
    /// Bytes it may hold unanswered; one larger message may be held alone; `None` = any number.
    pub(in crate::pubsub_server) max_bytes: Option<usize>,
}

/// A reader and what it holds.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) window: Window,
    pub(super) held_messages: usize,
    pub(super) held_bytes: usize,
    /// Leased but not handed to the transport; ids whose lease ended meanwhile are skipped when taken.
    pub(super) outbox: VecDeque<(u64, usize)>,
    outbox_bytes: usize,
}

impl Stream {
    pub(super) fn new(window: Window) -> Self {
        Self { window, held_messages: 0, held_bytes: 0, outbox: VecDeque::new(), outbox_bytes: 0 }
    }

    /// Whether a message of `bytes` may be assigned to it now. A reader that does not read gets no more than a batch.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let outbox = self.outbox.is_empty()
            || (self.outbox.len() < BATCH_MESSAGES && self.outbox_bytes.saturating_add(bytes) <= BATCH_BYTES);
        let messages = self.window.max_messages.is_none_or(|max| self.held_messages < max);
        let weight = self.held_messages == 0
            || self.window.max_bytes.is_none_or(|max| self.held_bytes.saturating_add(bytes) <= max);
        outbox && messages && weight
    }

    pub(super) fn hold(&mut self, ack: u64, bytes: usize) {
        self.held_messages += 1;
        self.held_bytes += bytes;
        self.outbox.push_back((ack, bytes));
        self.outbox_bytes += bytes;
    }

    /// The next ack id on its way out.
    pub(super) fn next_out(&mut self) -> Option<u64> {
        let (ack, bytes) = self.outbox.pop_front()?;
        self.outbox_bytes -= bytes;
        Some(ack)
    }

    pub(super) fn let_go(&mut self, bytes: usize) {
        self.held_messages = self.held_messages.saturating_sub(1);
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }
}
