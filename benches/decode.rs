//! How fast events are decoded, beside `serde_json::from_slice::<Value>` on the same bytes in the same run.
//!
//! `cargo bench --bench decode` prints a table and fails when a bound is broken: decoding (parse, id, key, fingerprint)
//! of every sample at 0.4 times the rate of the plain parse or more; 10 MB in under 250 ms; peak memory under 4 times
//! the message for text and under 24 times for the worst arrays. Memory is the peak of a child process less that of an
//! idle one.
//!
//! The same bytes are the whole message as one JSON text. Interactions are one already. A CloudEvent in binary mode has
//! about half of itself in its attributes, and decoding reads both halves, so the plain parse gets its structured form:
//! the attributes without `ce-` as members, and `data` beside them. That form is then decoded as well: a row in which
//! both sides get one text. The last column is the ratio to a parse of the data alone, for information.

use std::{
    collections::BTreeMap,
    hint::black_box,
    io::Write,
    process::{Command, ExitCode},
    sync::Arc,
    time::{Duration, Instant},
};

use bellhop::{
    claim::Key,
    event::{RawEvent, decode, sample},
};
use bytes::Bytes;
use serde_json::Value;

const TEN_MB: usize = 10_000_000;
const MIN_RATIO: f64 = 0.4;
const MAX_TIME: Duration = Duration::from_millis(250);

