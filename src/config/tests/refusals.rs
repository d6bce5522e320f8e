use super::*;

/// Asserts that `toml` over what is enough is refused with exactly these words.
fn refused(toml: &str, env: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(problems(&merged(toml), env, &[]), expected, "{toml} {env:?}");
}

/// Asserts that it would start, with exactly these warnings.
fn warned(toml: &str, env: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(warnings(&merged(toml), env), expected, "{toml} {env:?}");
}

/// `section.key = value` lines and rules over what is enough, as one file.
fn merged(lines: &str) -> String {
    let mut text = String::new();
    for (line, key) in [
        ("pubsub.project = \"my-project\"", "pubsub.project"),
        ("pubsub.subscription = \"chat-events\"", "pubsub.subscription"),
        ("store.url = \"postgres://bellhop@db/bellhop\"", "store.url"),
    ] {
        if !lines.contains(&format!("{key} =")) {
            text = format!("{text}{line}\n");
        }
    }
    format!("{text}{}", lines.replace("store.url = none\n", "").replace("pubsub.project = none\n", ""))
}

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
        &["BELLHOP_WORKER__PARKING: is not read; settings start with BELLHOP__ (two underscores)"],
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

#[test]
fn a_store_must_be_named_and_usable() {
    let in_kubernetes = [("KUBERNETES_SERVICE_HOST", "10.0.0.1")];
    refused(
        "store.url = none\n",
        &[],
        &["store.backend = \"auto\" (default): needs a URL: nobody said where claims are kept; set store.url (or \
         DATABASE_URL) for PostgreSQL, or store.backend = \"sqlite\" for one process"],
    );
    refused(
        "store.url = \"\"",
        &[],
        &[
            "store.url = \"\" (bellhop.toml): is given but empty; fill it, or leave it out and name another store.backend",
        ],
    );
    refused(
        "store.url = none\n",
        &[("DATABASE_URL", "")],
        &[
            "store.url = \"\" (environment DATABASE_URL): is given but empty; fill it, or leave it out and name another \
         store.backend",
        ],
    );
    refused(
        "store.url = none\nstore.backend = \"postgres\"",
        &[],
        &["store.url: is needed by store.backend \"postgres\"; set store.url, store.url_file or DATABASE_URL"],
    );
    refused(
        "store.url = none\nstore.backend = \"sqlite\"\nstore.replicas = 2",
        &[],
        &[
            "store.replicas = 2 (bellhop.toml): needs a store that processes share; sqlite serves one; use store.backend = \
         \"postgres\", or set it to 1",
        ],
    );
    refused(
        "store.url = none\nstore.backend = \"sqlite\"",
        &in_kubernetes,
        &[
            "store.backend = \"sqlite\" (bellhop.toml): \"sqlite\" serves one process, and Kubernetes may run two at once \
         (rollouts, too); use \"postgres\", or set store.single_process = true and never scale up",
        ],
    );
    refused(
        "store.url = none\nstore.backend = \"memory\"\n[[rule]]\non_unknown = \"quarantine\"",
        &[],
        &[
            "store.backend = \"memory\" (bellhop.toml): \"memory\" forgets what began: on_unknown = \"quarantine\" can not be \
         kept; use \"postgres\" or \"sqlite\", or on_unknown = \"rerun\" in all rules",
        ],
    );
    warned("store.url = none\nstore.backend = \"sqlite\"\nstore.single_process = true", &in_kubernetes, &[]);
    warned(
        "store.backend = \"sqlite\"",
        &[],
        &["store.url: is not used: store.backend is \"sqlite\"; leave one of them out"],
    );
    warned(
        "store.url = none\nstore.backend = \"memory\"",
        &[],
        &["store.backend: \"memory\" forgets everything when the process ends: events may be handled twice; for \
         development only"],
    );
    warned("store.replicas = 20", &in_kubernetes, &[]);
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    refused(
        "worker.concurrency = 20\npubsub.max_outstanding_messages = 10",
        &[],
        &[
            "worker.concurrency = 20 (bellhop.toml): is more than pubsub.max_outstanding_messages (10): handlers would wait \
         for ever; lower it, or set pubsub.max_outstanding_messages to 20 or more, or to 0",
        ],
    );
    refused(
        "worker.concurrency = 8\nworker.parking = 8\npubsub.max_outstanding_messages = 10",
        &[],
        &["worker.parking = 8 (bellhop.toml): and worker.concurrency (8) are together more than \
         pubsub.max_outstanding_messages (10); lower it, or raise pubsub.max_outstanding_messages, or set both to 0"],
    );
    refused(
        "worker.concurrency = 4\npubsub.streams = 8\npubsub.max_outstanding_messages = 10",
        &[],
        &[
            "pubsub.max_outstanding_messages = 10 (bellhop.toml): is divided over 8 streams, at least 2 each; set it to 16 or \
         more, or to 0",
        ],
    );
    refused(
        "retry.min_backoff = \"20m\"",
        &[],
        &["retry.min_backoff = \"20m\" (bellhop.toml): is longer than retry.max_backoff (10m); lower it, or raise \
         retry.max_backoff"],
    );
    refused(
        "worker.drain_timeout = \"2m\"\n[[rule]]\ntimeout = \"3m\"",
        &[],
        &[
            "worker.drain_timeout = \"2m\" (bellhop.toml): is shorter than the longest handler timeout (3m); use \"auto\", or \
         allow the cut with worker.drain_may_cut = true",
        ],
    );
    warned(
        "worker.drain_timeout = \"10s\"\nworker.drain_may_cut = true",
        &[],
        &[
            "worker.drain_timeout: is shorter than the longest handler timeout (1m); a drain cuts handlers that run longer",
        ],
    );
    warned(
        "worker.concurrency = 4\npubsub.max_outstanding_messages = 10",
        &[],
        &["pubsub.max_outstanding_messages: leaves only 6 places for waiting copies; set it to 0 to have it computed"],
    );
    warned(
        "claims.retention = \"4d\"\npubsub.lease_extension = \"10s\"",
        &[],
        &[
            "pubsub.lease_extension: is under 30s: a process that stalls for so long loses its leases, and events come \
         twice; ",
            "claims.retention: must be the message retention of subscription and topic (7 days unless changed) + 3 days; \
         below that, a late copy is put in quarantine as too old",
        ],
    );
}

