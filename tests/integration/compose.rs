//! compose.yaml without Docker: its services as processes, with the commands and variables that stand there.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use config::{Config, File, FileFormat};
use rustix::process::Signal;
use serde_json::Value;

use super::harness::{Emulator, Postgres, bellhop::clean, eventually, ports, process::Process, unique, wait::when};

const SOON: Duration = Duration::from_secs(60);
const TEXT: &str = include_str!("../../compose.yaml");
const DOCKERFILE: &str = include_str!("../../Dockerfile");

/// A service, with what `<<` brings along.
fn service(name: &str) -> Value {
    let file = Config::builder().add_source(File::from_str(TEXT, FileFormat::Yaml)).build().expect("YAML");
    let file: Value = file.try_deserialize().expect("a tree");
    let own = file["services"][name].as_object().unwrap_or_else(|| panic!("there is no service {name}")).clone();
    let mut all = own.get("<<").and_then(Value::as_object).cloned().unwrap_or_default();
    all.extend(own);
    all.into()
}

/// A list of words, from YAML or from the Dockerfile.
fn words(list: &Value) -> Vec<String> {
    let text = |word: &Value| word.as_str().expect("a word").to_owned();
    list.as_array().map(|list| list.iter().map(text).collect()).unwrap_or_default()
}

/// What the image says after this word.
fn image(instruction: &str) -> Vec<String> {
    let line = DOCKERFILE.lines().find_map(|line| line.strip_prefix(instruction)).expect("the instruction");
    words(&serde_json::from_str(line).expect("its exec form"))
}

/// The process of that service, with other arguments if they are given, as `docker compose run` takes them.
fn started(name: &str, arguments: Option<Vec<String>>) -> Vec<String> {
    let service = service(name);
    let own = |key: &str| service.get(key).map(words);
    let command = arguments.or_else(|| own("command")).unwrap_or_else(|| image("CMD"));
    let mut all = own("entrypoint").unwrap_or_else(|| image("ENTRYPOINT"));
    all.extend(command);
    all
}

/// Runs what the image has as bellhop with the one that was built here.
fn bellhop(words: &[String], variables: &BTreeMap<String, String>, log: &Path) -> Process {
    assert_eq!(words[0], "/usr/local/bin/bellhop");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
    Process::spawn(&words.join(" "), clean(&mut command).args(&words[1..]).envs(variables), log)
}

/// What the comments and the documentation have users send: `docker compose run --rm trigger SAMPLE`.
fn sent() -> Vec<String> {
    let pages = [TEXT, include_str!("../../docs/DEPLOYMENT.md")];
    let lines = pages.iter().flat_map(|page| page.lines());
    let after = lines.filter_map(|line| line.split_once("docker compose run --rm trigger ").map(|(_, after)| after));
    after.map(|after| after.split_whitespace().next().expect("a sample").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_of_compose_as_processes_handle_what_is_triggered() {
    let (emulator, database) = (Emulator::shared(), Postgres::fresh().await);
    let (listen, handled_at) = (ports::free(), ports::free());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = |name: &str| folder.path().join(name);
    let mut variables: BTreeMap<String, String> =
        serde_json::from_value(service("bellhop")["environment"].clone()).expect("variables");
    // Ports and addresses, and a project of the test's own.
    let ours = [
        ("PUBSUB_EMULATOR_HOST", emulator.address().to_owned()),
        ("DATABASE_URL", database.url().to_owned()),
        ("BELLHOP__PUBSUB__PROJECT", unique("compose")),
        ("BELLHOP__HANDLER__URL", format!("http://127.0.0.1:{handled_at}/events")),
    ];
    for (name, value) in ours {
        assert!(variables.insert(name.to_owned(), value).is_some(), "compose.yaml does not set {name}");
    }
    variables.insert("BELLHOP__SERVER__LISTEN".to_owned(), format!("127.0.0.1:{listen}"));

    for name in ["migrate", "trigger"] {
        let mut once = bellhop(&started(name, None), &variables, &log(name));
        assert_eq!(once.exit_code(SOON).await, 0, "{name}: {}", once.log());
    }
    let volume = words(&service("handler")["volumes"])[0].clone();
    let (source, target) = volume.split_once(':').expect("a mount");
    let target = target.split(':').next().expect("a folder");
    let handler = words(&service("handler")["command"]);
    let script = handler[1].strip_prefix(target).map(|file| format!("{source}{file}")).expect("a mounted file");
    let mut command = Command::new(&handler[0]);
    let command = clean(&mut command).current_dir(env!("CARGO_MANIFEST_DIR")).arg(script);
    let _handler = Process::spawn("handler", command.env("PORT", handled_at.to_string()), &log("handler"));
    let mut worker = bellhop(&started("bellhop", None), &variables, &log("bellhop"));
    let check = words(&service("bellhop")["healthcheck"]["test"])[1..].to_vec();
    eventually("the health check to say yes", SOON, async || {
        let mut check = bellhop(&check, &variables, &log("healthcheck"));
        when(check.exit_code(SOON).await == 0)
    })
    .await;
    let samples = sent();
    assert!(!samples.is_empty());
    for sample in &samples {
        let mut again = bellhop(&started("trigger", Some(vec![sample.clone()])), &variables, &log("again"));
        assert_eq!(again.exit_code(SOON).await, 0, "{sample}: {}", again.log());
    }

    eventually("every event to be handled", SOON, async || {
        when(worker.log().matches("as done").count() == samples.len() + 1)
    })
    .await;
    worker.signal(Signal::TERM);
    assert_eq!(worker.exit_code(SOON).await, 0);
}

#[test]
fn the_database_of_compose_is_the_one_that_is_asked() {
    let server = service("postgres");
    let of = |name: &str| server["environment"][name].as_str().expect("a value").to_owned();

    let url =
        format!("postgres://{}:{}@postgres:5432/{}", of("POSTGRES_USER"), of("POSTGRES_PASSWORD"), of("POSTGRES_DB"));
    assert_eq!(service("bellhop")["environment"]["DATABASE_URL"], url);
    assert_eq!(service("bellhop")["environment"]["PUBSUB_EMULATOR_HOST"], "pubsub:8085");
    assert!(words(&service("pubsub")["command"]).contains(&"--host-port=0.0.0.0:8085".to_owned()));
}