fn main() -> ExitCode {
    if let Ok(name) = std::env::var("BELLHOP_BENCH_CHILD") {
        return child(&name);
    }
    // Cargo passes `--bench`, test runners other flags; none matters here.
    let mut bench = Bench { failed: false };
    bench.typical();
    bench.huge();
    if bench.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Bench {
    failed: bool,
}

impl Bench {
    fn typical(&mut self) {
        self.say("sample                                        bytes  decode/s   parse/s  ratio  (data alone)");
        let (mut decode, mut parse) = (Duration::ZERO, Duration::ZERO);
        for sample in sample::built_in().iter().filter(|sample| !sample.name.starts_with("noise")) {
            let raw = sample.raw();
            let text = one_text(&raw);
            let structured = RawEvent { data: text.clone(), attributes: BTreeMap::new(), ..raw.clone() };
            let is_binary = text != raw.data;
            let times = self.row(sample.name, raw, &text);
            decode += times.decode;
            parse += times.parse;
            if is_binary {
                self.row(&format!("{}, structured", sample.name), structured, &text);
            }
        }
        let line = format!("all samples, one after the other: ratio {:.2}", parse.as_secs_f64() / decode.as_secs_f64());
        self.say(&line);
    }

    fn row(&mut self, name: &str, raw: RawEvent, text: &Bytes) -> Times {
        let raw = Arc::new(raw);
        let times = times(&raw, text);
        let rate = |time: Duration| 1.0 / time.as_secs_f64();
        let ratio = times.parse.as_secs_f64() / times.decode.as_secs_f64();
        let line = format!(
            "{name:<44}{:>7}{:>10.0}{:>10.0}{ratio:>7.2}{:>14.2}",
            text.len(),
            rate(times.decode),
            rate(times.parse),
            times.parse_data.as_secs_f64() / times.decode.as_secs_f64()
        );
        self.say(&line);
        self.hold(ratio >= MIN_RATIO, "decode rate against a plain parse");
        times
    }

    fn huge(&mut self) {
        self.say("\n10 MB of                         decode ms   parse ms  ratio  memory / size");
        let idle = peak("idle");
        for (name, limit) in HUGE {
            let raw = Arc::new(huge(name));
            let decode_time = best_on_cpu(|| drop(black_box(work(&raw))), 5);
            let parse_time = best_on_cpu(|| drop(black_box(serde_json::from_slice::<Value>(&raw.data))), 5);
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let memory = peak(name).saturating_sub(idle) as f64 / raw.data.len() as f64;
            let line = format!(
                "{name:<30}{:>12.1}{:>11.1}{:>7.2}{memory:>15.1}",
                decode_time.as_secs_f64() * 1e3,
                parse_time.as_secs_f64() * 1e3,
                parse_time.as_secs_f64() / decode_time.as_secs_f64()
            );
            self.say(&line);
            self.hold(decode_time < MAX_TIME, "time of 10 MB");
            self.hold(memory < f64::from(*limit), "memory of 10 MB");
        }
    }

    fn hold(&mut self, holds: bool, what: &str) {
        if !holds {
            self.failed = true;
            self.say(&format!("  ^ bound broken: {what}"));
        }
    }

    fn say(&self, line: &str) {
        // Nobody reads it when stdout is closed.
        drop(writeln!(std::io::stdout(), "{line}"));
    }
}

/// What is asked of every message: decode, id, key, fingerprint.
fn work(raw: &Arc<RawEvent>) -> (bellhop::event::Event, Key) {
    let event = decode(raw);
    let key = Key::derive("projects/p/subscriptions/s", &event);
    (event, key)
}

/// The message as one JSON text: what has attributes in its structured form, else the data.
fn one_text(raw: &RawEvent) -> Bytes {
    if raw.attributes.is_empty() {
        return raw.data.clone();
    }
    let members = raw.attributes.iter().map(|(name, value)| {
        format!("{}:{},", Value::from(name.trim_start_matches("ce-")), Value::from(value.as_str()))
    });
    format!(r#"{{{}"data":{}}}"#, members.collect::<String>(), String::from_utf8_lossy(&raw.data)).into()
}

/// Of one message: decoding it, parsing its text, parsing its data.
struct Times {
    decode: Duration,
    parse: Duration,
    parse_data: Duration,
}

/// The shortest times, taken in turns, so that a busy machine slows all.
fn times(raw: &Arc<RawEvent>, text: &[u8]) -> Times {
    const TURNS: u32 = 30;
    const CALLS: u32 = 100;
    let once = |call: &dyn Fn()| best(|| (0..CALLS).for_each(|_| call()), 1) / CALLS;
    let parse = |bytes: &[u8]| drop(black_box(serde_json::from_slice::<Value>(black_box(bytes))));
    let mut times = Times { decode: Duration::MAX, parse: Duration::MAX, parse_data: Duration::MAX };
    for _ in 0..TURNS {
        times.decode = times.decode.min(once(&|| drop(black_box(work(black_box(raw))))));
        times.parse = times.parse.min(once(&|| parse(text)));
        times.parse_data = times.parse_data.min(once(&|| parse(&raw.data)));
    }
    times
}

/// The shortest of several runs.
fn best(run: impl Fn(), times: u32) -> Duration {
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..times).map(once).min().unwrap_or_default()
}

/// The shortest of several long runs, in time on the processor (in steps of some ms): others may be busy here.
fn best_on_cpu(run: impl Fn(), times: u32) -> Duration {
    let once = |_| {
        let before = on_cpu();
        let wall = best(&run, 1);
        on_cpu().zip(before).map_or(wall, |(after, before)| after.saturating_sub(before))
    };
    (0..times).map(once).min().unwrap_or_default()
}

/// How long this process ran so far (Linux). It has one thread.
fn on_cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(Duration::from_nanos(stat.split(' ').next()?.parse().ok()?))
}

/// Messages of 10 MB, and how many times their size they may take.
const HUGE: &[(&str, u32)] = &[
    ("plain text", 4),
    ("text with escapes", 4),
    ("text in a JSON string", 4),
    ("text in base64", 4),
    ("an opaque text", 4),
    ("a card of many widgets", 24),
    ("an array of zeros", 24),
    ("an array of empty arrays", 24),
    ("an array of empty objects", 24),
    ("an array of empty strings", 24),
    ("an array of small objects", 24),
    ("an object of many keys", 24),
    ("an object of like keys", 24),
    ("an object of one key again", 24),
    ("timestamps", 24),
    ("action parameters", 24),
    ("zeros in form inputs", 24),
    ("an unknown type", 24),
];

