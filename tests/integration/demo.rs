//! `bellhop demo`, the real binary.

use std::{
    process::{Output, Stdio},
    time::Duration,
};

use bellhop::pubsub_server::PubsubServer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{ChildStdout, Command},
    time::timeout,
};

async fn demo(arguments: &[&str], emulator: Option<&str>) -> Output {
    let variables: Vec<_> = emulator.map(|host| ("PUBSUB_EMULATOR_HOST", host)).into_iter().collect();
    demo_with(arguments, &variables).await
}

async fn demo_with(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
    command.arg("demo").args(arguments).env_remove("PUBSUB_EMULATOR_HOST").stdin(Stdio::null()).kill_on_drop(true);
    command.envs(variables.iter().copied()).output().await.unwrap()
}

fn summary(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test]
async fn nothing_is_lost_and_every_duplicate_is_found() {
    let output = demo(
        &["--once", "--events", "300", "--duplicates", "0.2", "--fail", "0.1", "--rate", "100", "-o", "json"],
        None,
    )
    .await;

    let summary = summary(&output);
    let count = |key: &str| summary[key].as_u64().unwrap();
    assert_eq!(
        (&summary["published"], &summary["distinct"], &summary["duplicates"]),
        (&json!(360), &json!(300), &json!(60))
    );
    assert_eq!(count("handled") + count("quarantined"), 300);
    assert_eq!(summary["lost"], 0);
    assert!(count("retried") > 10, "{summary}");
}

#[tokio::test]
async fn a_server_that_runs_already_is_used_and_left_clean() {
    let server = PubsubServer::start(([127, 0, 0, 1], 0).into()).await.unwrap();
    let host = server.address().to_string();

    let output = demo(&["--once", "--events", "20", "--rate", "100", "-o", "json"], Some(&host)).await;

    assert_eq!(summary(&output)["lost"], 0);
    let subscriptions = server.admin().subscriptions("projects/bellhop-demo");
    assert_eq!(subscriptions, [""; 0], "the run's own subscription is deleted");
    assert!(server.faults().calls(bellhop::pubsub_server::Method::Publish) > 0);
}

#[tokio::test]
async fn the_terminal_gets_a_line_for_every_event_and_a_table() {
    let output = demo(&["--once", "--events", "10", "--duplicates", "0.5", "--fail", "0", "--rate", "100"], None).await;

    let text = String::from_utf8(output.stdout).unwrap();
    let lines = |word: &str| text.lines().filter(|line| line.contains(&format!("s  {word} "))).count();
    assert!(output.status.success(), "{text}");
    assert_eq!(
        (lines("handled"), text.lines().any(|line| line.starts_with("lost              0"))),
        (10, true),
        "{text}"
    );
    assert!(lines("duplicate") >= 5, "{text}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_settings_of_a_real_run_do_not_reach_it() {
    let variables = [
        ("BELLHOP_CONFIG", "/nowhere/bellhop.toml"),
        ("DATABASE_URL", "postgres://nobody@127.0.0.1:1/x"),
        ("BELLHOP__PUBSUB__SUBSCRIPTION", "projects/p/subscriptions/s"),
        ("BELLHOP__HANDLER__KIND", "http"),
        ("BELLHOP__HANDLER__URL", "http://127.0.0.1:1/events"),
    ];

    let output =
        demo_with(&["--once", "--events", "5", "--fail", "0", "--rate", "100", "-o", "json"], &variables).await;

    assert_eq!(summary(&output)["handled"], 5);
}

#[tokio::test]
async fn copies_are_told_from_second_deliveries() {
    let output = demo(&["--once", "--events", "60", "--duplicates", "1", "--fail", "0", "--rate", "1000"], None).await;

    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("published twice")).count(), 60, "{text}");
}

#[tokio::test]
async fn an_emulator_that_is_not_there_is_exit_6() {
    let output = demo(&["--once"], Some("127.0.0.1:1")).await;

    assert_eq!(output.status.code(), Some(6), "{output:?}");
}

#[tokio::test]
async fn it_goes_on_with_what_is_triggered_until_a_signal_ends_it() {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_bellhop"))
        .args(["demo", "--events", "1", "--duplicates", "0", "--fail", "0"])
        .env_remove("PUBSUB_EMULATOR_HOST")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    let invitation = read_until(&mut lines, &mut seen, |seen| matching(seen, "bellhop trigger").pop()).await;

    let words: Vec<&str> = invitation.split_whitespace().collect();
    let (name, host) = words[0].split_once('=').unwrap();
    let trigger = Command::new(env!("CARGO_BIN_EXE_bellhop"))
        .args(&words[2..])
        .env(name, host)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(trigger.status.success(), "{trigger:?}");
    // The one event of the plan may be handled before or after the invitation.
    read_until(&mut lines, &mut seen, |seen| (matching(seen, "  handled  ").len() == 2).then_some(())).await;
    let pid = i32::try_from(demo.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::INT).unwrap();

    read_until(&mut lines, &mut seen, |seen| matching(seen, "distinct          2").pop()).await;
    assert!(demo.wait().await.unwrap().success());
}

fn matching(seen: &[String], part: &str) -> Vec<String> {
    seen.iter().filter(|line| line.contains(part)).cloned().collect()
}

/// Reads on until what was seen so far holds what is looked for.
async fn read_until<T>(
    lines: &mut Lines<BufReader<ChildStdout>>,
    seen: &mut Vec<String>,
    found: impl Fn(&[String]) -> Option<T>,
) -> T {
    let looking = async {
        loop {
            if let Some(found) = found(seen) {
                return found;
            }
            seen.push(lines.next_line().await.unwrap().unwrap_or_else(|| panic!("no more lines after {seen:#?}")));
        }
    };
    timeout(Duration::from_secs(60), looking).await.expect("the line in time")
}
