//! A published message, shared by every subscription that holds it.

use prost::Message as _;
use tokio::time::Instant;

use super::proto::PubsubMessage;

/// What is added to the wire size for the bookkeeping around one message.
const OVERHEAD: usize = 256;

/// The order of publication, unique in one server.
pub(super) type Seq = u64;

/// One message as published: id and publish time are set.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) seq: Seq,
    pub(super) wire: PubsubMessage,
    /// Wire size, what flow control counts.
    pub(super) bytes: usize,
    pub(super) published: Instant,
}

impl Message {
    pub(super) fn new(seq: Seq, wire: PubsubMessage, published: Instant) -> Self {
        let bytes = wire.encoded_len();
        Self { seq, wire, bytes, published }
    }

    /// What one subscription's copy costs in memory, roughly.
    pub(super) fn footprint(&self) -> usize {
        self.bytes + OVERHEAD
    }
}

/// What `wire` will cost for each subscription once published.
pub(super) fn footprint(wire: &PubsubMessage) -> usize {
    wire.encoded_len() + 64 + OVERHEAD
}
