//! `bellhop inspect`: what bellhop makes of messages, in files or on a subscription.

mod collisions;
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

use self::{collisions::Collisions, report::Report};
use super::{Exit, Output, Settings, Signals, output::printable};
use crate::event::{self, Event, sample};

/// What to decode, and how to show it.
#[derive(Debug, clap::Args)]
#[command(after_help = "A file holds one message, or one per line (JSON Lines):\n  \
    {\"attributes\": {}, \"data\": <JSON, or text>, \"messageId\": \"…\", \"publishTime\": \"…\", \"orderingKey\": \"…\"}\n\
    `dataBase64` instead of `data` holds bytes that are not UTF-8. Of two messages the table says why they are, or are \
    not, one event.\n\n\
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
    /// Report only pairs with one id and different fingerprints, or with one fingerprint and different ids
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
}

fn wait(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(wait) if (Duration::from_millis(100)..=Duration::from_secs(600)).contains(&wait) => Ok(wait),
        _ => Err("give 100ms to 10m".into()),
    }
}

/// Exit 0: all were read. 1: some were not; stderr says which. Of a subscription also 3: it does not exist. 6: no
/// server.
pub(super) async fn run(args: Args, settings: Settings, signals: Signals) -> anyhow::Result<Exit> {
    let (mut out, mut err) = (io::BufWriter::new(io::stdout()), io::stderr());
    if let Some(most) = args.from_subscription {
        return live::run(&args, most.into(), settings, signals, &mut out, &mut err).await;
    }
    let exit = inspect(&args, &mut io::stdin().lock(), &mut out, &mut err)?;
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
fn sink<'a>(args: &Args, origin: &str, scope: &'a str) -> Box<dyn Sink + 'a> {
    if args.collisions {
        Box::new(Collisions::new(args.output))
    } else {
        Box::new(Report::new(args.output, origin, scope))
    }
}

fn inspect(args: &Args, stdin: &mut dyn Read, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let mut sink = sink(args, "FILE", &args.scope);
    let mut exit = Exit::Ok;
    let mut problem = |label: &str, text: &str| {
        exit = Exit::Failed;
        writeln!(err, "error: {}: {}", printable(label), printable(text))
    };
    for file in &args.files {
        let name = file.display().to_string();
        let text = match read(file, stdin) {
            Ok(text) => text,
            Err(error) => {
                problem(&name, &format!("can not be read: {error}"))?;
                continue;
            }
        };
        let messages = sample::parse_all(&text);
        drop(text);
        for (line, message) in messages {
            let label = if line == 0 { name.clone() } else { format!("{name}:{line}") };
            match message {
                Ok(raw) => sink.take(&label, &event::decode(&Arc::new(raw)), out)?,
                Err(error) => problem(&label, &format!("{:#}", anyhow::Error::from(error)))?,
            }
        }
    }
    sink.finish(out)?;
    Ok(exit)
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

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/events");

    fn args(arguments: &[&str]) -> Result<Args, clap::Error> {
        let command = Args::augment_args(clap::Command::new("inspect").no_binary_name(true));
        Args::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    fn inspect_with(arguments: &[&str], stdin: &str) -> (Exit, String, String) {
        let args = args(arguments).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = inspect(&args, &mut stdin.as_bytes(), &mut out, &mut err).unwrap();
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

        assert_eq!(exit, Exit::Failed);
        assert_eq!(out.lines().count(), 2);
        let starts: Vec<_> = err.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
        assert_eq!(starts, ["/nowhere/a", "-:2", "-:3"]);
        assert!(err.contains("unknown field `dato`"), "{err}");
    }

    #[test]
    fn the_table_says_why_two_messages_merge_or_not() {
        let [one, copy, other] =
            ["01-classic-message-dm", "04-classic-message-dm-reserialised", "05-classic-message-dm-same-text"]
                .map(fixture);

        let (_, merged, _) = inspect_with(&[&one, &copy], "");
        let (_, split, _) = inspect_with(&[&one, &other], "");

        assert!(merged.contains("One event"), "{merged}");
        assert!(split.contains("Two events"), "{split}");
        assert!(split.contains("m  message name") && split.contains("e  event time"), "{split}");
        assert!(!split.contains("s  space"), "{split}");
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
        assert_eq!(told.len(), 3, "{out}");
        assert_eq!((&told[0]["collision"], &told[0]["files"][1]), (&"mismatch".into(), &"-:1".into()));
        assert_eq!((&told[2]["collision"], &told[2]["files"]), (&"split".into(), &serde_json::json!(["-:2", "-:3"])));

        let (_, quiet, _) = inspect_with(&["--collisions", &fixture("01-classic-message-dm")], "");
        assert!(quiet.contains("No collisions"), "{quiet}");
    }
}
