//! Since when a reader has been waiting for its stream.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::{self, Instant};

const BUSY: u64 = u64::MAX;

/// Written by the reader, read by its supervisor. A reader that waits for the budget is not silent.
#[derive(Debug)]
pub(super) struct Pulse {
    start: Instant,
    /// Milliseconds after `start`, or `BUSY`.
    listening_since: AtomicU64,
    heard: AtomicBool,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), listening_since: AtomicU64::new(BUSY), heard: AtomicBool::new(false) }
    }

    /// The reader waits for its stream from now on.
    pub(super) fn listens(&self) {
        let since = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(BUSY - 1);
        self.listening_since.store(since, Ordering::Relaxed);
    }

    /// The reader no longer waits.
    pub(super) fn rests(&self) {
        self.listening_since.store(BUSY, Ordering::Relaxed);
    }

    /// A message came.
    pub(super) fn hears(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// True once a message came.
    pub(super) fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    /// How long the reader has been waiting for its stream; `None` while it is busy.
    pub(super) fn silence(&self) -> Option<Duration> {
        match self.listening_since.load(Ordering::Relaxed) {
            BUSY => None,
            since => Some(self.start.elapsed().saturating_sub(Duration::from_millis(since))),
        }
    }

    /// Resolves once the reader has been waiting for its stream for `limit` without a break. Cancel-safe.
    pub(super) async fn silent_for(&self, limit: Duration) {
        loop {
            let silence = self.silence().unwrap_or_default();
            if silence >= limit {
                return;
            }
            time::sleep(limit - silence).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_hears_nothing_is_silent_after_the_limit() {
        let pulse = Pulse::new();
        let start = Instant::now();
        pulse.listens();

        pulse.silent_for(LIMIT).await;

        assert_eq!(start.elapsed(), LIMIT);
        assert!(!pulse.has_heard());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_starts_the_silence_anew() {
        let pulse = Pulse::new();
        let start = Instant::now();
        pulse.listens();
        time::advance(Duration::from_secs(6)).await;
        pulse.rests();
        pulse.listens();

        pulse.silent_for(LIMIT).await;

        assert_eq!(start.elapsed(), Duration::from_secs(16));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_waits_for_the_budget_is_not_silent() {
        let pulse = Pulse::new();
        pulse.listens();
        pulse.rests();

        assert!(time::timeout(Duration::from_secs(3_600), pulse.silent_for(LIMIT)).await.is_err());
    }
}
