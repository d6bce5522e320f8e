//! Whoever reads the log may stall; the daemon must not.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use super::harness::{Broker, bellhop::clean, event::chat_message, eventually, metrics::Scrape, ports, wait::when};

const SOON: Duration = Duration::from_secs(60);

/// A pipe holds 64 KiB; one event logs about 250 bytes.
const EVENTS: u32 = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_does_not_stop_the_daemon() {
    let broker = Broker::embedded().await;
    let subscription = broker.subscription().await;
    let messages: Vec<_> = (0..EVENTS).map(|number| chat_message(&format!("e{number}"))).collect();
    subscription.publish(&messages).await;
    let listen = ports::free();
    let settings = [
        format!("pubsub.subscription={}", subscription.name),
        format!("pubsub.endpoint=http://{}", broker.address()),
        "store.backend=memory".to_owned(),
        "handler.kind=echo".to_owned(),
        format!("server.listen=127.0.0.1:{listen}"),
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
    let command = clean(&mut command).arg("run").args(settings.iter().flat_map(|setting| ["--set", setting]));
    let mut daemon = command.stderr(Stdio::piped()).spawn().expect("the binary starts");

    // A daemon that is frozen takes the connection and never answers.
    let client = reqwest::Client::builder().timeout(Duration::from_secs(5)).build().expect("a client");
    eventually("all events to be handled", SOON, async || {
        let metrics = client.get(format!("http://127.0.0.1:{listen}/metrics")).send().await.ok()?.text().await.ok()?;
        let done: f64 = Scrape::parse(&metrics).sum("bellhop_events_finished_total", &[("outcome", "done")]);
        when(done >= f64::from(EVENTS))
    })
    .await;

    daemon.kill().expect("it can be ended");
    let output = daemon.wait_with_output().expect("its output");
    assert!(output.stderr.len() >= 60_000, "the pipe was not full: {} bytes", output.stderr.len());
}
