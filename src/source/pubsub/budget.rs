//! What this process may hold unanswered, in messages and in bytes.
//!
//! The server is told the same limits, but emulators ignore them and several streams each get a share: only this keeps
//! memory bounded.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Shared by all streams of the source.
#[derive(Debug)]
pub(super) struct Budget {
    messages: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    max_messages: usize,
    max_bytes: u32,
    metrics: Metrics,
}

impl Budget {
    /// Room for `messages` (at least one) and `bytes` (at least one, at most 4 GiB - 1).
    pub(super) fn new(messages: usize, bytes: u64, metrics: Metrics) -> Self {
        let max_bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(1);
        let max_messages = messages.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            messages: Arc::new(Semaphore::new(max_messages)),
            bytes: Arc::new(Semaphore::new(max_bytes as usize)),
            max_messages,
            max_bytes,
            metrics,
        }
    }

    /// Waits for room for one message of `size` bytes; `None` once `stopping` is ordered. A message larger than the
    /// whole budget takes all of it: it would never come otherwise.
    pub(super) async fn take(self: &Arc<Self>, size: usize, stopping: &CancellationToken) -> Option<Permit> {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let share = size.clamp(1, self.max_bytes);
        let both = async {
            let message = Arc::clone(&self.messages).acquire_owned().await.ok()?;
            let bytes = Arc::clone(&self.bytes).acquire_many_owned(share).await.ok()?;
            Some((message, bytes))
        };
        let (message, bytes) = stopping.run_until_cancelled(both).await??;
        self.metrics.pubsub_outstanding_messages.inc();
        self.metrics.pubsub_outstanding_bytes.add(i64::from(size));
        Some(Permit { _message: message, _bytes: bytes, size: i64::from(size), budget: Arc::clone(self) })
    }

    /// How many messages are out.
    pub(super) fn outstanding(&self) -> usize {
        self.max_messages - self.messages.available_permits()
    }
}

/// The place of one delivery; given back on drop.
#[derive(Debug)]
pub(super) struct Permit {
    _message: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
    size: i64,
    budget: Arc<Budget>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.metrics.pubsub_outstanding_messages.dec();
        self.budget.metrics.pubsub_outstanding_bytes.sub(self.size);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn budget(messages: usize, bytes: u64) -> Arc<Budget> {
        Arc::new(Budget::new(messages, bytes, Metrics::new().unwrap()))
    }

    fn at_once(budget: &Arc<Budget>, size: usize) -> Option<Permit> {
        budget.take(size, &CancellationToken::new()).now_or_never().flatten()
    }

    #[tokio::test]
    async fn no_more_messages_than_the_budget_are_out() {
        let budget = budget(2, 1_000);

        let first = at_once(&budget, 1).unwrap();
        let _second = at_once(&budget, 1).unwrap();
        assert!(at_once(&budget, 1).is_none());
        assert_eq!(budget.metrics.pubsub_outstanding_messages.get(), 2);

        assert_eq!(budget.outstanding(), 2);

        drop(first);
        assert_eq!(budget.outstanding(), 1);
        assert!(at_once(&budget, 1).is_some());
    }

    #[tokio::test]
    async fn no_more_bytes_than_the_budget_are_out() {
        let budget = budget(10, 1_000);

        let _first = at_once(&budget, 600).unwrap();
        assert!(at_once(&budget, 600).is_none());
        assert!(at_once(&budget, 400).is_some());
        assert_eq!(budget.metrics.pubsub_outstanding_bytes.get(), 600);
    }

    #[tokio::test]
    async fn an_oversize_message_takes_the_whole_budget_and_comes_alone() {
        let budget = budget(10, 1_000);

        let small = at_once(&budget, 1).unwrap();
        assert!(at_once(&budget, 5_000).is_none());
        drop(small);
        let large = at_once(&budget, 5_000).unwrap();
        assert!(at_once(&budget, 1).is_none());
        assert_eq!(budget.metrics.pubsub_outstanding_bytes.get(), 5_000);

        drop(large);
        assert!(at_once(&budget, 1_000).is_some());
        assert_eq!(budget.metrics.pubsub_outstanding_bytes.get(), 0);
    }

    #[tokio::test]
    async fn a_waiting_reader_hears_the_stop() {
        let budget = budget(1, 1_000);
        let stopping = CancellationToken::new();
        let _held = at_once(&budget, 1).unwrap();

        stopping.cancel();

        assert!(budget.take(1, &stopping).await.is_none());
    }
}
