//! Stop, then abort: the two orders a running process gets.

use tokio_util::sync::CancellationToken;

/// Told once by whoever owns the process, heard by everything that runs in it. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    stop: CancellationToken,
    abort: CancellationToken,
}

impl Shutdown {
    /// Nothing ordered yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Orders a drain: no new work, finish what runs.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Orders the end of the drain: cut what still runs, settle it, go.
    pub fn abort(&self) {
        self.stop.cancel();
        self.abort.cancel();
    }

    /// True once a drain was ordered.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// True once the end of the drain was ordered.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        self.abort.is_cancelled()
    }

    /// Resolves once a drain was ordered. Cancel-safe.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// Resolves once the end of the drain was ordered. Cancel-safe.
    pub async fn aborting(&self) {
        self.abort.cancelled().await;
    }
}
