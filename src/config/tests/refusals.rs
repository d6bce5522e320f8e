//! What is refused or warned about, word for word.

use super::*;

#[test]
fn everything_wrong_is_told_at_once() {
    let toml = "
pubsub.subscription = \"\"
worker.concurency = 4
worker.drain_timeout = \"10s\"
store.url = \"mysql://u:hunter2@db/x\"
claims.lease = 60
handler.url = \"http://handler:9000/events\"
log.level = \"loud\"
";
    let env = [("BELLHOP__RETRY__MAX_LOST", "many"), ("BELLHOP__SERVR__LISTEN", ":80")];

    refused(
        toml,
        &env,
        &[
            "BELLHOP__SERVR__LISTEN: is no setting of bellhop; did you mean [server]?",
            "worker.concurency (bellhop.toml): is no setting of bellhop; did you mean `worker.concurrency`?",
            "claims.lease = 60 (bellhop.toml): must be a duration from \"5s\" to \"10m\"",
            "retry.max_lost = \"many\" (environment BELLHOP__RETRY__MAX_LOST): must be a whole number from 1 to 1000",
            "pubsub.subscription = \"\" (bellhop.toml): is missing: give the id of the subscription to pull from",
            "worker.drain_timeout = \"10s\" (bellhop.toml): is shorter than the longest handler timeout (1m); \
             use \"auto\", or allow the cut with worker.drain_may_cut = true",
            "handler.url = \"http://handler:9000/events\" (bellhop.toml): is not on this machine: set \
             handler.signing_secret or handler.auth, or handler.unauthenticated = true",
            "store.url = *** (bellhop.toml): must be a PostgreSQL URL: postgres://user:password@host:5432/database; \
             percent-encode special characters in user and password",
            "log.level = \"loud\" (bellhop.toml): must be error, warn, info, debug, trace or off, also per target \
             (\"info,sqlx=warn\")",
        ],
    );
}

#[test]
fn a_number_that_no_type_holds_hides_nothing() {
    let toml = "
retry.max_failures = 99999999999999999999
worker.concurency = 4
pubsub.project = 99999999999999999999
pubsub.subscription = \"s\"
store.backend = \"memory\"
claims.lease = \"1s\"
";
    let number = "1e+20 (bellhop.toml): must be";

    refused(
        toml,
        &[],
        &[
            "worker.concurency (bellhop.toml): is no setting of bellhop; did you mean `worker.concurrency`?",
            &format!("pubsub.project = {number} a text in quotes"),
            &format!("retry.max_failures = {number} a whole number from 1 to 1000"),
            "claims.lease = \"1s\" (bellhop.toml): must be a duration from \"5s\" to \"10m\"",
        ],
    );
}

#[test]
fn unknown_keys_name_the_nearest_one() {
    for (toml, expected) in [
        (
            "wroker.parking = 3",
            "wroker (bellhop.toml): is no section of bellhop's configuration; did you mean [worker]?",
        ),
        (
            "handler.tiemout = \"1m\"",
            "handler.tiemout (bellhop.toml): is no setting of bellhop; did you mean `handler.timeout`?",
        ),
        (
            "worker.lease = \"1m\"",
            "worker.lease (bellhop.toml): is no setting of bellhop; did you mean `claims.lease`?",
        ),
        (
            "[[rule]]\nmatch = { tpye = \"MESSAGE\" }",
            "rule[0].match.tpye (bellhop.toml): is no setting of bellhop; did you mean `rule[].match.type`?",
        ),
        (
            "[[rules]]\ntimeout = \"1m\"",
            "rules (bellhop.toml): is no section of bellhop's configuration; did you mean [rule]?",
        ),
    ] {
        refused(toml, &[], &[expected]);
    }
    let unknown = [("BELLHOP__WORKER__PARKNG", "3"), ("BELLHOP__RULE__0__TIMEOUT", "1m")];
    let told = problems(ENOUGH, &unknown, &["worker.x=1"]);
    assert_eq!(
        told,
        [
            "BELLHOP__RULE__0__TIMEOUT: is no setting of bellhop; rules are given all together: \
             BELLHOP__RULE='[{\"match\": {…}, …}]'",
            "BELLHOP__WORKER__PARKNG: is no setting of bellhop; did you mean BELLHOP__WORKER__PARKING?",
            "worker.x (--set worker.x): is no setting of bellhop; known here: concurrency, parking, drain_timeout, \
             drain_may_cut",
        ]
    );
    warned(
        "",
        &[("BELLHOP_WORKER__PARKING", "3")],
        &[
            "BELLHOP_WORKER__PARKING: is not read; settings are written BELLHOP__SECTION__KEY, with two underscores each time",
        ],
    );
}

