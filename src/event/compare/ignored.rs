//! What differs between two messages with one id.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{
        Shape,
        canonical::{Canon, Scrub},
        document::{Document, Kind, Value},
    },
    Listed, MOST, Other, Side, Why,
    readable::{bounded, place, plain},
    walk::{Found, How, Nature, Walk},
};

/// Everything that differs, by why it does not count.
pub(super) fn others(a: &Side<'_>, b: &Side<'_>) -> Listed<Other> {
    let mut notes = Notes::default();
    transport(a, b, &mut notes);
    payload(a, b, &mut notes);
    notes.listed()
}

/// What differs in the payloads, by why copies may differ in it.
pub(super) fn of_payload(a: &Side<'_>, b: &Side<'_>) -> Listed<Other> {
    let mut notes = Notes::default();
    payload(a, b, &mut notes);
    notes.listed()
}

/// The first names of each kind, so that many of one leave the others their room.
#[derive(Default)]
struct Notes {
    found: BTreeMap<Why, BTreeSet<String>>,
    more: usize,
}

impl Notes {
    fn note(&mut self, why: Why, name: impl FnOnce() -> String) {
        let names = self.found.entry(why).or_default();
        if names.len() < MOST {
            names.insert(name());
        } else {
            self.more += 1;
        }
    }

    fn listed(self) -> Listed<Other> {
        let mut listed = Listed { shown: Vec::new(), more: self.more };
        for (why, names) in self.found {
            names.into_iter().for_each(|name| listed.push_with(|| Other { why, name }));
        }
        listed
    }

    fn count(&self) -> usize {
        self.found.values().map(BTreeSet::len).sum()
    }
}

fn transport(a: &Side<'_>, b: &Side<'_>, notes: &mut Notes) {
    let (first, second) = (&a.event.raw, &b.event.raw);
    for (name, differs) in [
        ("message id", first.message_id != second.message_id),
        ("publish time", first.publish_time != second.publish_time),
        ("delivery attempt", first.delivery_attempt != second.delivery_attempt),
        ("ordering key", first.ordering_key != second.ordering_key),
    ] {
        if differs {
            notes.note(Why::Transport, || name.to_owned());
        }
    }
    let in_body = |side: &Side<'_>| side.event.shape == Shape::CloudEvent && !is_binary(side);
    let (first, second) = (&first.attributes, &second.attributes);
    for name in first.keys().chain(second.keys()) {
        // Of two modes the attributes of the event itself are compared below.
        let of_event = in_body(a) != in_body(b) && name.to_ascii_lowercase().starts_with("ce-");
        if first.get(name) != second.get(name) && !of_event {
            notes.note(Why::Attribute, || bounded(&plain(&format!("attribute {name}"))));
        }
    }
    let (first, second) = (a.event.ce_attributes(), b.event.ce_attributes());
    for name in first.keys().chain(second.keys()) {
        if first.get(name) != second.get(name) && (in_body(a) || in_body(b)) {
            notes.note(Why::Attribute, || bounded(&plain(&format!("CloudEvent attribute {name}"))));
        }
    }
}

/// A CloudEvent that stands in the attributes.
fn is_binary(side: &Side<'_>) -> bool {
    side.event.raw.attributes.iter().any(|(name, value)| name.eq_ignore_ascii_case("ce-type") && !value.is_empty())
}

fn payload(a: &Side<'_>, b: &Side<'_>, notes: &mut Notes) {
    if a.event.raw.data == b.event.raw.data {
        return;
    }
    let (first, second) = (wrapping(a), wrapping(b));
    if first != second {
        notes.note(Why::Written, || format!("wrapping: {first} / {second}"));
    }
    let before = notes.count();
    match (a.interaction(), b.interaction(), a.cloudevent(), b.cloudevent()) {
        (Some(one), Some(other), ..) => {
            values(one.root, other.root, one.echoes_card(), notes);
        }
        (_, _, Some(one), Some(other)) => match (one.data.value(), other.data.value()) {
            (Some(first), Some(second)) => values(first, second, false, notes),
            _ if one.data.digest() != other.data.digest() => {
                notes.note(Why::Content, || "data".to_owned());
            }
            _ => {}
        },
        _ => {}
    }
    if notes.count() == before && first == second {
        let whole = a.interaction().is_some() || is_binary(a) && is_binary(b);
        if whole && numbers(a.unwrapped.bytes()) != numbers(b.unwrapped.bytes()) {
            notes.note(Why::Written, || "numbers that are written differently but are the same double".to_owned());
        } else {
            let name = "order of keys, spaces, escapes, wrapping, or parts that are not read";
            notes.note(Why::Written, || name.to_owned());
        }
    }
}

/// The numbers in a JSON text as they are written, sorted: the parser keeps of those beyond 64 bits only a double.
fn numbers(text: &[u8]) -> Vec<&[u8]> {
    let (mut in_string, mut escaped) = (false, false);
    let is_number = |byte: &u8| {
        let was_string = in_string;
        in_string = was_string != (*byte == b'"' && !escaped);
        escaped = was_string && !escaped && *byte == b'\\';
        !was_string && (byte.is_ascii_digit() || b"+-.eE".contains(byte))
    };
    let flags: Vec<bool> = text.iter().map(is_number).collect();
    let runs = flags.chunk_by(|a, b| a == b);
    let mut at = 0;
    let mut found = Vec::new();
    for run in runs {
        let token = text.get(at..at + run.len()).unwrap_or_default();
        // The letter e of `true` and `false` is no number.
        if run.first() == Some(&true) && token.iter().any(u8::is_ascii_digit) {
            found.push(token);
        }
        at += run.len();
    }
    found.sort_unstable();
    found
}

fn values(first: Value<'_>, second: Value<'_>, cards: bool, notes: &mut Notes) {
    let mut visit = |one: &Found<'_, '_>| {
        let why = match one.nature {
            Nature::Volatile => Why::Volatile,
            Nature::Card => Why::Card,
            Nature::Plain if timed(one.first) == timed(one.second) => Why::Time,
            Nature::Plain => Why::Content,
        };
        notes.note(why, || if one.path.is_empty() { "the whole payload".to_owned() } else { place(one.path) });
    };
    Walk::new(How { volatile: true, cards }, &mut visit).values(first, second);
}

/// Canonical bytes of a value, for the fingerprint.
fn timed(value: Option<Value<'_>>) -> Option<Vec<u8>> {
    let mut canon = Canon::new(Vec::new(), Scrub { volatile: true, times: true, messages: false });
    canon.value(value?);
    Some(canon.into_sink())
}

/// What stands around the event.
fn wrapping(side: &Side<'_>) -> &'static str {
    let (raw, body) = (&side.event.raw.data, side.unwrapped.bytes());
    if side.unwrapped.envelope.is_some() {
        return "in a push envelope";
    }
    match () {
        () if side.event.shape == Shape::CloudEvent && !is_binary(side) => "a structured CloudEvent",
        () if raw == body => "none",
        () if raw.strip_prefix(b"\xef\xbb\xbf") == Some(&body[..]) => "a byte order mark",
        () => match Document::parse(raw.clone()).map(|document| matches!(document.root().kind(), Kind::Text(_))) {
            Ok(true) => "a JSON text in a text",
            Ok(false) | Err(_) => "base64",
        },
    }
}
