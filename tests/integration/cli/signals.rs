//! Signals to a process that is waiting for something.

use std::{fs, net::TcpListener, path::Path, time::Duration};

use rustix::process::Signal;

use super::bellhop;
use crate::integration::harness::{eventually, ports, process::Process, wait::when};

const SOON: Duration = Duration::from_secs(10);

/// Waits until the process no longer dies of SIGTERM and SIGINT by default.
async fn catches(process: &Process) {
    let status = format!("/proc/{}/status", process.id());
    eventually("the signals to be caught", SOON, async || {
        let status = fs::read_to_string(&status).ok()?;
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
        // Bit n - 1 is signal n: 2 is SIGINT, 15 SIGTERM.
        when(caught & 0b100_0000_0000_0010 == 0b100_0000_0000_0010)
    })
    .await;
}

fn spawn(arguments: &[&str], log: &Path) -> Process {
    Process::spawn(
        "bellhop",
        bellhop(arguments).env("BELLHOP_TEST_RUN", std::env::var_os("BELLHOP_TEST_RUN").unwrap_or_default()),
        log,
    )
}

#[tokio::test]
async fn a_command_that_waits_is_interrupted_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // Accepts, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("store.url=postgres://bellhop@{}/bellhop", silent.local_addr().unwrap());
    let mut process = spawn(&["migrate", "status", "--set", &url], &folder.path().join("log"));
    catches(&process).await;
    let _connection = silent.accept().unwrap();

    process.signal(Signal::INT);

    assert_eq!(process.exit_code(SOON).await, 130);
}

#[tokio::test]
async fn a_run_that_waits_for_its_store_ends_well_at_the_first_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (store, listen) = (ports::free(), ports::free());
    let arguments = [
        "run".to_owned(),
        "--set=pubsub.project=p".to_owned(),
        "--set=pubsub.subscription=chat-events".to_owned(),
        "--set=handler.kind=echo".to_owned(),
        format!("--set=store.url=postgres://bellhop@127.0.0.1:{store}/bellhop"),
        format!("--set=server.listen=127.0.0.1:{listen}"),
    ];
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut process = spawn(&arguments, &folder.path().join("log"));
    catches(&process).await;

    process.signal(Signal::TERM);

    assert_eq!(process.exit_code(SOON).await, 0, "{}", process.log());
}