#[test]
fn wrong_types_say_what_is_wanted() {
    for (line, expected) in [
        ("pubsub.project = 5", "pubsub.project = 5 (bellhop.toml): must be a text in quotes"),
        ("worker.concurrency = 2.5", "worker.concurrency = 2.5 (bellhop.toml): must be a whole number from 1 to 1000"),
        (
            "worker.concurrency = \"2\"",
            "worker.concurrency = \"2\" (bellhop.toml): must be a whole number from 1 to 1000",
        ),
        (
            "retry.max_failures = 70000",
            "retry.max_failures = 70000 (bellhop.toml): must be a whole number from 1 to 1000",
        ),
        ("worker.drain_may_cut = \"yes\"", "worker.drain_may_cut = \"yes\" (bellhop.toml): must be true or false"),
        ("handler.command = \"./handler\"", "handler.command = \"./handler\" (bellhop.toml): must be a list"),
        (
            "store.backend = \"postgress\"",
            "store.backend = \"postgress\" (bellhop.toml): must be one of \"auto\", \"postgres\", \"sqlite\", \"memory\"",
        ),
        (
            "handler.on_unknown = \"retry\"",
            "handler.on_unknown = \"retry\" (bellhop.toml): must be \"rerun\" or \"quarantine\"",
        ),
        (
            "server.listen = \"8080\"",
            "server.listen = \"8080\" (bellhop.toml): must be an address and a port such as \"0.0.0.0:8080\"",
        ),
        ("worker = 5", "worker = 5 (bellhop.toml): must be a section of keys and values"),
        ("[[rule]]\nmatch = { type = 5 }", "rule[0].match.type = 5 (bellhop.toml): must be a text or a list of texts"),
        ("handler.bearer_token = 12345678", "handler.bearer_token = *** (bellhop.toml): must be a text in quotes"),
    ] {
        refused(line, &[], &[expected]);
    }
}

#[test]
fn every_number_is_held_to_its_range() {
    use crate::config::ranges::{RANGES, Range};
    for (key, range) in RANGES {
        let beyond = match range {
            Range::Count(..) => ["0".to_owned(), "1000000000".to_owned()],
            Range::CountOrZero(..) => ["-1".to_owned(), "1000000000".to_owned()],
            Range::Time(..) | Range::TimeOrAuto(..) => ["\"1ms\"".to_owned(), "\"20years\"".to_owned()],
            Range::Size(..) => ["\"1B\"".to_owned(), "\"1TiB\"".to_owned()],
        };
        for value in beyond {
            let line = key
                .split_once("[].")
                .map_or_else(|| format!("{key} = {value}"), |(list, key)| format!("[[{list}]]\n{key} = {value}\n"));
            let told = problems(&merged(&line), &[], &[]);
            let found =
                told.iter().any(|text| text.ends_with(&format!("must be {range}")) && text.contains("bellhop.toml"));
            assert!(found, "{line}: {told:?}");
        }
    }
}

#[test]
fn a_file_that_can_not_be_read_is_the_only_problem() {
    let at = |path: &str| {
        let sources = Sources { file: Some(path.into()), ..Sources::default() };
        Config::load(&sources).unwrap_err().problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };

    assert_eq!(
        at("/nowhere/bellhop.toml"),
        [
            "/nowhere/bellhop.toml (--config): can not be read: No such file or directory (os error 2); check the path and \
          its permissions"
        ]
    );
    assert_eq!(
        at("/nowhere/bellhop.json"),
        [
            "/nowhere/bellhop.json (--config): is neither TOML nor YAML by its name; end its name in .toml, .yaml or .yml"
        ]
    );
    let told = problems("[store]\nurl = \"hunter2\n", &[], &[]);
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("bellhop.toml (--config): TOML parse error at line 2, column"), "{told:?}");
    assert!(!told[0].contains("hunter2"), "{told:?}");
}

#[test]
fn a_secret_is_given_once_and_its_file_must_hold_it() {
    let (empty, missing) = (written("\n", ""), "/nowhere/url");
    let path = empty.path().display().to_string();

    refused(
        &format!("store.url_file = \"{path}\""),
        &[],
        &[&format!(
            "store.url_file = {path} (bellhop.toml): store.url is given too (bellhop.toml); give one of the two"
        )],
    );
    refused(
        &format!("store.url = none\nstore.url_file = \"{path}\""),
        &[],
        &[&format!("store.url_file = {path} (bellhop.toml): the file is empty; write the secret into it")],
    );
    refused(
        "store.url = none\n",
        &[("BELLHOP__STORE__URL_FILE", missing)],
        &[
            "store.url_file = /nowhere/url (environment BELLHOP__STORE__URL_FILE): the file can not be read: No such file or \
         directory (os error 2); check the path and its permissions",
        ],
    );
    refused(
        "handler.url = \"http://bot/\"\nhandler.signing_secret_file = \"/nowhere/s\"",
        &[],
        &[
            "handler.signing_secret_file = /nowhere/s (bellhop.toml): the file can not be read: No such file or directory \
         (os error 2); check the path and its permissions",
        ],
    );
}
