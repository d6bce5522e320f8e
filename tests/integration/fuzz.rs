//! Throws mutated payloads at `decode` for `BELLHOP_FUZZ_SECONDS` (20): no panic, always an id, and what holds for all.
//!
//! Seeds: the samples, and the payloads of `tests/fixtures/fuzz`. The seed of the dice is printed; `BELLHOP_FUZZ_SEED`
//! repeats a run. A payload that fails is written to the temporary folder and named in the failure.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bellhop::{
    claim::Key,
    event::{Event, RawEvent, Shape, decode, sample},
};
use serde_json::Value;

const WORDS: &[&str] = &[
    "\"type\":\"MESSAGE\",",
    "\"type\":\"CARD_CLICKED\",",
    "\"eventTime\":",
    "\"2026-05-04T09:15:30.25Z\"",
    "\"chat\":{",
    "\"messagePayload\":{",
    "\"name\":",
    "\"parameters\":",
    "\"formInputs\":",
    "null",
    "true",
    "1e400",
    "-0",
    "1.5",
    "18446744073709551616",
    "\\ud800",
    "\\u0000",
    "\"specversion\":\"1.0\",",
    "\"data\":",
    "\"data_base64\":\"e30=\"",
    "\"configCompleteRedirectUrl\":\"x\",",
    "\"authorizationEventObject\":{},",
    "\"subscription\":\"s\",",
    "\u{feff}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    " ",
    "[[[[[[[[",
    "]]]]]]]]",
    "\"message\":{",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 32).unwrap() % sides.max(1)
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn folder(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn seeds() -> Vec<RawEvent> {
    let samples = folder("events").into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "json"));
    let samples = samples.map(|file| sample::parse(&std::fs::read(file).unwrap()).unwrap());
    let payloads = folder("fuzz").into_iter().map(|file| std::fs::read(file).unwrap());
    let payloads =
        payloads.map(|data| RawEvent { data: data.into(), message_id: "1".to_owned(), ..RawEvent::default() });
    samples.chain(payloads).collect()
}

fn mutate(seeds: &[RawEvent], dice: &mut Dice) -> RawEvent {
    let mut raw = seeds[dice.roll(seeds.len())].clone();
    let mut data = raw.data.to_vec();
    for _ in 0..dice.roll(5) {
        let at = dice.roll(data.len() + 1);
        let end = (at + dice.roll(40)).min(data.len());
        match dice.roll(7) {
            0 => drop(data.splice(at..at, WORDS[dice.roll(WORDS.len())].bytes())),
            1 => drop(data.splice(at..end, WORDS[dice.roll(WORDS.len())].bytes())),
            2 => drop(data.drain(at..end)),
            3 => {
                let part = data[at..end].to_vec();
                let to = dice.roll(data.len() + 1);
                drop(data.splice(to..to, part));
            }
            4 if at < data.len() => data[at] = u8::try_from(dice.roll(256)).unwrap(),
            5 => {
                let other = &seeds[dice.roll(seeds.len())].data;
                let from = dice.roll(other.len() + 1);
                let to = (from + dice.roll(200)).min(other.len());
                drop(data.splice(at..at, other[from..to].iter().copied()));
            }
            _ => data = wrap(&data, dice.roll(3)),
        }
    }
    raw.data = data.into();
    match dice.roll(12) {
        0 => raw.message_id.clear(),
        1 => raw.attributes.clear(),
        2 => drop(raw.attributes.insert("content-type".to_owned(), "application/cloudevents+json".to_owned())),
        3 => drop(raw.attributes.insert("CE-type".to_owned(), "t".to_owned())),
        _ => {}
    }
    raw
}

fn wrap(data: &[u8], how: usize) -> Vec<u8> {
    use base64::Engine as _;
    match how {
        0 => Value::from(String::from_utf8_lossy(data)).to_string().into_bytes(),
        1 => base64::engine::general_purpose::STANDARD.encode(data).into_bytes(),
        _ => [b"\xef\xbb\xbf", data].concat(),
    }
}

/// What holds for every event.
fn check(raw: &RawEvent) {
    let event = decode(&Arc::new(raw.clone()));
    let id = event.id.as_str();
    assert!(id.len() == 39 && id.starts_with("bh1-"), "{id}");
    assert!(id[7..].bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()), "{id}");
    let again = decode(&Arc::new(raw.clone()));
    assert_eq!(
        (&event.id, event.fingerprint, Key::derive("s", &event)),
        (&again.id, again.fingerprint, Key::derive("s", &again))
    );
    let _ = (event.type_label(), event.soft_key(), event.lifecycle_warning(), event.fields.iter().count());
    check_body(&event);
    if matches!(event.shape, Shape::Classic | Shape::Addon)
        && !event.body.windows(12).any(|text| text == b"subscription")
        && let Ok(text) = std::str::from_utf8(&event.body)
    {
        // What was unwrapped to this body is the same event when its body comes alone.
        let alone = RawEvent { data: Value::from(text).to_string().into(), attributes: [].into(), ..raw.clone() };
        let alone = decode(&Arc::new(alone));
        assert_eq!((alone.fingerprint, &alone.event_type), (event.fingerprint, &event.event_type));
    }
}

fn check_body(event: &Event) {
    let clean = event.body_without_credentials();
    let Ok(value) = serde_json::from_slice::<Value>(&event.body) else {
        return; // the data of a CloudEvent need not be JSON
    };
    if event.shape != Shape::Opaque {
        let clean: Value = serde_json::from_slice(&clean).expect("still JSON");
        assert!(!has_credentials(&clean));
        assert_eq!(value.is_object(), clean.is_object());
    }
}

fn has_credentials(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_credentials),
        Value::Object(members) => members.iter().any(|(key, value)| {
            matches!(
                key.as_str(),
                "configCompleteRedirectUrl" | "configCompleteRedirectUri" | "authorizationEventObject"
            ) || has_credentials(value)
        }),
        _ => false,
    }
}

#[test]
fn no_payload_breaks_decoding() {
    let seconds = number("BELLHOP_FUZZ_SECONDS").unwrap_or(20);
    let seed = number("BELLHOP_FUZZ_SEED").unwrap_or_else(rand::random) | 1;
    let (seeds, mut dice) = (seeds(), Dice(seed));
    seeds.iter().for_each(check);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0_u64;

    while Instant::now() < until {
        let raw = mutate(&seeds, &mut dice);
        if catch_unwind(AssertUnwindSafe(|| check(&raw))).is_err() {
            let file = std::env::temp_dir().join(format!("bellhop-fuzz-{seed}-{runs}"));
            std::fs::write(&file, &raw.data).unwrap();
            panic!("seed {seed}, run {runs}: see {} (attributes {:?})", file.display(), raw.attributes);
        }
        runs += 1;
    }

    assert!(runs > seconds * 100, "only {runs} payloads in {seconds} s");
}
