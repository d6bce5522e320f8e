//! How fast events are decoded, beside `serde_json::from_slice::<Value>` on the same bytes in the same run.
//!
//! `cargo bench --bench decode` prints a table and fails when a bound is broken: decoding (parse, id, key, fingerprint)
//! at 0.4 times the rate of the plain parse or more; 10 MB in under 250 ms; peak memory under 4 times the message for
//! text and under 24 times for the worst arrays. Memory is the peak of a child process less that of an idle one.

use std::{
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
        self.say("sample                              bytes   decode/s    parse/s  ratio");
        let mut ratios = Vec::new();
        for sample in sample::built_in().iter().filter(|sample| !sample.name.starts_with("noise")) {
            let raw = Arc::new(sample.raw());
            let ratio = ratio(&raw);
            let line = format!(
                "{:<34}{:>7}{:>11.0}{:>11.0}{:>7.2}",
                sample.name,
                raw.data.len(),
                1.0 / ratio.decode.as_secs_f64(),
                1.0 / ratio.parse.as_secs_f64(),
                ratio.value()
            );
            self.say(&line);
            ratios.push((raw.data.len(), ratio));
        }
        let decode: f64 = ratios.iter().map(|(_, ratio)| ratio.decode.as_secs_f64()).sum();
        let parse: f64 = ratios.iter().map(|(_, ratio)| ratio.parse.as_secs_f64()).sum();
        let line = format!("all samples, one after the other: ratio {:.2}", parse / decode);
        self.say(&line);
        self.hold(parse / decode >= MIN_RATIO, "decode rate against a plain parse");
    }

    fn huge(&mut self) {
        self.say("\n10 MB of                         decode ms   parse ms  ratio  memory / size");
        let idle = peak("idle");
        for (name, limit) in HUGE {
            let raw = Arc::new(huge(name));
            let decode_time = best_on_cpu(|| drop(black_box(work(&raw))), 5);
            let parse_time = best_on_cpu(|| drop(black_box(serde_json::from_slice::<serde_json::Value>(&raw.data))), 5);
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

struct Ratio {
    decode: Duration,
    parse: Duration,
}

impl Ratio {
    fn value(&self) -> f64 {
        self.parse.as_secs_f64() / self.decode.as_secs_f64()
    }
}

/// Both times of one message, in turns, so that a busy machine slows both.
fn ratio(raw: &Arc<RawEvent>) -> Ratio {
    const TURNS: u32 = 30;
    const CALLS: u32 = 100;
    let mut ratio = Ratio { decode: Duration::MAX, parse: Duration::MAX };
    for _ in 0..TURNS {
        let decode = best(|| (0..CALLS).for_each(|_| drop(black_box(work(black_box(raw))))), 1);
        let parse = || drop(black_box(serde_json::from_slice::<serde_json::Value>(black_box(&raw.data))));
        let parse = best(|| (0..CALLS).for_each(|_| parse()), 1);
        ratio.decode = ratio.decode.min(decode / CALLS);
        ratio.parse = ratio.parse.min(parse / CALLS);
    }
    ratio
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
        "text in a JSON string" => serde_json::Value::from(text(TEN_MB - 400)).to_string(),
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
