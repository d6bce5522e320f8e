//! Whoever reads the log may stall; the daemon must not.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use super::harness::{bellhop::clean, eventually, ports};

const SOON: Duration = Duration::from_secs(30);

/// What a pipe holds is far less than what is logged here.
const REQUESTS: u32 = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_does_not_stop_the_daemon() {
    let (listen, closed) = (ports::free(), ports::free());
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
    let settings = [
        "pubsub.subscription=projects/p/subscriptions/sub".to_owned(),
        format!("pubsub.endpoint=http://127.0.0.1:{closed}"),
        "store.backend=memory".to_owned(),
        "handler.kind=echo".to_owned(),
        "log.level=trace".to_owned(),
        format!("server.listen=127.0.0.1:{listen}"),
    ];
    let command = clean(&mut command).arg("run").args(settings.iter().flat_map(|setting| ["--set", setting]));
    let mut daemon = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
    let url = format!("http://127.0.0.1:{listen}/healthz/live");
    let client = reqwest::Client::builder().timeout(SOON).build().expect("a client");
    eventually("the first answer", SOON, async || client.get(&url).send().await.ok()).await;

    for number in 0..REQUESTS {
        let answer = client.get(&url).send().await;
        assert!(answer.is_ok_and(|answer| answer.status().is_success()), "request {number} of {REQUESTS}");
    }

    daemon.kill().expect("it can be ended");
    let output = daemon.wait_with_output().expect("its output");
    assert!(output.stderr.len() >= 60_000, "the pipe was not full: {} bytes", output.stderr.len());
}
