//! `bellhop trigger`: publishes sample events, so that one sees what a handler does with them.

mod edit;
mod pick;

use std::{
    collections::HashSet,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use chrono::{TimeDelta, Utc};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{self, MissedTickBehavior};

use self::{edit::Edit, pick::Picked};
use super::{Exit, Failure, Output, Settings, output};
use crate::{
    config::Profile,
    event::{self, Basis, RawEvent, sample},
    source::pubsub::{RequestError, Topic},
};

/// Published at once when no rate is given.
const BATCH: usize = 100;

/// What to publish, where, and how often.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    bellhop trigger --list\n  \
    PUBSUB_EMULATOR_HOST=localhost:8085 bellhop trigger chat.message --create\n  \
    bellhop trigger chat.message.slash --edit message.annotations.0.slashCommand.commandName=/restart --repeat 10 --rate 2\n\n\
    Without --topic the events go to the topic of the configured subscription. A file holds one message, or one per \
    line, in the format that `bellhop inspect` reads.")]
pub(super) struct Args {
    /// Names of built-in samples, or files; - reads stdin
    #[arg(required_unless_present = "list", value_name = "NAME|FILE")]
    samples: Vec<String>,
    /// List the built-in samples
    #[arg(long)]
    list: bool,
    /// Publish here: an id, or projects/PROJECT/topics/ID
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// Where Pub/Sub is (pubsub.endpoint); PUBSUB_EMULATOR_HOST names an emulator
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Create topic and subscription when they do not exist; emulators only
    #[arg(long)]
    create: bool,
    /// Really publish to a topic that is not on an emulator
    #[arg(long)]
    yes: bool,
    /// Keep times, names and ids as they are, instead of making each a new event of this moment
    #[arg(long)]
    keep_time: bool,
    /// Publish all of it so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeat: u32,
    /// Let the repetitions be the same events, as a publisher that repeats itself makes them
    #[arg(long)]
    same: bool,
    /// At most so many messages a second
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    rate: Option<f64>,
    /// Replace a value in the event, such as message.text='"hello"'; JSON, or text; may be repeated
    #[arg(long, value_name = "PATH=VALUE")]
    edit: Vec<Edit>,
    /// Print the messages as `bellhop inspect -` reads them, and publish nothing; the table goes to stderr
    #[arg(long)]
    dry_run: bool,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value = "table")]
    output: Output,
}

impl Args {
    /// The form of the answer.
    pub(super) const fn output(&self) -> Output {
        self.output
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.001..=100_000.0).contains(&rate) => Ok(rate),
        _ => Err("give a number from 0.001 to 100000".into()),
    }
}

/// Exit 0: all published. 3: no such sample, topic or subscription. 4: some published. 5: not without --yes. 6: no server.
pub(super) async fn run(args: Args, settings: Settings) -> anyhow::Result<Exit> {
    if args.list {
        output::print(&list(args.output))?;
        return Ok(Exit::Ok);
    }
    let picked = pick::all(&args.samples, &mut std::io::stdin().lock())?;
    let events = prepare(&args, &picked)?;
    let config =
        settings.with("--endpoint", "pubsub.endpoint", args.endpoint.clone()).load(Profile::Probe)?.config.pubsub;
    let emulated = config.endpoint().is_ok_and(|endpoint| endpoint.is_plain());
    if args.dry_run {
        let topic = args.topic.as_deref().map(|name| Topic::full_name(&config, name)).transpose().map_err(explain)?;
        let (messages, about) = rehearse(&events, topic.as_deref(), args.output);
        output::print(&messages)?;
        // Nobody is left to hear of a closed stderr.
        drop(io::stderr().write_all(about.as_bytes()));
        return Ok(Exit::Ok);
    }
    if !emulated && args.create {
        return Err(Failure::usage("--create is for emulators; make topics at Google with their tools").into());
    }
    if !emulated && !args.yes {
        let message = format!("this would publish {} messages to a topic that is not on an emulator", events.len());
        let hint = "add --yes to do it, or name an emulator with --endpoint or PUBSUB_EMULATOR_HOST";
        return Err(Failure::new(Exit::Refused, "not_confirmed", message).hint(hint).into());
    }
    let topic = Topic::open(&config, args.topic.as_deref(), args.create).await.map_err(explain)?;
    let (rows, failed) = publish(&topic, &events, args.rate).await;
    if !rows.is_empty() || failed.is_none() {
        output::print(&show(&rows, Some(topic.name()), false, args.output))?;
    }
    match failed {
        None => Ok(Exit::Ok),
        Some(error) if rows.is_empty() => Err(explain(error).into()),
        Some(error) => {
            let message = format!("{} of {} messages were published: {error}", rows.len(), events.len());
            Err(Failure::new(Exit::Partly, "partly_published", message).into())
        }
    }
}

/// One message to publish.
struct Prepared {
    sample: String,
    raw: RawEvent,
}

