//! `bellhop config`, and what `run` says to a configuration that is wrong.

use std::{fs, net::TcpListener};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{bellhop, error_of, run};

const GOOD: &str = "
[pubsub]
project = \"my-project\"
subscription = \"chat-events\"
[store]
url = \"postgres://bellhop:hunter2@db/bellhop\"
[handler]
signing_secret = \"hunter2\"
url = \"https://bot.example.com/events\"
[[rule]]
match = { type = \"MESSAGE\", command = [\"/restart\", \"7\"] }
timeout = \"5m\"
on_unknown = \"quarantine\"
";

const BAD: &str = "
[pubsub]
project = \"my-project\"
subscription = \"chat-events\"
[store]
url = \"mysql://bellhop:hunter2@db/bellhop\"
[worker]
concurency = 4
";

fn file(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bellhop.toml");
    fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn a_right_configuration_is_told_in_one_word() {
    let (_folder, path) = file(GOOD);

    let answer = run(&mut bellhop(&["config", "validate", "--config", &path]));

    assert_eq!(answer, (0, "ok\n".to_owned(), String::new()));
}

#[test]
fn everything_wrong_is_the_answer_of_validate() {
    let (_folder, path) = file(BAD);

    let (code, stdout, stderr) = run(bellhop(&["config", "validate"]).env("BELLHOP_CONFIG", &path));

    let expected = format!(
        "problem: worker.concurency ({path}): is no setting of bellhop; did you mean `worker.concurrency`?\n\
         problem: store.url = *** ({path}): must be a PostgreSQL URL: postgres://user:password@host:5432/database; \
         percent-encode special characters in user and password\n"
    );
    assert_eq!((code, stdout, stderr), (2, expected, String::new()));

    let (code, stdout, _) = run(&mut bellhop(&["config", "validate", "-o", "json", "--config", &path]));
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &answer["ok"], &answer["version"]), (2, &json!(false), &json!(1)));
    assert_eq!(
        answer["problems"][0],
        json!({
            "key": "worker.concurency", "value": null, "origin": path, "what": "is no setting of bellhop",
            "fix": "did you mean `worker.concurrency`?",
        })
    );
}

#[test]
fn run_refuses_before_it_opens_a_socket() {
    let (_folder, path) = file(BAD);
    // Taken: the listener would be the first thing to fail.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("server.listen={}", taken.local_addr().unwrap());

    let (code, stdout, stderr) = run(&mut bellhop(&["run", "--config", &path, "--set", &listen]));

    let expected = format!(
        "error: 2 problems in the configuration:\n  \
         worker.concurency ({path}): is no setting of bellhop; did you mean `worker.concurrency`?\n  \
         store.url = *** ({path}): must be a PostgreSQL URL: postgres://user:password@host:5432/database; \
         percent-encode special characters in user and password\n\
         hint: put all of them right, then start again\n"
    );
    assert_eq!((code, stdout, stderr), (2, String::new(), expected));
}

#[test]
fn a_taken_port_is_told_with_its_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (_folder, path) = file(GOOD);
    let listen = format!("server.listen={address}");

    let (code, stdout, stderr) = run(&mut bellhop(&["run", "--config", &path, "--set", &listen, "--log-level", "off"]));

    let expected = format!(
        "error: can not listen on {address} (server.listen): another process uses the port; stop it or choose another one"
    );
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.starts_with(&expected), "{stderr}");
}

#[test]
fn no_form_of_any_answer_holds_a_secret() {
    let (_folder, good) = file(GOOD);
    let (_folder, bad) = file(BAD);
    let (_folder, broken) = file("[store]\nurl = \"postgres://bellhop:hunter2@db\n");
    for path in [&good, &bad, &broken] {
        for arguments in [
            &["config", "show"][..],
            &["config", "show", "-o", "toml"],
            &["config", "show", "-o", "json"],
            &["config", "validate"],
            &["config", "validate", "-o", "json"],
        ] {
            let (_, stdout, stderr) = run(bellhop(arguments).env("BELLHOP_CONFIG", path));

            assert!(!stdout.contains("hunter2") && !stderr.contains("hunter2"), "{arguments:?} {stdout} {stderr}");
        }
    }
}

#[test]
fn show_says_what_is_in_effect_and_where_it_came_from() {
    let (_folder, path) = file(GOOD);
    let show = |form| {
        let mut command = bellhop(&["config", "show", "-c", &path, "-o", form, "--log-level", "debug"]);
        let command = command.env("BELLHOP__WORKER__CONCURRENCY", "4");
        let (code, stdout, stderr) = run(command);
        assert_eq!((code, stderr.as_str()), (0, ""));
        stdout
    };

    let json: Value = serde_json::from_str(&show("json")).unwrap();
    assert_eq!(json["values"]["worker"]["concurrency"], 4);
    assert_eq!(json["values"]["store"]["url"], "***");
    assert_eq!(json["origins"]["worker.concurrency"]["name"], "environment BELLHOP__WORKER__CONCURRENCY");
    assert_eq!(json["origins"]["log.level"]["name"], "--log-level");
    assert_eq!(json["origins"]["store.url"], json!({"layer": "file", "name": path}));
    assert_eq!(json["origins"]["worker.parking"], json!({"layer": "default", "name": "default"}));
    assert_eq!(json["built_in_rules"][0]["switch"], "events.skip_widget_updated");
    assert_eq!(json["computed"]["client_max_lease_seconds"], 1_260.0);
    assert_eq!(json["computed"]["scope"], "projects/my-project/subscriptions/chat-events");

    let table = show("table");
    let line = |key: &str| table.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap().to_owned();
    let columns = |key: &str| {
        line(key).split("  ").filter(|cell| !cell.is_empty()).map(|c| c.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(columns("worker.concurrency"), ["worker.concurrency", "4", "environment BELLHOP__WORKER__CONCURRENCY"]);
    assert_eq!(columns("drain_timeout_seconds"), ["drain_timeout_seconds", "305.0", "computed"]);
    assert!(table.contains("rule[0]") && table.contains("rule (built in)"));
}

#[test]
fn what_show_prints_as_toml_is_the_same_configuration() {
    let (_folder, path) = file(GOOD);
    let (_, shown, _) = run(&mut bellhop(&["config", "show", "-o", "toml", "-c", &path]));
    let filled = shown.replacen("url = \"***\"", "url = \"postgres://bellhop:hunter2@db/bellhop\"", 1);
    let (_folder, again) = file(&filled);

    let values = |path: &str| {
        let (code, stdout, stderr) = run(&mut bellhop(&["config", "show", "-o", "json", "-c", path]));
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str::<Value>(&stdout).unwrap()["values"].clone()
    };
    assert_eq!(values(&again), values(&path));
}

#[test]
fn errors_are_json_where_answers_are() {
    let (code, stdout, stderr) = run(&mut bellhop(&["config", "shwo", "--output=json"]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    let error = error_of(&stderr);
    assert_eq!((&error["code"], &error["message"]), (&"usage".into(), &"unrecognized subcommand 'shwo'".into()));

    let (code, stdout, stderr) = run(&mut bellhop(&["config", "show", "-o", "json", "-c", "/nowhere.toml"]));

    assert_eq!((code, stdout.as_str()), (2, ""));
    let error = error_of(&stderr);
    assert_eq!(error["code"], "configuration");
    assert_eq!(
        error["message"],
        "1 problem in the configuration:\n  /nowhere.toml (--config): can not be read: No such file or directory (os \
         error 2); check the path and its permissions"
    );
}
