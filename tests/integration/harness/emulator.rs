//! Google's Pub/Sub emulator: the one that all tests share, or one of one's own that may be hurt.

use std::{path::PathBuf, process::Command, time::Duration};

use tempfile::TempDir;
use tokio::net::TcpStream;

use super::{
    from_run, ports,
    process::Process,
    unique,
    wait::{eventually, when},
};

/// A running emulator.
#[derive(Debug)]
pub(crate) struct Emulator {
    address: String,
    own: Option<(Process, TempDir)>,
}

impl Emulator {
    /// The shared one. Names of topics and subscriptions are fresh per test, so tests do not meet there.
    pub(crate) fn shared() -> Self {
        Self { address: from_run("BELLHOP_TEST_EMULATOR"), own: None }
    }

    /// One of its own. It keeps nothing on disk: a restart loses all topics, subscriptions and messages.
    pub(crate) async fn own() -> Self {
        let emulator = Self { address: format!("127.0.0.1:{}", ports::free()), own: None };
        emulator.started().await
    }

    /// Starts a server at the same address as before.
    pub(crate) async fn restarted(mut self) -> Self {
        self.own = None;
        self.started().await
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.own.as_mut().expect("only Emulator::own() may be hurt").0.kill();
    }

    async fn started(mut self) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log: PathBuf = folder.path().join("emulator.log");
        let (_, port) = self.address.rsplit_once(':').expect("host:port");
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/emulator.sh"));
        command.args(["run", port]);
        let mut process = Process::spawn(&unique("emulator"), &mut command, &log);
        eventually("the emulator to listen", Duration::from_secs(60), async || {
            assert!(process.exited().is_none(), "the emulator ended: {}", process.log());
            when(TcpStream::connect(&self.address).await.is_ok())
        })
        .await;
        self.own = Some((process, folder));
        self
    }
}