/// Makes what was picked as many and as new as wanted.
fn prepare(args: &Args, picked: &[Picked]) -> Result<Vec<Prepared>, Failure> {
    // Repetitions lie microseconds apart, and none in the future.
    let now = Utc::now() - TimeDelta::seconds(2);
    let first = u64::from(rand::random::<u32>() % 1_000_000);
    let mut events = Vec::new();
    for number in 0..args.repeat {
        for one in picked {
            let number = if args.same { 0 } else { u64::from(number) };
            let mut raw =
                if args.keep_time { one.raw.clone() } else { sample::restamp(&one.raw, now, Some(first + number)) };
            for edit in &args.edit {
                raw.data = edit.apply(&raw.data).map_err(|why| Failure::usage(format!("{}: {why}", one.name)))?;
            }
            events.push(Prepared { sample: one.name.clone(), raw });
        }
    }
    Ok(events)
}

/// Publishes in order until one fails; gives what was published, and why it is not all.
async fn publish(topic: &Topic, events: &[Prepared], rate: Option<f64>) -> (Vec<Row>, Option<RequestError>) {
    let mut rows = Vec::new();
    let mut ticks = rate.map(|rate| time::interval(Duration::from_secs_f64(1.0 / rate)));
    if let Some(ticks) = &mut ticks {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    for batch in events.chunks(if rate.is_some() { 1 } else { BATCH }) {
        if let Some(ticks) = &mut ticks {
            ticks.tick().await;
        }
        let ids = join_all(batch.iter().map(|event| topic.publish(&event.raw))).await;
        for (event, id) in batch.iter().zip(ids) {
            match id {
                Ok(id) => rows.push(Row::new(event, Some(id))),
                Err(error) => return (rows, Some(error)),
            }
        }
    }
    (rows, None)
}

/// What is told about one message.
struct Row {
    sample: String,
    message_id: Option<String>,
    /// `None` as long as only the transport's id will tell.
    event_id: Option<String>,
    event_type: String,
    /// What would be published, in a dry run.
    message: Option<Value>,
}

impl Row {
    fn new(prepared: &Prepared, message_id: Option<String>) -> Self {
        let message = message_id.is_none().then(|| published(&prepared.raw));
        let mut raw = prepared.raw.clone();
        raw.message_id = message_id.clone().unwrap_or_default();
        let event = event::decode(&Arc::new(raw));
        let needs_transport = matches!(event.basis, Basis::IxTransport | Basis::CePartial | Basis::Opaque);
        let known = message_id.is_some() || !needs_transport;
        Self {
            sample: prepared.sample.clone(),
            message_id,
            event_id: known.then(|| event.id.to_string()),
            event_type: event.event_type,
            message,
        }
    }
}

/// What would be published.
/// The messages for stdout, and for people what is to be said about them.
fn rehearse(events: &[Prepared], topic: Option<&str>, form: Output) -> (String, String) {
    let rows: Vec<Row> = events.iter().map(|event| Row::new(event, None)).collect();
    let about = show(&rows, topic, true, form);
    if form == Output::Json {
        return (about, String::new());
    }
    let lines = events.iter().map(|event| escaped(&published(&event.raw).to_string()) + "\n");
    (lines.collect(), about)
}

/// JSON text without raw control characters: those that JSON allows in its strings are escaped too.
fn escaped(json: &str) -> String {
    json.chars().map(|c| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

/// A message as the topic gets it: id and publish time are the server's to give.
fn published(raw: &RawEvent) -> Value {
    let RawEvent { data, attributes, ordering_key, .. } = raw.clone();
    sample::print(&RawEvent { data, attributes, ordering_key, ..RawEvent::default() })
}

fn show(rows: &[Row], topic: Option<&str>, dry_run: bool, form: Output) -> String {
    if form == Output::Json {
        let one = |row: &Row| {
            let mut told = json!({"sample": row.sample, "message_id": row.message_id, "event_id": row.event_id,
                "type": row.event_type});
            if let Some(message) = &row.message {
                told["message"] = message.clone();
            }
            told
        };
        let published: Vec<Value> = rows.iter().map(one).collect();
        let answer = json!({"version": 1, "topic": topic, "dry_run": dry_run, "messages": published});
        return format!("{answer}\n");
    }
    let mut table = vec![["MESSAGE", "EVENT", "TYPE", "SAMPLE"].map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(|row| {
        let message = row.message_id.clone().unwrap_or_else(|| "-".into());
        let event = row.event_id.clone().unwrap_or_else(|| "(from the message id)".into());
        vec![message, event, row.event_type.clone(), row.sample.clone()]
    }));
    let distinct = rows.iter().filter_map(|row| row.event_id.as_ref()).collect::<HashSet<_>>().len();
    let messages = output::counted(rows.len(), "message");
    let to = topic.map(|topic| format!(" to {topic}")).unwrap_or_default();
    let summary = if dry_run {
        format!("{messages}; nothing was published{to} (--dry-run)\n")
    } else {
        format!("{messages}, {distinct} events, published{to}\n")
    };
    output::table(&table) + &summary
}

fn list(form: Output) -> String {
    if form == Output::Json {
        let one = |sample: &sample::BuiltIn| json!({"name": sample.name, "about": sample.about});
        let samples: Vec<Value> = sample::built_in().iter().map(one).collect();
        return format!("{}\n", json!({"version": 1, "samples": samples}));
    }
    let rows: Vec<Vec<String>> =
        sample::built_in().iter().map(|sample| vec![sample.name.to_owned(), sample.about.to_owned()]).collect();
    output::table(&rows)
}

fn explain(error: RequestError) -> Failure {
    Failure::of_request(error, "on an emulator, --create makes topic and subscription")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn prepared(line: &str) -> Vec<Row> {
        let Command { args } = Command::parse_from(format!("trigger {line}").split(' '));
        let picked = pick::all(&args.samples, &mut std::io::empty()).unwrap();
        let id = (!args.dry_run).then(|| "7".to_owned());
        prepare(&args, &picked).unwrap().iter().map(|event| Row::new(event, id.clone())).collect()
    }

    fn distinct(rows: &[Row]) -> usize {
        rows.iter().map(|row| &row.event_id).collect::<HashSet<_>>().len()
    }

    #[test]
    fn repetitions_are_new_events_unless_the_same_are_wanted() {
        let samples = "chat.message workspace.message.created chat.card_clicked";

        assert_eq!(distinct(&prepared(&format!("{samples} --repeat 4"))), 12);
        assert_eq!(distinct(&prepared(&format!("{samples} --repeat 4 --same"))), 3);
        assert_eq!(distinct(&prepared(&format!("{samples} --repeat 4 --keep-time"))), 3);
    }

    #[test]
    fn every_sample_is_a_new_event_the_next_time() {
        for sample in sample::built_in() {
            let (first, second) = (prepared(sample.name), prepared(&format!("{} --dry-run", sample.name)));

            // A dry run has no message id: where only that tells events apart, there is no event id either.
            assert_ne!(first[0].event_id, second[0].event_id, "{}", sample.name);
        }
    }

    #[test]
    fn the_forms_of_the_answer() {
        let rows = prepared("chat.message.dm --keep-time");

        let json: Value = serde_json::from_str(&show(&rows, Some("t"), false, Output::Json)).unwrap();
        assert_eq!((&json["topic"], &json["dry_run"]), (&json!("t"), &json!(false)));
        assert_eq!(json["messages"][0]["message_id"], "7");
        assert_eq!(json["messages"][0]["type"], "MESSAGE");
        let table = show(&rows, None, true, Output::Table);
        assert!(table.ends_with("1 message; nothing was published (--dry-run)\n"), "{table}");
        assert!(list(Output::Table).contains("chat.message.dm"));
        assert!(list(Output::Json).contains("\"chat.message.dm\""));
    }

    #[test]
    fn a_dry_run_shows_what_would_be_published() {
        let line = "trigger chat.message.dm workspace.message.created --dry-run --repeat 15 --edit message.text=hello";
        let Command { args } = Command::parse_from(line.split(' '));
        let picked = pick::all(&args.samples, &mut std::io::empty()).unwrap();
        let events = prepare(&args, &picked).unwrap();

        let (lines, table) = rehearse(&events, Some("projects/p/topics/t"), Output::Table);
        let (json, nothing) = rehearse(&events, None, Output::Json);

        let (lines, json): (Vec<_>, Value) = (lines.lines().collect(), serde_json::from_str(&json).unwrap());
        assert_eq!((lines.len(), json["messages"].as_array().unwrap().len(), nothing.as_str()), (30, 30, ""));
        assert!(table.ends_with("30 messages; nothing was published to projects/p/topics/t (--dry-run)\n"), "{table}");
        for (line, event) in lines.iter().zip(&events) {
            let raw = sample::parse(line.as_bytes()).unwrap();
            assert_eq!((&raw.data, &raw.attributes), (&event.raw.data, &event.raw.attributes));
            assert!(raw.message_id.is_empty() && raw.publish_time.is_none());
        }
        assert_eq!(json["messages"][0]["message"]["data"]["message"]["text"], "hello");
        assert!(json["messages"][1]["message"]["attributes"]["ce-id"].is_string(), "{json}");
    }

    #[test]
    fn control_characters_that_json_allows_are_escaped() {
        let text = escaped("{\"a\":\"\u{9b}2J\u{7f}ä\"}");

        assert_eq!(text, "{\"a\":\"\\u009b2J\\u007fä\"}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["a"], "\u{9b}2J\u{7f}ä");
    }

    #[test]
    fn rates_that_make_no_sense_are_refused() {
        for text in ["0", "-1", "nan", "inf", "x", "1e9"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(rate("0.5"), Ok(0.5));
    }
}
