//! SIGTERM, SIGINT and SIGHUP (a closed terminal): the first one drains, the second one aborts.

use std::{future::Future, io, pin::pin, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time,
};

use super::Exit;
use crate::shutdown::Shutdown;

/// How long an aborted process may take to say good-bye.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Both signals, caught from the moment this exists.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Catches the signals; do it first of all, as process 1 of a container has no default to fall back on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            Some(()) = self.terminate.recv() => "SIGTERM",
            Some(()) = self.interrupt.recv() => "SIGINT",
            Some(()) = self.hangup.recv() => "SIGHUP",
            else => std::future::pending().await,
        }
    }

    /// Runs `work` until it ends. The first signal stops it, the second aborts it; then, or at a third one, the
    /// process is left within seconds, whatever `work` does.
    ///
    /// # Errors
    /// Those of `work`.
    pub async fn drain(
        mut self,
        shutdown: &Shutdown,
        work: impl Future<Output = anyhow::Result<Exit>>,
    ) -> anyhow::Result<Exit> {
        let mut work = pin!(work);
        tokio::select! {
            ended = &mut work => return ended,
            name = self.next() => {
                tracing::info!(signal = name, "Draining on {name}; a second signal aborts");
                shutdown.stop();
            }
        }
        tokio::select! {
            ended = &mut work => return ended,
            name = self.next() => {
                tracing::warn!(signal = name, "Aborting on a second {name}");
                shutdown.abort();
            }
        }
        tokio::select! {
            ended = &mut work => ended?,
            _ = self.next() => Exit::Interrupted,
            () = time::sleep(LAST_WORDS) => Exit::Interrupted,
        };
        Ok(Exit::Interrupted)
    }

    /// Runs `work` until it ends or a signal comes.
    ///
    /// # Errors
    /// Those of `work`.
    pub async fn interrupt(mut self, work: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
        tokio::select! {
            ended = work => ended,
            _ = self.next() => Ok(Exit::Interrupted),
        }
    }
}
