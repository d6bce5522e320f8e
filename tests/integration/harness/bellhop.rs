//! The real `bellhop` process under a configuration of the test's making.

use std::{path::PathBuf, process::Command, time::Duration};

use reqwest::StatusCode;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    broker::{Broker, Subscription},
    metrics::Scrape,
    ports,
    process::Process,
    unique,
    wait::{eventually, when},
};

/// Long enough on a machine that is busy with other tests; a good start takes a fraction of a second.
const START: Duration = Duration::from_secs(30);

/// The configuration of one or several processes.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    config: Value,
    broker: String,
}

impl Setup {
    /// Pulls from that subscription; store and handler are still to be said. Times are short, so that tests are.
    pub(crate) fn new(broker: &Broker, subscription: &Subscription) -> Self {
        let config = json!({
            "pubsub": { "project": subscription.project, "subscription": subscription.name, "lease_extension": "10s" },
            "claims": { "lease": "5s" },
            "retry": { "min_backoff": "100ms", "max_backoff": "2s" },
            "handler": { "kind": "http", "timeout": "20s" },
            "log": { "level": "debug" },
        });
        Self { config, broker: broker.address().to_owned() }
    }

    /// Sets one value, named as on the command line: `retry.max_lost`.
    pub(crate) fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        let pointer = path.split('.').fold(&mut self.config, |section, key| {
            if section.is_null() {
                *section = json!({});
            }
            &mut section[key]
        });
        *pointer = value.into();
        self
    }

    /// Keeps claims in that PostgreSQL database, shared by so many processes.
    pub(crate) fn postgres(self, url: &str, replicas: u32) -> Self {
        self.set("store.backend", "postgres").set("store.url", url).set("store.replicas", replicas)
    }

    /// Reaches the broker at that `host:port` instead, such as a proxy's.
    pub(crate) fn through(mut self, address: &str) -> Self {
        address.clone_into(&mut self.broker);
        self
    }

    /// Posts to that address.
    pub(crate) fn handler(self, url: &str) -> Self {
        self.set("handler.url", url)
    }

    /// Adds a rule behind those already there.
    pub(crate) fn rule(mut self, rule: Value) -> Self {
        match &mut self.config["rule"] {
            Value::Array(rules) => rules.push(rule),
            none => *none = json!([rule]),
        }
        self
    }

    /// Creates the tables, as an operator does before the first start.
    pub(crate) async fn migrate(&self) {
        let url = self.config.pointer("/store/url").and_then(Value::as_str).expect("a store first");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
        clean(&mut command).args(["migrate", "up"]).env("DATABASE_URL", url);
        let mut migrate = Process::spawn("bellhop migrate up", &mut command, &folder.path().join("log"));
        assert_eq!(migrate.exit_code(START).await, 0, "migrate up: {}", migrate.log());
    }
}

/// One running process.
#[derive(Debug)]
pub(crate) struct Bellhop {
    process: Process,
    setup: Setup,
    folder: TempDir,
    port: u16,
    client: reqwest::Client,
}

impl Bellhop {
    /// Starts `bellhop run` and returns at once.
    pub(crate) fn spawn(setup: &Setup) -> Self {
        Self::spawn_with(setup, |_| {})
    }

    /// The same, with what `change` does to the command.
    pub(crate) fn spawn_with(setup: &Setup, change: impl FnOnce(&mut Command)) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = ports::free();
        let setup = setup.clone().set("server.listen", format!("127.0.0.1:{port}"));
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(5))
            .build()
            .expect("a client without special wishes");
        let process = launch(&setup, &folder, change);
        Self { process, setup, folder, port, client }
    }

    /// Starts `bellhop run` and waits until it is ready.
    pub(crate) async fn start(setup: &Setup) -> Self {
        let mut bellhop = Self::spawn(setup);
        bellhop.ready().await;
        bellhop
    }

    /// Starts it anew after its end, with the same configuration, port and folder; the log goes on in the same file.
    pub(crate) fn respawn(&mut self) {
        assert!(self.process.exited().is_some(), "it still runs");
        self.process = launch(&self.setup, &self.folder, |_| {});
    }

    /// Waits until `/healthz/ready` says yes.
    pub(crate) async fn ready(&mut self) {
        eventually("bellhop to be ready", START, async || {
            let exited = self.process.exited();
            assert!(exited.is_none(), "bellhop ended with {exited:?} before it was ready");
            when(self.is("ready").await)
        })
        .await;
    }

    /// Whether `/healthz/{check}` answers 200.
    pub(crate) async fn is(&self, check: &str) -> bool {
        self.health(check).await == Some(StatusCode::OK)
    }

    /// The status of `/healthz/{check}`, if there is an answer at all.
    pub(crate) async fn health(&self, check: &str) -> Option<StatusCode> {
        let url = format!("http://127.0.0.1:{}/healthz/{check}", self.port);
        Some(self.client.get(url).send().await.ok()?.status())
    }

    /// `/metrics`, now.
    pub(crate) async fn metrics(&self) -> Scrape {
        let url = format!("http://127.0.0.1:{}/metrics", self.port);
        let answer = self.client.get(url).send().await.expect("/metrics answers");
        Scrape::parse(&answer.text().await.expect("/metrics is text"))
    }

    /// How many messages it has acked since its start.
    pub(crate) async fn acks(&self) -> usize {
        let acks = self.metrics().await.sum("bellhop_pubsub_requests_total", &[("operation", "ack")]);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let acks = acks as usize;
        acks
    }

    /// Waits until it has acked so many messages since its start.
    pub(crate) async fn acked(&self, messages: usize) {
        eventually(&format!("{messages} acks"), START, async || when(self.acks().await >= messages)).await;
    }

    /// Waits until it says that it drains.
    pub(crate) async fn draining(&self) {
        let what = "a drain to begin";
        eventually(what, START, async || when(self.metrics().await.sum("bellhop_shutting_down", &[]) > 0.0)).await;
    }

    /// Stops it as an operator does and expects that nothing had to be abandoned.
    pub(crate) async fn drain(&mut self) {
        self.terminate();
        assert_eq!(self.exit_code(START).await, 0, "a clean drain");
    }

    /// Asks it to drain.
    pub(crate) fn terminate(&mut self) {
        self.process.signal(Signal::TERM);
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.process.exited().is_none()
    }

    /// Waits for its end.
    pub(crate) async fn exit_code(&mut self, within: Duration) -> i32 {
        self.process.exit_code(within).await
    }
}

fn launch(setup: &Setup, folder: &TempDir, change: impl FnOnce(&mut Command)) -> Process {
    let file: PathBuf = folder.path().join("bellhop.yaml");
    // JSON is YAML.
    std::fs::write(&file, setup.config.to_string()).expect("a writable folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
    clean(&mut command)
        .args(["run", "--config"])
        .arg(file)
        .current_dir(folder.path())
        .env("PUBSUB_EMULATOR_HOST", &setup.broker);
    change(&mut command);
    Process::spawn(&unique("bellhop"), &mut command, &folder.path().join("bellhop.log"))
}

/// Nothing of the developer's own environment reaches the process, except what a program needs to run at all.
pub(crate) fn clean(command: &mut Command) -> &mut Command {
    command.env_clear();
    for name in ["PATH", "HOME", "LANG", "TMPDIR", "BELLHOP_TEST_RUN"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.env("RUST_BACKTRACE", "1").env("NO_COLOR", "1")
}