fn huge(name: &str) -> RawEvent {
    let fill = |part: &dyn Fn(usize) -> String| {
        let mut text = String::with_capacity(TEN_MB + 64);
        for index in 0.. {
            if text.len() >= TEN_MB - 400 {
                break;
            }
            text.push_str(&part(index));
        }
        text
    };
    let list =
        |part: &dyn Fn(usize) -> String| fill(&|index| format!("{}{}", if index > 0 { "," } else { "" }, part(index)));
    let message = |member: String| {
        format!(
            r#"{{"type":"MESSAGE","eventTime":"2026-05-04T09:15:30Z","space":{{"name":"spaces/A"}},"message":{{"name":"spaces/A/messages/B",{member}}}}}"#
        )
    };
    let click = |members: String| {
        format!(
            r#"{{"type":"CARD_CLICKED","eventTime":"2026-05-04T09:15:30Z","space":{{"name":"spaces/A"}},{members}}}"#
        )
    };
    let text = |bytes: usize| message(format!(r#""text":"{}""#, "all the words of a long message ".repeat(bytes / 32)));
    let array = |element: &str| message(format!(r#""x":[{}]"#, list(&|_| element.to_owned())));
    let data = match name {
        "plain text" => text(TEN_MB - 400),
        "text with escapes" => message(format!(r#""text":"{}""#, fill(&|_| "a line\\n\\\"of\\u00e4 text ".to_owned()))),
        "text in a JSON string" => Value::from(text(TEN_MB - 400)).to_string(),
        "text in base64" => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.encode(text(TEN_MB / 4 * 3 - 400))
        }
        "an opaque text" => fill(&|_| "no JSON at all, ".to_owned()),
        "a card of many widgets" => click(format!(
            r#""message":{{"name":"spaces/A/messages/B","cardsV2":[{}]}}"#,
            list(&|index| {
                format!(
                    r#"{{"textParagraph":{{"text":"Row {index}"}},"onClick":{{"action":{{"function":"f","parameters":[{{"key":"k","value":"{index}"}}]}}}}}}"#
                )
            })
        )),
        "an array of zeros" => array("0"),
        "an array of empty arrays" => array("[]"),
        "an array of empty objects" => array("{}"),
        "an array of empty strings" => array(r#""""#),
        "an array of small objects" => array(r#"{"a":1}"#),
        "an object of many keys" => message(format!(
            r#""x":{{{}}}"#,
            list(&|index| { format!(r#""{:x}":0"#, index.wrapping_mul(2_654_435_761) & 0xffff_ffff) })
        )),
        "an object of like keys" => message(format!(
            r#""x":{{{}}}"#,
            list(&|index| {
                format!(r#""a-long-common-start-{:x}":0"#, index.wrapping_mul(2_654_435_761) & 0xffff_ffff)
            })
        )),
        "an object of one key again" => message(format!(r#""x":{{{}}}"#, list(&|_| r#""":0"#.to_owned()))),
        "timestamps" => array(r#""2026-05-04T09:15:30.123Z""#),
        "action parameters" => {
            click(format!(r#""common":{{"parameters":{{{}}}}}"#, list(&|index| format!(r#""{index:x}":"""#))))
        }
        "zeros in form inputs" => click(format!(r#""common":{{"formInputs":[{}]}}"#, list(&|_| "0".to_owned()))),
        "an unknown type" => {
            click(format!(r#""x":[{}]"#, list(&|_| r#"{"a":1}"#.to_owned()))).replacen("CARD_CLICKED", "NEW", 1)
        }
        _ => String::new(),
    };
    RawEvent { data: data.into(), message_id: "1".to_owned(), ..RawEvent::default() }
}

/// Peak resident memory, in bytes, of a process that decodes that message once. Loading it costs what it weighs: a
/// child reads it from a file, so that making it is not counted.
fn peak(name: &str) -> u64 {
    let run = || -> std::io::Result<u64> {
        let path = std::env::temp_dir().join(format!("bellhop-bench-{}", std::process::id()));
        std::fs::write(&path, huge(name).data)?;
        let child = Command::new(std::env::current_exe()?).env("BELLHOP_BENCH_CHILD", &path).output();
        std::fs::remove_file(&path)?;
        Ok(String::from_utf8_lossy(&child?.stdout).trim().parse().unwrap_or(u64::MAX))
    };
    run().unwrap_or(u64::MAX)
}

fn child(path: &str) -> ExitCode {
    let Ok(data) = std::fs::read(path) else { return ExitCode::FAILURE };
    let raw = Arc::new(RawEvent { data: data.into(), message_id: "1".to_owned(), ..RawEvent::default() });
    let worked = work(&raw);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(u64::MAX >> 10);
    drop(worked);
    match writeln!(std::io::stdout(), "{}", kib << 10) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
