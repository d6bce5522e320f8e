//! `bellhop inspect`: messages in files, and `--from-subscription` on the embedded server and on Google's emulator.

use std::{
    collections::BTreeSet,
    io,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use bellhop::{
    event::{self, RawEvent},
    pubsub_server::{
        PubsubServer,
        proto::{DeadLetterPolicy, PubsubMessage, Subscription},
    },
};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{PullRequest, subscriber_client::SubscriberClient};
use rustix::process::Signal;
use serde_json::Value;
use tokio::{net::TcpListener, task::spawn_blocking};
use tonic::transport::Channel;

use super::{bellhop, error_of, run};
use crate::integration::harness::{
    Broker,
    event::{Message, chat_message},
    eventually, ports,
    process::Process,
    wait::when,
};

const TOPIC: &str = "projects/p/topics/chat";
const SUBSCRIPTION: &str = "projects/p/subscriptions/chat";
/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn peek(server: &str, subscription: &str, arguments: &[&str]) -> Command {
    let mut command = bellhop(&["inspect", "--subscription", subscription]);
    command.args(arguments).env("PUBSUB_EMULATOR_HOST", server);
    command
}

async fn told(mut command: Command) -> (i32, String, String) {
    spawn_blocking(move || run(&mut command)).await.unwrap()
}

/// The embedded server with a subscription whose dead-letter policy counts attempts.
async fn embedded(messages: &[Message], exactly_once: bool) -> PubsubServer {
    let server = PubsubServer::start(([127, 0, 0, 1], 0).into()).await.unwrap();
    let admin = server.admin();
    let dead = "projects/p/topics/dead".to_owned();
    admin.create_topic(TOPIC).unwrap();
    admin.create_topic(&dead).unwrap();
    let policy = DeadLetterPolicy { dead_letter_topic: dead, max_delivery_attempts: 7 };
    let subscription = Subscription {
        name: SUBSCRIPTION.to_owned(),
        topic: TOPIC.to_owned(),
        dead_letter_policy: Some(policy),
        enable_exactly_once_delivery: exactly_once,
        ..Subscription::default()
    };
    admin.create_subscription(subscription).unwrap();
    let message = |message: &Message| PubsubMessage { data: message.data.clone(), ..PubsubMessage::default() };
    if !messages.is_empty() {
        admin.publish(TOPIC, messages.iter().map(message).collect()).unwrap();
    }
    server
}

/// The attempt of every message that can be delivered now, in order.
async fn attempts(server: &PubsubServer) -> Vec<i32> {
    let channel = Channel::from_shared(server.endpoint()).unwrap().connect().await.unwrap();
    let mut subscriber = SubscriberClient::new(channel);
    #[expect(deprecated, reason = "the only way to ask without waiting for a message")]
    let request = PullRequest { subscription: SUBSCRIPTION.to_owned(), return_immediately: true, max_messages: 100 };
    let received = subscriber.pull(request).await.unwrap().into_inner().received_messages;
    let mut attempts: Vec<_> = received.iter().map(|message| message.delivery_attempt).collect();
    attempts.sort_unstable();
    attempts
}

fn id_of(message: &Message) -> String {
    let raw = RawEvent { data: message.data.clone().into(), ..RawEvent::default() };
    event::decode(&Arc::new(raw)).id.to_string()
}

fn chats(count: usize) -> Vec<Message> {
    (0..count).map(|number| chat_message(&format!("private words {number}"))).collect()
}

/// What `inspect` says of samples, named by the start of their files.
fn told_of(samples: &[&str], arguments: &[&str]) -> (i32, String, String) {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/events")).unwrap();
    let files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    let named = |start: &&str| {
        let is_it = |file: &&std::path::PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with(start);
        files.iter().find(is_it).unwrap().clone()
    };
    run(bellhop(&["inspect"]).args(arguments).args(samples.iter().map(named)))
}

#[test]
fn why_two_messages_are_one_event_or_two_is_in_the_answer() {
    let transport = "message id, publish time (the transport sets it";
    for (samples, expected) in [
        (
            ["01", "02"],
            &["One event: 2 messages", "a copy, with the same payload; what differs is no part", transport][..],
        ),
        (["01", "03"], &["One event: 2 messages", "a copy; nothing differs"]),
        (["01", "04"], &[transport, "configCompleteRedirectUrl", "space.membershipCount", "eventTime (the same time"]),
        (
            ["01", "05"],
            &["Two events (MESSAGE)", "\nm  message name", "\ne  event time", "2026-05-04T09:15:52.731400Z"],
        ),
        (["01", "94"], &["One event", "wrapping: none / a JSON text in a text"]),
        (["01", "97"], &["One event", "wrapping: none / a byte order mark"]),
        (["23", "25"], &["Two events (CARD_CLICKED)", "\nu  user"]),
        (["23", "26"], &["Two events (CARD_CLICKED)", "\na  action", "\"approve\"", "\"decline\""]),
        (["30", "32"], &["\ng  dialog", "SUBMIT_DIALOG", "CANCEL_DIALOG", "\na  input name", "Kit Moreau"]),
        (["38", "39"], &["\nx  message id", "Nothing in the payloads tells these two apart", "(ix-transport)"]),
        (["48", "50"], &["parameter \"op\"", "parameter \"__action_method_name__\""]),
        (["57", "60"], &["One event", "wrapping: none / a structured CloudEvent", "attribute content-type"]),
        (["57", "61"], &["\nid  CloudEvent id", "MTc3Nzk3ODgwMDI2MDEyNw", "MTc3Nzk3ODg2MDAwMDAwMA"]),
        (["80", "81"], &["Two events (OPAQUE)", "\nx  message id", "\nd  payload", "66 bytes, sha256 "]),
    ] {
        let (code, stdout, stderr) = told_of(&samples, &[]);

        assert_eq!((code, stderr.as_str()), (0, ""));
        for part in expected {
            assert!(stdout.contains(part), "{samples:?} lack {part}: {stdout}");
        }
        for private in ["checkout", "Ana", "@example.com", "PLACEHOLDER", "TOKEN", "shuttle"] {
            assert!(!stdout.contains(private), "{samples:?}: {stdout}");
        }
    }
}

#[test]
fn many_messages_are_grouped_and_each_event_is_held_against_the_next_of_its_type() {
    let (code, stdout, _) = told_of(&["01", "23", "02", "05", "26", "25"], &[]);

    assert_eq!(code, 0);
    assert!(stdout.contains("\n6 messages, 5 events.\n"), "{stdout}");
    assert_eq!(stdout.matches("\nOne event: ").count(), 1, "{stdout}");
    assert_eq!(stdout.matches("\nTwo events (MESSAGE)").count(), 1, "{stdout}");
    assert_eq!(stdout.matches("\nTwo events (CARD_CLICKED)").count(), 2, "{stdout}");
    assert!(stdout.ends_with("\nEvents of different types are never one event.\n"), "{stdout}");
}

#[test]
fn a_file_that_does_not_exist_is_exit_3_and_the_others_are_shown() {
    let missing = "/nowhere/message.json";

    let (code, stdout, stderr) = told_of(&["01"], &[missing]);
    assert_eq!((code, stdout.lines().count()), (3, 2), "{stdout}");
    assert!(stderr.starts_with("error: /nowhere/message.json: can not be read: "), "{stderr}");

    let (code, stdout, stderr) = told_of(&["01"], &["-o", "json", missing]);
    let error = error_of(&stderr);
    assert_eq!((code, stdout.lines().count(), error["code"].as_str()), (3, 1, Some("not_found")));
    assert!(error["message"].as_str().unwrap().starts_with(missing), "{error}");

    let (code, _, stderr) = told_of(&["corpus.tsv"], &["-o", "json"]);
    let first: Value = serde_json::from_str(stderr.lines().next().unwrap()).unwrap();
    assert_eq!((code, first["error"]["code"].as_str()), (1, Some("not_a_message")), "{stderr}");
}

#[test]
fn files_are_judged_by_the_configuration_that_is_named() {
    let fate = |arguments: &[&str]| {
        let (code, stdout, stderr) = told_of(&["38"], &[&["-o", "json"], arguments].concat());
        assert_eq!((code, stderr.as_str()), (0, ""));
        serde_json::from_str::<Value>(&stdout).unwrap()["fate"].as_str().unwrap().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bellhop.toml");
    std::fs::write(&file, "[[rule]]\nmatch = { type = \"APP_HOME\" }\naction = \"quarantine\"\n").unwrap();

    assert_eq!(fate(&[]), "skipped");
    assert_eq!(fate(&["--set", "events.skip_app_home=false"]), "handled");
    assert_eq!(fate(&["--config", file.to_str().unwrap()]), "quarantined");

    let (code, stdout, stderr) = told_of(&["38"], &["--set", "events.skip_app_hom=false"]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
}

#[test]
fn of_collisions_it_is_said_what_becomes_of_them() {
    let (_, stdout, _) = told_of(&["38", "39"], &["--collisions"]);
    assert!(stdout.contains("two events, both are skipped by a built-in rule (events.skip_app_home)"), "{stdout}");

    let (_, stdout, _) = told_of(&["38", "39"], &["--collisions", "-o", "json"]);
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&told["collision"], &told["fates"]), (&"split".into(), &serde_json::json!(["skipped", "skipped"])));
}

#[tokio::test]
async fn what_is_read_goes_back_and_nothing_else_is_touched() {
    for exactly_once in [false, true] {
        let messages = chats(5);
        let server = embedded(&messages, exactly_once).await;
        let address = server.address().to_string();

        let (code, stdout, stderr) =
            told(peek(&address, SUBSCRIPTION, &["--from-subscription", "2", "-o", "tsv"])).await;

        assert_eq!(code, 0, "{stderr}");
        let shown: BTreeSet<_> = stdout.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned()).collect();
        assert_eq!(shown, messages[..2].iter().map(id_of).collect());
        assert!(stderr.starts_with(&format!("Read 2 messages of {SUBSCRIPTION}.\n")), "{stderr}");
        assert!(stderr.contains("Gave 2 messages back, and nothing else.") && stderr.contains("after 7 "), "{stderr}");
        assert_eq!(stderr.lines().count(), 2, "{stderr}");
        let admin = server.admin();
        assert_eq!((admin.deliveries(SUBSCRIPTION), admin.counts(SUBSCRIPTION).unwrap().ready), (Some(2), 5));
        assert_eq!(attempts(&server).await, [1, 1, 1, 2, 2]);
        server.stop().await;
    }
}

