//! What the README tells a newcomer to type works as it stands there, but for ports and addresses.

use std::{path::Path, process::Command, time::Duration};

use reqwest::StatusCode;
use rustix::process::Signal;

use super::harness::{Emulator, Postgres, bellhop::clean, eventually, ports, process::Process, wait::when};

const SOON: Duration = Duration::from_secs(60);

/// The first block of this language under this heading.
fn block(heading: &str, language: &str) -> String {
    let readme = include_str!("../../README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with(heading)).expect("the heading");
    let block = section.split(&format!("```{language}\n")).nth(1).expect("a block of the language");
    block.split("```").next().unwrap_or_default().to_owned()
}

fn bash(script: &str, log: &Path) -> Process {
    let mut command = Command::new("bash");
    let binaries = Path::new(env!("CARGO_BIN_EXE_bellhop")).parent().expect("a folder");
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap_or_default());
    let command = clean(&mut command)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("PATH", path)
        .args(["-euo", "pipefail", "-c", script]);
    Process::spawn("README", command, log)
}

async fn status(url: &str) -> Option<StatusCode> {
    reqwest::get(url).await.ok().map(|answer| answer.status())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_against_an_emulator_and_postgres_end_in_a_ready_process() {
    let (emulator, database) = (Emulator::shared(), Postgres::fresh().await);
    let (listen, handler) = (ports::free(), ports::free());
    let lines = block("Against Google's emulator", "sh");
    assert!(lines.contains("cargo install --path . --locked\ngcloud beta emulators pubsub start"), "{lines}");
    let script: String = lines
        .lines()
        .filter(|line| !line.starts_with("cargo ") && !line.starts_with("gcloud ") && !line.starts_with("curl "))
        .map(|line| format!("{line}\n"))
        .collect();
    let script = script
        .replace("127.0.0.1:8085", emulator.address())
        .replace("postgres://bellhop@127.0.0.1:5432/bellhop", database.url());
    let settings = format!(
        "export BELLHOP__SERVER__LISTEN=127.0.0.1:{listen} PORT={handler} \
         BELLHOP__HANDLER__URL=http://127.0.0.1:{handler}/events\n"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");

    let stop = "trap 'kill $(jobs -p)' EXIT\n";
    let mut running = bash(&format!("{stop}{settings}{script}wait\n"), &folder.path().join("log"));

    eventually("the README's bellhop to be ready", SOON, async || {
        when(status(&format!("http://127.0.0.1:{listen}/healthz/ready")).await == Some(StatusCode::OK))
    })
    .await;
    eventually("the sample event to be handled", SOON, async || when(running.log().contains("as done"))).await;
    running.signal(Signal::TERM);
    running.exit_code(SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handler_in_five_lines_answers() {
    let port = ports::free();
    let script = block("A handler in five lines", "python").replace("9000", &port.to_string());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("handler.py");
    std::fs::write(&file, script).expect("a file");
    let mut command = Command::new("python3");
    let _handler = Process::spawn("handler", clean(&mut command).arg(&file), &folder.path().join("log"));

    let status = eventually("the handler to answer", SOON, async || {
        let event = reqwest::Client::new().post(format!("http://127.0.0.1:{port}/events"));
        event.header("Idempotency-Key", "k").body("{}").send().await.ok().map(|answer| answer.status())
    })
    .await;

    assert_eq!(status, StatusCode::NO_CONTENT);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_in_brief_is_valid() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("bellhop.toml");
    std::fs::write(&file, block("Configuration in brief", "toml")).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
    let command = clean(&mut command).args(["config", "validate", "--config"]).arg(&file);

    let mut validate = Process::spawn("config validate", command, &folder.path().join("log"));

    assert_eq!(validate.exit_code(SOON).await, 0, "{}", validate.log());
}
