//! `bellhop inspect`: what bellhop makes of messages, in files or on a subscription.

mod collisions;
mod explain;
mod fate;
mod live;
mod report;

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::ValueEnum;

use self::{collisions::Collisions, fate::Fates, report::Report};
use super::{Exit, Failure, Output, Settings, Signals};
use crate::{
    config::{Config, Profile},
    event::{self, Event, sample},
};

/// What to decode, and how to show it.
#[derive(Debug, clap::Args)]
#[command(after_help = "A file holds one message, or one per line (JSON Lines):\n  \
    {\"attributes\": {}, \"data\": <JSON, or text>, \"messageId\": \"…\", \"publishTime\": \"…\", \"orderingKey\": \"…\"}\n\
    `dataBase64` instead of `data` holds bytes that are not UTF-8. The table says why messages are one event or \
    several: which parts of their ids differ, with the values behind digests, and of copies what does not count; of more \
    than two events each is held against the next of its type. Texts, names and addresses are told by length and \
    digest; parameters and form inputs are shown. BASIS says what an id rests on; it and the letters of the fields are \
    explained in docs/EVENTS.md.\n\n\
    FATE is what becomes of the messages where they come in this order and none was seen before: by the built-in rules, \
    or with --config or --set by the rules of the configuration. An event that is older than claims.retention allows \
    goes to quarantine instead.\n\n\
    A file that does not exist ends it with exit code 3, one that can not be read or holds no message with 1; \
    everything else is shown all the same. With -o json each such problem is a JSON object a line on stderr.\n\n\
    With --from-subscription each message that is read costs a delivery attempt, which counts towards a dead-letter \
    policy; then it is given back. Other subscribers get it a little later.")]
pub(super) struct Args {
    /// Files in the sample-message format; - reads stdin
    #[arg(required_unless_present = "from_subscription", conflicts_with = "from_subscription", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Peek at up to N messages of the configured subscription, and give them back
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    from_subscription: Option<u16>,
    /// Peek at this subscription (pubsub.subscription): an id, or projects/PROJECT/subscriptions/ID
    #[arg(long, value_name = "NAME", requires = "from_subscription", conflicts_with = "files")]
    subscription: Option<String>,
    /// Where Pub/Sub is (pubsub.endpoint); PUBSUB_EMULATOR_HOST names an emulator
    #[arg(long, value_name = "URL", requires = "from_subscription", conflicts_with = "files")]
    endpoint: Option<String>,
    /// Stop peeking when nothing new came for so long, at most 10m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = wait, requires = "from_subscription", conflicts_with = "files")]
    wait: Duration,
    /// Form of the answer; tsv is file or message, id, basis
    #[arg(long, short, value_enum, default_value = "table")]
    output: Form,
    /// What the claim keys belong to: `claims.scope`, by default the full subscription name
    #[arg(long, env = "BELLHOP__CLAIMS__SCOPE", default_value = "")]
    scope: String,
    /// Report only messages with one id and different fingerprints, or with one fingerprint and different ids
    #[arg(long)]
    collisions: bool,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Table,
    /// One JSON object a line, with everything.
    Json,
    /// `file`, `id`, `basis`.
    Tsv,
}

impl Args {
    /// The form errors take.
    pub(super) const fn output(&self) -> Output {
        match self.output {
            Form::Json => Output::Json,
            Form::Table | Form::Tsv => Output::Table,
        }
    }

    /// The name of a file or message as the answer has it. JSON escapes what is in it by itself; in a table or a row
    /// nothing may look like another line or steer a terminal.
    fn label(&self, name: &str) -> String {
        if self.output == Form::Json { name.to_owned() } else { event::plain(name) }
    }
}

fn wait(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(wait) if (Duration::from_millis(100)..=Duration::from_secs(600)).contains(&wait) => Ok(wait),
        _ => Err("give 100ms to 10m".into()),
    }
}