#[tokio::test]
async fn fewer_than_wanted_are_shown_once_nothing_new_comes() {
    let message = chat_message("private words");
    let server = embedded(&[message.clone(), message], false).await;
    let address = server.address().to_string();
    let wanted =
        |form: &'static str| peek(&address, SUBSCRIPTION, &["--from-subscription", "9", "--wait", "1s", "-o", form]);

    let (code, table, stderr) = told(wanted("table")).await;
    assert_eq!(code, 0, "{stderr}");
    assert!(table.starts_with("MESSAGE") && table.contains("One event"), "{table}");
    assert!(stderr.starts_with("Read 2 messages"), "{stderr}");

    let (_, json, stderr) = told(wanted("json")).await;
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((json.lines().count(), &first["file"]), (2, &first["message_id"]));
    assert!(![&table, &json, &stderr].iter().any(|text| text.contains("private words")));
    // The key is the one that `run` would claim: its scope is the subscription.
    let (_, scoped, _) = told({
        let mut command = wanted("json");
        command.args(["--scope", SUBSCRIPTION]);
        command
    })
    .await;
    let scoped: Value = serde_json::from_str(scoped.lines().next().unwrap()).unwrap();
    assert_eq!(scoped["key"], first["key"]);
    assert_eq!(attempts(&server).await, [4, 4]);
}

