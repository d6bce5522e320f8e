//! One stream from its opening until its last answer has been sent.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use google_cloud_pubsub::subscriber::{MessageStream, ShutdownToken};
use tokio::{
    sync::oneshot,
    time::{self, Instant},
};
use tokio_util::task::TaskTracker;

use super::{
    health::{Health, Reading},
    inlet::Inlet,
    pulse::Pulse,
    reader,
    reason::{Failure, Reason},
};

/// How long a drain goes on reading what the server already sent.
const DRAIN: Duration = Duration::from_millis(200);
/// A reader that waits for so long has read all there was.
const QUIET: Duration = Duration::from_millis(100);
/// A stream and its reader. Dropped, it is retired.
#[derive(Debug)]
pub(super) struct Generation {
    token: ShutdownToken,
    pulse: Arc<Pulse>,
    end: oneshot::Receiver<Failure>,
    begun: Instant,
    _reading: Reading,
}

impl Generation {
    /// Starts the reader in `tasks`. Its task lasts until every message it handed over is answered and the answers are
    /// sent.
    pub(super) fn start(
        mut stream: MessageStream,
        inlet: Arc<Inlet>,
        tasks: &TaskTracker,
        health: &Arc<Health>,
    ) -> Self {
        let token = stream.shutdown_token();
        let flushed = stream.shutdown_token();
        let pulse = Arc::new(Pulse::new());
        let beat = Arc::clone(&pulse);
        let (tell, end) = oneshot::channel();
        tasks.spawn(async move {
            let mut kept = Vec::new();
            let failure = reader::read(&mut stream, &inlet, &beat, &mut kept).await;
            drop((stream, inlet));
            drop(kept);
            // Nobody listens to a retired reader.
            let _ = tell.send(failure);
            flushed.shutdown().await;
        });
        Self { token, pulse, end, begun: Instant::now(), _reading: health.reads() }
    }

    /// Why the reader ended, `None` when nothing came for `limit`. Cancel-safe.
    pub(super) async fn over(&mut self, limit: Duration) -> Option<Failure> {
        tokio::select! {
            biased;
            end = &mut self.end => Some(end.unwrap_or_else(|_| Failure::new(Reason::Panicked, "the reader died"))),
            () = self.pulse.silent_for(limit) => None,
        }
    }

    /// True once a message came.
    pub(super) fn has_heard(&self) -> bool {
        self.pulse.has_heard()
    }

    /// True when it was of use: the next failure is a new one.
    pub(super) fn has_worked(&self) -> bool {
        self.pulse.has_heard() || self.begun.elapsed() >= Duration::from_secs(60)
    }

    /// The last part of its life: goes on reading for a moment, so that what waits in the client goes back now and not
    /// with the last handler, then retires. The reader gives it all back once the stream is closed.
    pub(super) async fn drain(self) {
        let quiet = self.pulse.silent_for(QUIET);
        // In time or not: what is left goes back with the last answer.
        let _ = time::timeout(DRAIN, quiet).await;
    }
}

impl Drop for Generation {
    /// Orders the stream to end; its handlers keep their leases and their way to answer.
    fn drop(&mut self) {
        // The order is given at the first poll; the reader's task waits for the rest.
        let _ = self.token.shutdown().now_or_never();
    }
}