/// Exit 0: all were read. 1: some could not be; stderr says which. 3: a file, or the subscription, does not exist. 6:
/// no server.
pub(super) async fn run(args: Args, settings: Settings, signals: Signals) -> anyhow::Result<Exit> {
    let (mut out, mut err) = (io::BufWriter::new(io::stdout()), io::stderr());
    if let Some(most) = args.from_subscription {
        return live::run(&args, most.into(), settings, signals, &mut out, &mut err).await;
    }
    // What the process was started with says how files are judged only where the command line asks for it.
    let asked = settings.config.is_some() || !settings.set.is_empty();
    let config = if asked { settings.load(Profile::Probe)?.config } else { Config::default() };
    let exit = inspect(&args, &config, &mut io::stdin().lock(), &mut out, &mut err)?;
    out.flush()?;
    Ok(exit)
}

/// Where decoded messages go.
trait Sink {
    /// Takes one; `label` says where it came from.
    fn take(&mut self, label: &str, event: &Event, out: &mut dyn Write) -> io::Result<()>;
    /// Nothing more comes.
    fn finish(self: Box<Self>, out: &mut dyn Write) -> io::Result<()>;
}

/// What the answer is made by; `origin` is the heading over where messages come from.
fn sink<'a>(args: &Args, origin: &str, scope: &'a str, fates: Fates) -> Box<dyn Sink + 'a> {
    if args.collisions {
        Box::new(Collisions::new(args.output, fates))
    } else {
        Box::new(Report::new(args.output, origin, scope, fates))
    }
}

fn inspect(
    args: &Args,
    config: &Config,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let scope = if args.scope.is_empty() { &config.claims.scope } else { &args.scope };
    let mut sink = sink(args, "FILE", scope, Fates::new(config));
    let mut exit = Exit::Ok;
    let mut problem = |failure: &Failure| {
        // What does not exist says more than what can not be read.
        exit = if exit == Exit::NotFound { exit } else { failure.exit };
        writeln!(err, "{}", failure.text(args.output()))
    };
    for file in &args.files {
        let name = args.label(&file.display().to_string());
        let text = match read(file, stdin) {
            Ok(text) => text,
            Err(error) => {
                problem(&unread(&name, &error))?;
                continue;
            }
        };
        let messages = sample::parse_all(&text);
        drop(text);
        for (line, message) in messages {
            let label = if line == 0 { name.clone() } else { format!("{name}:{line}") };
            match message {
                Ok(raw) => sink.take(&label, &event::decode(&Arc::new(raw)), out)?,
                Err(error) => {
                    let message = format!("{label}: {:#}", anyhow::Error::from(error));
                    problem(&Failure::new(Exit::Failed, "not_a_message", message))?;
                }
            }
        }
    }
    sink.finish(out)?;
    Ok(exit)
}

fn unread(name: &str, error: &io::Error) -> Failure {
    let message = format!("{name}: can not be read: {error}");
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(Exit::NotFound, "not_found", message),
        _ => Failure::new(Exit::Failed, "failed", message),
    }
}