#[tokio::test]
async fn an_empty_subscription_is_no_error() {
    let server = embedded(&[], false).await;
    let address = server.address().to_string();

    let wanted = ["--from-subscription", "3", "--wait", "200ms"];
    let (code, stdout, stderr) = told(peek(&address, SUBSCRIPTION, &wanted)).await;

    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    assert_eq!(stderr, format!("No message of {SUBSCRIPTION} was read.\n"));
}

#[tokio::test]
async fn a_signal_ends_the_look_and_what_was_read_goes_back() {
    let server = embedded(&chats(1), false).await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command =
        peek(&server.address().to_string(), SUBSCRIPTION, &["--from-subscription", "2", "--wait", "10m", "-o", "tsv"]);
    let mut process = Process::spawn("bellhop inspect", &mut command, &log);
    let counts = || server.admin().counts(SUBSCRIPTION).unwrap();
    eventually("the message to be read", PATIENCE, async || when(counts().leased == 1)).await;

    process.signal(Signal::INT);

    assert_eq!(process.exit_code(PATIENCE).await, 130, "{}", process.log());
    assert!(process.log().contains("Gave 1 message back"), "{}", process.log());
    assert_eq!((counts().ready, counts().leased), (1, 0));
}

#[tokio::test]
async fn a_reader_of_the_answer_that_goes_away_keeps_nothing() {
    let server = embedded(&chats(2), false).await;
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut command = peek(&server.address().to_string(), SUBSCRIPTION, &["--from-subscription", "2"]);
    command.stdout(writer).stderr(Stdio::piped());

    let output = spawn_blocking(move || command.output().unwrap()).await.unwrap();

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(server.admin().counts(SUBSCRIPTION).unwrap().ready, 2);
}