#[test]
fn the_source_must_be_named_and_an_emulator_meant() {
    refused(
        "pubsub.project = none\n",
        &[],
        &["pubsub.project: is missing: give the project that holds the subscription"],
    );
    refused(
        "pubsub.subscription = \"projects/other/subscriptions/s\"",
        &[],
        &[
            "pubsub.project = \"my-project\" (bellhop.toml): is \"my-project\", but the subscription is in \"other\": give \
         one of them",
        ],
    );
    refused("pubsub.endpoint = \"ftp://x\"", &[], &[&problems(&merged("pubsub.endpoint = \"ftp://x\""), &[], &[])[0]]);
    refused(
        "",
        &[("PUBSUB_EMULATOR_HOST", "emulator:8085"), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")],
        &[
            "pubsub.endpoint = \"emulator:8085\" (environment PUBSUB_EMULATOR_HOST): PUBSUB_EMULATOR_HOST is set inside \
         Kubernetes: unset it, or set pubsub.allow_emulator = true",
        ],
    );
    refused(
        "reply.mode = \"chat\"",
        &[],
        &[
            "reply.mode = \"chat\" (bellhop.toml): is announced for a later version; this one knows only \"none\"; let the \
         handler post its answers itself",
        ],
    );
}

#[test]
fn a_handler_must_be_callable_and_know_who_calls() {
    for (toml, expected) in [
        ("handler.url = \"\"", "handler.url = \"\" (bellhop.toml): is not a URL: write http://host:port/path"),
        (
            "handler.url = \"ftp://localhost/\"",
            "handler.url = \"ftp://localhost/\" (bellhop.toml): must begin with http:// or https://",
        ),
        ("handler.kind = \"exec\"", "handler.command = []: must name a program"),
        ("handler.auth = \"bearer\"", "handler.bearer_token: is needed for handler.auth = \"bearer\""),
        (
            "handler.auth = \"bearer\"\nhandler.bearer_token = \"\"",
            "handler.bearer_token = \"\" (bellhop.toml): is given but empty; fill it, or leave it out",
        ),
        (
            "handler.signing_secret = \"\"",
            "handler.signing_secret = \"\" (bellhop.toml): is given but empty; fill it, or leave it out",
        ),
    ] {
        let told = problems(&merged(toml), &[], &[]);
        assert_eq!(told.iter().map(|text| text.replace(" (default)", "")).collect::<Vec<_>>(), [expected], "{toml}");
    }
    warned("handler.url = \"http://bot:9000/\"\nhandler.signing_secret = \"s\"", &[], &[]);
    warned("handler.url = \"http://bot:9000/\"\nhandler.unauthenticated = true", &[], &[]);
    warned("handler.kind = \"echo\"\nhandler.url = \"\"", &[], &[]);
}

#[test]
fn rules_that_can_not_apply_are_told() {
    warned(
        "[[rule]]\nmatch = { type = \"MESSAGE\" }\n[[rule]]\nmatch = { type = \"MESSAGE\", command = \"/restart\" }",
        &[],
        &["rule[1].match: can never apply: rule[0] comes first and takes all its events; move it up, or remove it"],
    );
    warned(
        "[[rule]]\nmatch = { space = [\"spaces/A*\", \"spaces/B\"] }\n[[rule]]\nmatch = { space = \"spaces/AB*\" }",
        &[],
        &["rule[1].match: can never apply: rule[0] comes first and takes all its events; move it up, or remove it"],
    );
    warned(
        "[[rule]]\nmatch = { type = \"MESSAGE\", command = \"/restart\" }\n[[rule]]\nmatch = { type = \"MESSAGE\" }",
        &[],
        &[],
    );
    warned("[[rule]]\nmatch = { space = \"spaces/AB\" }\n[[rule]]\nmatch = { space = \"spaces/A*\" }", &[], &[]);
    warned(
        "[[rule]]\nmatch = { type = \"MESAGE\", command = \"restart\", sender = \"ROBOT\", user = \"me\" }",
        &[],
        &[
            "rule[0].match.type: \"MESAGE\" is no event type bellhop knows; did you mean \"MESSAGE\"?",
            "rule[0].match.command: \"restart\" is neither a command's name with its slash nor its id; did you mean \
         \"/restart\"?",
            "rule[0].match.user: \"me\" can not match: names start with users/; write users/…",
            "rule[0].match.sender: \"ROBOT\" sends nothing; senders are \"HUMAN\" and \"BOT\"",
        ],
    );
    warned(
        "[[rule]]\naction = \"skip\"\nmatch = { type = \"CARD_*\" }\ntimeout = \"1m\"",
        &[],
        &[
            "rule[0].action: does not call the handler: timeout, on_unknown and max_failures say nothing here; leave them out",
        ],
    );
    refused(
        "[[rule]]\nmatch = { space = [] }",
        &[],
        &["rule[0].match.space = [] (bellhop.toml): matches nothing: it is empty; leave it out to match everything"],
    );
}