fn read(file: &Path, stdin: &mut dyn Read) -> io::Result<Vec<u8>> {
    if file.as_os_str() != "-" {
        return fs::read(file);
    }
    let mut text = Vec::new();
    stdin.read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches, error::ErrorKind};
    use serde_json::Value;

    use super::*;
    use crate::rule::{Action, Rule};

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/events");

    fn args(arguments: &[&str]) -> Result<Args, clap::Error> {
        let command = Args::augment_args(clap::Command::new("inspect").no_binary_name(true));
        Args::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    fn inspect_with(arguments: &[&str], stdin: &str) -> (Exit, String, String) {
        inspect_by(&Config::default(), arguments, stdin)
    }

    fn inspect_by(config: &Config, arguments: &[&str], stdin: &str) -> (Exit, String, String) {
        let args = args(arguments).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = inspect(&args, config, &mut stdin.as_bytes(), &mut out, &mut err).unwrap();
        (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn fixture(name: &str) -> String {
        format!("{FIXTURES}/{name}.json")
    }

    #[test]
    fn messages_come_from_files_or_from_a_subscription() {
        let told = |line: &str| args(&line.split_whitespace().collect::<Vec<_>>()).map_err(|error| error.kind());

        let peek = told("--from-subscription 5 --subscription s --wait 2s --collisions -o json").unwrap();
        assert_eq!((peek.from_subscription, peek.wait), (Some(5), Duration::from_secs(2)));
        assert_eq!(told("--from-subscription 1").unwrap().wait, Duration::from_secs(10));
        assert!(told("a b").unwrap().from_subscription.is_none());

        for line in ["", "--subscription s", "--wait 1s"] {
            assert_eq!(told(line).unwrap_err(), ErrorKind::MissingRequiredArgument, "{line}");
        }
        for line in ["a --from-subscription 1", "a --subscription s", "a --wait 1s", "a --endpoint localhost:1"] {
            assert_eq!(told(line).unwrap_err(), ErrorKind::ArgumentConflict, "{line}");
        }
        for line in ["0", "1001", "x", "1 --wait 0s", "1 --wait 11m", "1 --wait 5"] {
            let error = told(&format!("--from-subscription {line}")).unwrap_err();
            assert_eq!(error, ErrorKind::ValueValidation, "{line}");
        }
    }

    #[test]
    fn tsv_prints_the_golden_ids() {
        let golden = std::fs::read_to_string(format!("{FIXTURES}/expected-ids.tsv")).unwrap();
        let golden: Vec<String> = golden.lines().skip(1).map(|line| format!("{FIXTURES}/{line}")).collect();
        let files: Vec<&str> = golden.iter().filter_map(|line| line.split('\t').next()).collect();

        let (exit, out, err) = inspect_with(&[&["-o", "tsv"], &files[..]].concat(), "");

        assert_eq!((exit, err.as_str()), (Exit::Ok, ""));
        assert_eq!(out.lines().collect::<Vec<_>>(), golden);
    }

    #[test]
    fn json_carries_everything_an_id_is_made_of() {
        let (_, out, _) = inspect_with(&["-o", "json", "--scope", "s", &fixture("11-classic-slash-command")], "");

        let told: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(told["id"], "bh1-ix-03bd2a5dd14219618f1ec604ac78ea95");
        assert_eq!(told["basis"], "ix-time");
        assert_eq!(told["type"], "MESSAGE");
        assert_eq!(told["space"], told["fields"]["s"]);
        assert_eq!(told["user"], "users/100000000000000000101");
        assert_eq!(told["command"], serde_json::json!({"kind": "SLASH_COMMAND", "id": "3", "name": "/checkin"}));
        assert_eq!(told["time"], "2026-05-04T11:00:00.100Z");
        assert_eq!(told["fields"]["c"], "SLASH_COMMAND/3");
        assert_eq!(told["fields"]["g"], Value::Null);
        assert_eq!(told["fields"].as_object().unwrap().len(), 13);
        assert_eq!(told["fingerprint"].as_str().unwrap().len(), 34);
        assert!(told["key"].as_str().unwrap().starts_with(&format!("{:012x}", 1_777_892_400_100_u64)), "{told}");
    }

    #[test]
    fn stdin_and_json_lines_are_read_and_each_line_is_named() {
        let lines = "{\"data\":\"a\"}\n{\"data\":\"b\"}\n";

        let (exit, out, _) = inspect_with(&["-o", "tsv", "-"], lines);

        let labels: Vec<_> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!((exit, labels), (Exit::Ok, vec!["-:1", "-:2"]));
    }

    #[test]
    fn every_bad_file_is_named_and_the_good_ones_are_shown() {
        let good = fixture("01-classic-message-dm");
        let (exit, out, err) =
            inspect_with(&["-o", "tsv", "/nowhere/a", &good, "-"], "{\"data\":1}\n{\"dato\":2}\n{]\n");

        assert_eq!(exit, Exit::NotFound);
        assert_eq!(out.lines().count(), 2);
        let starts: Vec<_> = err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
        assert_eq!(starts, ["/nowhere/a", "-:2", "-:3"]);
        assert!(err.contains("unknown field `dato`"), "{err}");
    }

    #[test]
    fn problems_are_a_json_object_a_line_where_json_is_wanted() {
        let (exit, out, err) = inspect_with(&["-o", "json", "/", "-"], "{\"data\":1}\n{\"dato\":2}\n");

        let told: Vec<Value> = err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((exit, out.lines().count(), told.len()), (Exit::Failed, 1, 2));
        assert_eq!((&told[0]["error"]["code"], &told[1]["error"]["code"]), (&"failed".into(), &"not_a_message".into()));
        assert!(told[1]["error"]["message"].as_str().unwrap().starts_with("-:2: "), "{err}");
    }

    #[test]
    fn the_table_says_why_two_messages_merge_or_not() {
        let [one, copy, other] =
            ["01-classic-message-dm", "04-classic-message-dm-reserialised", "05-classic-message-dm-same-text"]
                .map(fixture);

        let (_, merged, _) = inspect_with(&[&one, &copy], "");
        let (_, split, _) = inspect_with(&[&one, &other], "");

        assert!(merged.contains("One event: 2 messages"), "{merged}");
        assert!(
            merged.contains("user.displayName (may change") && merged.contains("eventTime (the same time"),
            "{merged}"
        );
        assert!(split.contains("Two events (MESSAGE)"), "{split}");
        assert!(split.contains("m  message name") && split.contains("e  event time"), "{split}");
        assert!(!split.contains("s  space"), "{split}");
        let (_, single, _) = inspect_with(&[&one], "");
        assert_eq!(single.lines().count(), 2, "{single}");
    }

    #[test]
    fn json_names_the_first_of_the_copies_and_what_differs() {
        let files = ["23-classic-card-click", "57-ce-message-created", "60-ce-message-created-structured"].map(fixture);

        let (_, out, _) = inspect_with(&["-o", "json", &files[0], &files[1], &files[2]], "");

        let told: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&told[0]["same_id_as"], &told[0]["differs"]), (&Value::Null, &Value::Null));
        let action = serde_json::json!({"field": "a", "name": "action", "value": "\"approve\""});
        assert_eq!(told[0]["behind"][0], action);
        assert_eq!(told[2]["same_id_as"], files[1].as_str());
        let written = serde_json::json!({"name": "wrapping: none / a structured CloudEvent", "why": "written"});
        assert!(told[2]["differs"].as_array().unwrap().contains(&written), "{out}");
    }

    #[test]
    fn what_is_beyond_the_bound_is_listed_and_not_compared() {
        let lines: String = (0..1_002).map(|n| format!("{{\"data\":\"x\",\"messageId\":\"{n}\"}}\n")).collect();

        let (_, out, _) = inspect_with(&["-"], &format!("{lines}{{\"data\":\"x\",\"messageId\":\"1001\"}}\n"));

        assert!(out.contains("1003 messages, 1002 events") && out.contains("\n2 events not compared"), "{out}");
        assert!(out.contains("  -:1003: not compared\n"), "{out}");

        let (_, out, _) = inspect_with(&["-"], &"{\"data\":\"x\"}\n".repeat(150));
        assert!(out.contains("One event: 150 messages") && out.contains("\n  and 48 more\n"), "{out}");
    }

    #[test]
    fn collisions_say_what_becomes_of_the_two() {
        let collisions = |from: &str, to: &str, types: &str| {
            let text = std::fs::read_to_string(fixture("38-classic-app-home")).unwrap().replace('\n', "");
            let one = text.replace("APP_HOME", types);
            inspect_with(&["--collisions", "-"], &format!("{one}\n{}\n", one.replace(from, to))).1
        };
        let id = "20755182570293003";

        let skipped = collisions(id, "7", "APP_HOME");
        assert!(
            skipped.contains("two events, both are skipped by a built-in rule (events.skip_app_home)\n"),
            "{skipped}"
        );
        let handled = collisions(id, "7", "SUBMIT_FORM");
        assert!(handled.contains("two events, both are handled\n"), "{handled}");
        let mismatch = collisions("\"user\": {", "\"more\": 1, \"user\": {", "APP_HOME");
        assert!(mismatch.contains("different fingerprints: both are skipped by a built-in rule"), "{mismatch}");
    }

    #[test]
    fn where_only_the_message_id_differs_it_is_said_what_else_does_and_does_not_count() {
        let text = std::fs::read_to_string(fixture("38-classic-app-home")).unwrap();
        let mut sample: Value = serde_json::from_str(&text).unwrap();
        let mut told = |message_id: &str, foo: bool| {
            sample["messageId"] = message_id.into();
            if foo {
                sample["data"]["space"]["foo"] = 1.into();
            }
            inspect_with(&[&fixture("38-classic-app-home"), "-"], &sample.to_string()).1
        };

        let same = told("8", false);
        assert!(same.contains("\nNothing in the payloads tells these two apart.\n"), "{same}");
        let unknown = told("", false);
        assert!(unknown.contains("(no message id; payload of "), "{unknown}");
        assert!(unknown.contains(" One of them has no message id.\n"), "{unknown}");
        let other = told("8", true);
        assert!(!other.contains("Nothing in the payloads"), "{other}");
        let names =
            "No part of the id but the message id differs. The payloads differ where it does not count: space.foo.";
        assert!(other.contains(names), "{other}");

        let anonymous = "{\"data\":{\"type\":\"APP_HOME\"}}\n{\"data\":{\"type\":\"APP_HOME\",\"a\":1}}\n";
        let (_, out, _) = inspect_with(&["-"], anonymous);
        assert!(out.contains("\nNeither has a message id, so the payload stands in for it: "), "{out}");
        assert!(!out.contains("the transport's"), "{out}");
    }

    #[test]
    fn why_messages_are_no_events_is_listed() {
        let lines = "{\"data\":{\"a\":\"private\"}}\n{\"data\":\"private\"}\n";

        let (_, out, _) = inspect_with(&["-"], lines);
        let listed = "\nNo Chat events (OPAQUE):\n  -:1: a JSON object without type\n  -:2: not JSON: expected value at line 1 column 1\n";
        assert!(out.contains(listed) && !out.contains("private"), "{out}");

        let (_, out, _) = inspect_with(&["-o", "json", "-", &fixture("01-classic-message-dm")], "{\"data\":[]}");
        let told: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            (&told[0]["no_event"], &told[1]["no_event"]),
            (&"JSON, but an array and no object".into(), &Value::Null)
        );

        let (_, out, _) = inspect_with(&["-"], &"{\"data\":\"x\"}\n".repeat(23));
        assert!(out.contains("\n  -:20: not JSON") && out.contains("\n  and 3 more\n"), "{out}");
        assert!(!out.contains("\n  -:21: not JSON"), "{out}");
    }

    /// Copies of one CloudEvent about a message: equal ids, and what each line changes.
    fn created(changes: &[&[(&str, &str)]]) -> String {
        let text = std::fs::read_to_string(fixture("57-ce-message-created")).unwrap();
        let mut sample: Value = serde_json::from_str(&text).unwrap();
        sample["data"]["message"]["sender"]["type"] = "HUMAN".into();
        let line = |changes: &&[(&str, &str)]| {
            let mut sample = sample.clone();
            for (pointer, value) in *changes {
                *sample.pointer_mut(pointer).unwrap() = (*value).into();
            }
            format!("{sample}\n")
        };
        changes.iter().map(line).collect()
    }

    const BOT: (&str, &str) = ("/data/message/sender/type", "BOT");
    const OTHER: (&str, &str) = ("/data/message/text", "other words");

    #[test]
    fn each_message_of_an_id_meets_its_own_rule_before_the_claim() {
        let lines = created(&[&[BOT], &[], &[OTHER], &[], &[BOT]]);

        let (_, out, _) = inspect_with(&["-o", "json", "-"], &lines);
        let told: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let fates: Vec<_> = told.iter().map(|told| told["fate"].as_str().unwrap()).collect();
        assert_eq!(fates, ["skipped", "handled", "mismatch", "copy", "skipped"]);
        let against: Vec<_> = told.iter().map(|told| told["same_id_as"].as_str()).collect();
        assert_eq!(against, [None, Some("-:1"), Some("-:2"), Some("-:2"), Some("-:2")]);

        let (_, table, _) = inspect_with(&["-"], &lines);
        for expected in [
            "\nOne id, but different content: 5 messages have the id ",
            "A message that is skipped makes no claim and leaves the id free.\n",
            "\n  -:1: the first, skipped by a built-in rule (events.skip_bot_messages)\n",
            "\n  -:2: one id, but different content; handled, as the first that claims the id\n",
            "\n  -:3: one id, but different content: it goes to quarantine as a mismatch (held against -:2)\n",
            "\n  -:4: a copy; nothing differs (held against -:2)\n",
            "\n  -:5: one id, but different content; skipped by a built-in rule (events.skip_bot_messages), it makes no \
             claim (held against -:2)\n",
        ] {
            assert!(table.contains(expected), "{expected} is not in {table}");
        }
        for (line, fate) in ["skipped (events.skip_bot_messages)", "handled", "mismatch", "copy"].iter().enumerate() {
            assert!(table.lines().nth(line + 1).unwrap().ends_with(&format!("  {fate}")), "{table}");
        }
    }

    #[test]
    fn a_collision_is_told_once_against_the_message_that_holds_the_claim() {
        let third = ("/data/message/text", "third words");
        let lines = created(&[&[BOT], &[], &[OTHER], &[], &[third], &[OTHER]]);

        let (_, out, _) = inspect_with(&["--collisions", "-o", "json", "-"], &lines);
        let told: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let pairs: Vec<_> = told.iter().map(|told| (told["files"].to_string(), told["fates"].to_string())).collect();
        let expected = [("-:1", "skipped"), ("-:3", "mismatch"), ("-:5", "mismatch"), ("-:6", "mismatch")];
        let expected: Vec<_> =
            expected.map(|(file, fate)| (format!("[\"-:2\",\"{file}\"]"), format!("[\"handled\",\"{fate}\"]"))).into();
        assert_eq!(pairs, expected);

        let (_, table, _) = inspect_with(&["--collisions", "-"], &created(&[&[], &[BOT]]));
        let each = "the first is handled, the second is skipped by a built-in rule (events.skip_bot_messages)";
        assert!(table.contains(each), "{table}");
    }

    #[test]
    fn one_content_with_many_ids_is_told_once() {
        let line = |id: &str| format!("{{\"data\":\"x\",\"messageId\":\"{id}\"}}\n");
        let lines: String = ["1", "2", "2", "3"].map(line).concat();

        let (_, json, _) = inspect_with(&["--collisions", "-o", "json", "-"], &lines);
        let told: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(told["files"], serde_json::json!(["-:1", "-:2", "-:4"]));
        assert_eq!(told["fates"], serde_json::json!(["undecodable", "undecodable", "undecodable"]));

        let (_, table, _) = inspect_with(&["--collisions", "-"], &lines);
        assert!(table.starts_with("split: different ids, one fingerprint: 3 events\n"), "{table}");
        assert_eq!(table.lines().count(), 4, "{table}");
        let (_, tsv, _) = inspect_with(&["--collisions", "-o", "tsv", "-"], &lines);
        assert_eq!(tsv.lines().count(), 2, "{tsv}");
    }

    #[test]
    fn the_rules_of_a_configuration_judge_files_too() {
        let rule = Rule { action: Action::Quarantine, ..Rule::default() };
        let config = Config { rule: vec![rule], ..Config::default() };

        let (_, table, _) = inspect_by(&config, &["-"], &created(&[&[], &[]]));

        assert!(table.lines().nth(1).unwrap().ends_with("  quarantined (rule[0])"), "{table}");
        assert!(table.contains("The first message is put in quarantine by a rule (rule[0]); copies are "), "{table}");
    }

    #[test]
    fn an_event_may_be_too_old_to_be_handled_and_that_is_said_once() {
        let two = created(&[&[], &[]]) + &created(&[&[], &[]]).replace("MTc3Nzk3ODgwMDI2MDEyNw", "other");

        let (_, table, _) = inspect_with(&["-"], &two);

        let unless = "The first message is handled (unless it is older than claims.retention allows); copies";
        assert_eq!((table.matches("One event").count(), table.matches(unless).count()), (2, 1), "{table}");
    }

    #[test]
    fn the_name_of_a_file_is_one_line_whatever_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a\nb\t\u{1b}[2Jc");
        std::fs::write(&file, "{\"data\":\"x\"}").unwrap();
        let file = file.to_str().unwrap();

        for form in ["table", "tsv"] {
            let (_, out, _) = inspect_with(&["-o", form, file], "");
            assert!(out.contains("a\\nb\\t\\u{1b}[2Jc"), "{out}");
        }
        let (_, json, _) = inspect_with(&["-o", "json", file], "");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["file"], file);
        let (_, _, problems) = inspect_with(&["/nowhere/a\nb"], "");
        assert_eq!(problems.lines().count(), 1, "{problems}");
    }

    #[test]
    fn a_message_with_the_id_of_another_and_other_content_is_no_copy() {
        let told = |types: &str| {
            let text = std::fs::read_to_string(fixture("38-classic-app-home")).unwrap().replace('\n', "");
            let one = text.replace("APP_HOME", types);
            inspect_with(&["-"], &format!("{one}\n{}\n", one.replace("\"user\": {", "\"more\": 1, \"user\": {"))).1
        };

        let handled = told("SUBMIT_FORM");
        assert!(handled.contains("One id, but different content: 2 messages"), "{handled}");
        assert!(
            handled.contains("\n  -:2: one id, but different content: it goes to quarantine as a mismatch\n"),
            "{handled}"
        );
        assert!(handled.contains("\n    more (copies of one event agree in this)\n"), "{handled}");
        let skipped = told("APP_HOME");
        assert!(skipped.contains("Each message is skipped by a built-in rule (events.skip_app_home)."), "{skipped}");
        assert!(skipped.contains("\n  -:2: one id, but different content\n"), "{skipped}");
    }

    #[test]
    fn collisions_are_mismatches_and_splits() {
        let text = std::fs::read_to_string(fixture("01-classic-message-dm")).unwrap();
        let mut forged: Value = serde_json::from_str(&text).unwrap();
        forged["data"]["message"]["text"] = "other words".into();
        let lines =
            format!("{forged}\n{{\"data\":\"x\",\"messageId\":\"1\"}}\n{{\"data\":\"x\",\"messageId\":\"2\"}}\n");
        let files = ["--collisions", "-o", "json", &fixture("01-classic-message-dm"), &fixture("97-bom-prefixed"), "-"];

        let (exit, out, _) = inspect_with(&files, &lines);

        let told: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(exit, Exit::Ok);
        assert_eq!(told.len(), 2, "{out}");
        assert_eq!((&told[0]["collision"], &told[0]["files"][1]), (&"mismatch".into(), &"-:1".into()));
        assert_eq!((&told[1]["collision"], &told[1]["files"]), (&"split".into(), &serde_json::json!(["-:2", "-:3"])));

        let table = inspect_with(&["--collisions", &fixture("01-classic-message-dm"), "-"], &lines).1;
        assert!(table.contains("fingerprints: the second goes to quarantine as a mismatch\n"), "{table}");
        assert!(table.contains("two events, both are put in quarantine as undecodable\n"), "{table}");

        let (_, quiet, _) = inspect_with(&["--collisions", &fixture("01-classic-message-dm")], "");
        assert_eq!(quiet, "No collisions among 1 message.\n");
    }
}