#[tokio::test]
async fn a_server_that_keeps_no_limit_is_told_of_and_gets_all_of_it_back() {
    let subscription = Broker::emulator().subscription().await;
    let messages = chats(300);
    subscription.publish(&messages).await;
    let broker = Broker::emulator();

    let wanted = ["--from-subscription", "3", "-o", "tsv"];
    let (code, stdout, stderr) = told(peek(broker.address(), &subscription.name, &wanted)).await;

    assert_eq!((code, stdout.lines().count()), (0, 3), "{stderr}");
    // How many is a matter of speed.
    assert!(stderr.contains("beyond that") && stderr.contains("here is none"), "{stderr}");
    let left = subscription.leftovers().await.into_iter().filter_map(|left| left.message);
    let left: BTreeSet<_> = left.map(|left| id_of(&Message::raw(left.data))).collect();
    assert_eq!(left, messages.iter().map(id_of).collect());
}

#[tokio::test]
async fn what_is_not_there_has_exit_codes_of_its_own() {
    let server = embedded(&[], false).await;
    let embedded = server.address().to_string();
    let google = Broker::emulator();
    let nobody = format!("127.0.0.1:{}", ports::free());
    // Takes connections and says nothing.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute = mute.local_addr().unwrap().to_string();
    let other = "projects/p/subscriptions/other";

    for (host, subscription, expected) in [
        (embedded.as_str(), other, (3, "not_found")),
        (google.address(), other, (3, "not_found")),
        (&nobody, SUBSCRIPTION, (6, "unreachable")),
        (&mute, SUBSCRIPTION, (6, "unreachable")),
        (&embedded, "no/name", (2, "usage")),
        // Without a project.
        (&embedded, "chat", (2, "usage")),
    ] {
        let (code, stdout, stderr) = told(peek(host, subscription, &["--from-subscription", "1", "-o", "json"])).await;

        let error = error_of(&stderr);
        assert_eq!(((code, error["code"].as_str().unwrap()), stdout.as_str()), (expected, ""), "{error}");
    }
}

#[tokio::test]
async fn a_full_name_on_the_command_line_beats_the_configured_project() {
    let server = embedded(&chats(1), false).await;
    let mut command = peek(&server.address().to_string(), SUBSCRIPTION, &["--from-subscription", "1"]);
    command.env("BELLHOP__PUBSUB__PROJECT", "elsewhere").env("BELLHOP__PUBSUB__SUBSCRIPTION", "other");

    let (code, _, stderr) = told(command).await;

    assert_eq!(code, 0, "{stderr}");
}
