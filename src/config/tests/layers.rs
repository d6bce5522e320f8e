//! Which value holds, and where it came from.

use std::{path::PathBuf, time::Duration};

use super::{super::store::Backend, *};
use crate::config::Origin;

#[test]
fn later_layers_win_and_each_value_keeps_where_it_came_from() {
    let toml = format!("{ENOUGH}[worker]\nconcurrency = 2\nparking = 20\ndrain_timeout = \"2m\"\n");
    let env = [("BELLHOP__WORKER__PARKING", "30"), ("BELLHOP__WORKER__DRAIN_TIMEOUT", "3m")];

    let loaded = load(&toml, &env, &["worker.drain_timeout=4m"]).unwrap();

    assert_eq!((loaded.config.worker.concurrency, loaded.config.worker.parking), (2, 30));
    assert_eq!(loaded.config.computed().drain_timeout, Duration::from_secs(240));
    let origin = |key: &str| loaded.entries().into_iter().find(|entry| entry.key == key).unwrap().origin;
    assert_eq!(origin("worker.concurrency").layer(), "file");
    assert_eq!(origin("worker.parking"), Origin::Env("BELLHOP__WORKER__PARKING".to_owned()));
    assert_eq!(origin("worker.drain_timeout"), Origin::Flag("--set worker.drain_timeout".to_owned()));
    assert_eq!(origin("worker.drain_may_cut"), Origin::Default);
}

#[test]
fn yaml_says_the_same_as_toml() {
    let yaml = "
pubsub: {project: my-project, subscription: chat-events}
store: {url: 'postgres://bellhop@db/bellhop', path: }
rule:
  - match: {type: MESSAGE, command: [/restart, '7']}
    on_unknown: quarantine
    timeout: 5m
";
    let file = written(yaml, ".yaml");
    let sources = Sources { file: Some(file.path().to_path_buf()), ..Sources::default() };

    let from_yaml = Config::load(&sources).unwrap();

    let toml = format!(
        "{ENOUGH}[[rule]]\nmatch = {{type = \"MESSAGE\", command = [\"/restart\", \"7\"]}}\n\
         on_unknown = \"quarantine\"\ntimeout = \"5m\"\n"
    );
    assert_eq!(from_yaml.config, load(&toml, &[], &[]).unwrap().config);
}

#[test]
fn the_environment_names_the_file_unless_a_flag_does() {
    let (first, second) = (written(ENOUGH, ".toml"), written(&ENOUGH.replace("my-project", "other"), ".toml"));
    let path = first.path().display().to_string();
    let environment: Environment = [("BELLHOP_CONFIG", path.as_str())].into_iter().collect();
    let sources = Sources { environment, ..Sources::default() };
    assert_eq!(Config::load(&sources).unwrap().config.pubsub.project, "my-project");

    let sources = Sources { file: Some(second.path().to_path_buf()), ..sources };
    assert_eq!(Config::load(&sources).unwrap().config.pubsub.project, "other");
}

#[test]
fn lists_and_rules_can_come_from_the_environment() {
    let env = [
        ("BELLHOP__HANDLER__KIND", "exec"),
        ("BELLHOP__HANDLER__COMMAND", r#"["/bin/sh", "-c", "true"]"#),
        ("BELLHOP__HANDLER__ENV", "TZ"),
        ("BELLHOP__RULE", r#"[{"match": {"type": "MESSAGE"}, "timeout": "5m"}]"#),
        ("BELLHOP__EVENTS__SKIP_APP_HOME", "false"),
    ];

    let config = load(ENOUGH, &env, &[]).unwrap().config;

    assert_eq!(config.handler.command, ["/bin/sh", "-c", "true"]);
    assert_eq!(config.handler.env, ["TZ"]);
    assert_eq!(config.rule.len(), 1);
    assert!(!config.events.skip_app_home);
    assert_eq!(config.computed().client_max_lease, Duration::from_secs(2 * 300 + 60 + 600));
}

#[test]
fn secrets_are_read_from_files_without_their_line_end() {
    let file = written("postgres://bellhop:hunter2@db/bellhop\n", "");
    let path = file.path().display().to_string();
    let toml = "[pubsub]\nproject = \"my-project\"\nsubscription = \"chat-events\"\n";

    let loaded = load(toml, &[("BELLHOP__STORE__URL_FILE", &path)], &[]).unwrap();

    assert_eq!(loaded.config.store.url.expose(), "postgres://bellhop:hunter2@db/bellhop");
    let entry = loaded.entries().into_iter().find(|entry| entry.key == "store.url").unwrap();
    assert_eq!((entry.value, entry.origin), ("***".into(), Origin::SecretFile(path)));
}

#[test]
fn database_url_is_environment_and_the_setting_of_its_own_stands_above_it() {
    let env = [("DATABASE_URL", "postgres://a/b")];
    let loaded = load(ENOUGH, &env, &[]).unwrap();
    assert_eq!(loaded.config.store.url.expose(), "postgres://a/b");
    assert_eq!(loaded.config.store.backend(), Backend::Postgres);

    let env = [("DATABASE_URL", "postgres://a/b"), ("BELLHOP__STORE__URL", "postgres://c/d")];
    assert_eq!(load(ENOUGH, &env, &[]).unwrap().config.store.url.expose(), "postgres://c/d");
}

#[test]
fn the_emulator_variable_sets_the_endpoint_and_warns() {
    let loaded = load(ENOUGH, &[("PUBSUB_EMULATOR_HOST", "localhost:8085")], &[]).unwrap();

    assert_eq!(loaded.config.pubsub.endpoint, "http://localhost:8085");
    assert_eq!(loaded.origins["pubsub.endpoint"], Origin::Env("PUBSUB_EMULATOR_HOST".to_owned()));
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert_eq!(loaded.warnings[0].key, "pubsub.endpoint");
}

#[test]
fn the_demo_needs_nothing_and_takes_no_database_that_is_lying_around() {
    let env: Environment = [("DATABASE_URL", "postgres://prod/x")].into_iter().collect();
    let sources = Sources { environment: env, profile: Profile::Demo, ..Sources::default() };

    let loaded = Config::load(&sources).unwrap();

    assert_eq!(loaded.config.store.backend(), Backend::Sqlite);
    assert_eq!(loaded.warnings, []);
}

#[test]
fn the_demo_takes_from_the_environment_only_how_to_log() {
    let variables = [
        ("BELLHOP_CONFIG", "/nowhere/bellhop.toml"),
        ("BELLHOP__PUBSUB__SUBSCRIPTION", "projects/p/subscriptions/s"),
        ("BELLHOP__HANDLER__KIND", "http"),
        ("BELLHOP__SERVER__LISTEN", "0.0.0.0:8080"),
        ("BELLHOP__NO__SUCH_KEY", "1"),
        ("BELLHOP__LOG__LEVEL", "debug"),
        ("PUBSUB_EMULATOR_HOST", "localhost:8085"),
    ];
    let flags = vec![Flag::from_set("worker.concurrency=3").unwrap()];
    let sources =
        Sources { environment: variables.into_iter().collect(), flags, profile: Profile::Demo, ..Sources::default() };

    let loaded = Config::load(&sources).unwrap();

    let config = loaded.config;
    let name = config.pubsub.subscription_name().unwrap();
    assert_eq!(name, "projects/bellhop-demo/subscriptions/chat-events");
    assert_eq!((config.handler.kind, config.server.listen.port()), (crate::config::handler::Kind::Echo, 0));
    assert_eq!((&*config.log.level, config.worker.concurrency), ("debug", 3));
    assert_eq!(config.pubsub.endpoint, "http://localhost:8085");
}

#[test]
fn a_probe_only_needs_to_know_where_to_ask() {
    let loaded = load_as(Profile::Probe, "", &[("BELLHOP__SERVER__LISTEN", "127.0.0.1:9")], &[]).unwrap();

    assert_eq!(loaded.config.server.listen.port(), 9);
}

#[test]
fn what_is_not_computed_by_hand_follows_from_the_rest() {
    let toml = format!("{ENOUGH}max_connections = 7\n[worker]\nconcurrency = 40\n[claims]\nlease = \"2m\"\n");

    let loaded = load(&toml, &[], &[]).unwrap();
    let computed = loaded.config.computed();

    assert_eq!(loaded.config.store.postgres().max_connections, 7);
    assert_eq!((computed.max_outstanding_messages, computed.parking), (80, 40));
    assert_eq!(computed.scope, "projects/my-project/subscriptions/chat-events");
    assert_eq!(computed.drain_timeout, Duration::from_secs(65));
    assert_eq!(computed.client_max_lease, Duration::from_secs(2 * 60 + 120 + 600));
    assert_eq!((computed.claim_renewal, computed.claim_grace), (Duration::from_secs(30), Duration::from_secs(10)));
    assert_eq!(computed.store_client_timeout, Duration::from_secs(5));
    assert_eq!(loaded.config.store.path, PathBuf::from("bellhop.db"));
}

#[test]
fn parking_never_takes_the_places_of_handlers() {
    let toml = ENOUGH.replace("[store]", "max_outstanding_messages = 20\n[store]");

    let config = load(&toml, &[], &[]).unwrap().config;

    assert_eq!((config.computed().max_outstanding_messages, config.computed().parking), (20, 4));
    assert_eq!(config.worker().parking_places(), 4);
    let none_left = ENOUGH.replace("[store]", "max_outstanding_messages = 16\n[store]");
    assert_eq!(load(&none_left, &[], &[]).unwrap().config.worker().parking_places(), 1);
}
