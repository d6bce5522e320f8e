//! The parts of two ids that differ.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    super::{Basis, Event, chat::Interaction, document::Value},
    Listed, Part, Side,
    readable::{NONE, bounded, discreet, pair, place, plain, quoted, shown, summary, time, visible},
    walk::{Found, How, Nature, Step, Walk},
};

/// What differs, in the order of the fields.
pub(super) fn parts(a: &Side<'_>, b: &Side<'_>) -> Listed<Part> {
    let mut parts = Listed::new();
    if a.kind() != b.kind() {
        put(&mut parts, "-", "kind of event", a.kind(), b.kind());
    }
    for name in names(a.event, b.event) {
        let (first, second) = (value(a.event, name), value(b.event, name));
        if first == second {
            continue;
        }
        let before = parts.shown.len() + parts.more;
        let both = first.is_some() && second.is_some();
        match name {
            // Whatever the payload of a side holds: its id may be made without it.
            "a" => action(first.and(a.interaction()), second.and(b.interaction()), &mut parts),
            "d" if both => content(a, b, &mut parts),
            "at" if both => attributes(a, b, &mut parts),
            "x" if a.message_id.is_empty() && b.message_id.is_empty() => body(a, b, &mut parts),
            _ => {}
        }
        if parts.shown.len() + parts.more == before {
            put(&mut parts, name, about(name), &told_of(a, name, first), &told_of(b, name, second));
        }
    }
    parts
}

/// The value of a field. What is no text of the event but a digest says what of.
fn told_of(side: &Side<'_>, name: &str, value: Option<&str>) -> String {
    let Some(value) = value else { return NONE.to_owned() };
    match name {
        "e" | "v" | "time" => time(value),
        "a" if nothing_behind(side) => "(no action, no inputs)".to_owned(),
        "at" if side.attributes.is_empty() => "(no attributes)".to_owned(),
        "a" | "d" | "at" => format!("(digest {}…)", value.get(..8).unwrap_or(value)),
        "x" if side.message_id.is_empty() => {
            format!("(no message id; payload of {})", summary(side.unwrapped.bytes()))
        }
        _ => visible(value),
    }
}

fn nothing_behind(side: &Side<'_>) -> bool {
    let mut parts = Listed::new();
    action(side.interaction(), None, &mut parts);
    parts.is_empty()
}

fn put(parts: &mut Listed<Part>, field: &str, name: &str, first: &str, second: &str) {
    put_with(parts, field, || (name.to_owned(), first.to_owned(), second.to_owned()));
}

/// Name and both values are made only when there is room for them: a payload may differ in a million places.
fn put_with(parts: &mut Listed<Part>, field: &str, make: impl FnOnce() -> (String, String, String)) {
    parts.push_with(|| {
        let (name, first, second) = make();
        let (first, second) = pair(&first, &second);
        Part { field: field.to_owned(), name, first, second }
    });
}

/// The names of the fields of both, in order.
fn names<'e>(a: &'e Event, b: &'e Event) -> Vec<&'e str> {
    let mut names: Vec<&str> = a.fields.iter().map(|(name, _)| name).collect();
    let others: Vec<&str> = b.fields.iter().map(|(name, _)| name).filter(|name| !names.contains(name)).collect();
    names.extend(others);
    names
}

fn value<'e>(event: &'e Event, name: &str) -> Option<&'e str> {
    event.fields.iter().find(|(other, _)| *other == name).and_then(|(_, value)| value)
}

/// What a field holds.
fn about(name: &str) -> &'static str {
    match name {
        "t" => "type",
        "s" => "space",
        "u" => "user",
        "m" => "message name",
        "v" => "last edit",
        "h" => "thread",
        "e" => "event time",
        "g" => "dialog",
        "c" => "command",
        "a" => "action and inputs (digest)",
        "p" => "payload keys",
        "d" => "content (digest)",
        "x" => "message id",
        "at" => "attributes (digest)",
        "id" => "CloudEvent id",
        "src" => "CloudEvent source",
        "sub" => "CloudEvent subject",
        "time" => "CloudEvent time",
        _ => "",
    }
}

/// Behind field a: the function, every parameter, every input.
pub(super) fn action(a: Option<&Interaction<'_>>, b: Option<&Interaction<'_>>, parts: &mut Listed<Part>) {
    let function = |side: Option<&Interaction<'_>>| {
        side.and_then(|side| Some(quoted(side.function()?.as_bytes()))).unwrap_or_else(|| NONE.to_owned())
    };
    let (first, second) = (function(a), function(b));
    if first != second {
        put(parts, "a", "action", &first, &second);
    }
    let (first, second) = (parameters(a), parameters(b));
    let keys: BTreeSet<_> = first.keys().chain(second.keys()).collect();
    for key in keys {
        let values = |side: &BTreeMap<String, String>| side.get(key).cloned().unwrap_or_else(|| NONE.to_owned());
        let (first, second) = (values(&first), values(&second));
        if first != second {
            put(parts, "a", &bounded(&format!("parameter {key}")), &first, &second);
        }
    }
    inputs(a.and_then(Interaction::form_inputs), b.and_then(Interaction::form_inputs), parts);
}

fn inputs(first: Option<Value<'_>>, second: Option<Value<'_>>, parts: &mut Listed<Part>) {
    let (Some(a), Some(b)) = (first, second) else {
        // Inputs that only one of the two has.
        for (name, value) in first.map(leaves).unwrap_or_default() {
            put(parts, "a", &name, &value, NONE);
        }
        for (name, value) in second.map(leaves).unwrap_or_default() {
            put(parts, "a", &name, NONE, &value);
        }
        return;
    };
    let mut visit = |found: &Found<'_, '_>| {
        put_with(parts, "a", || (input(found.path), shown(found.first), shown(found.second)));
    };
    Walk::new(How::default(), &mut visit).values(a, b);
}

fn input(path: &[Step<'_>]) -> String {
    if path.is_empty() { "inputs".to_owned() } else { format!("input {}", place(path)) }
}

/// Every value of form inputs; `{}` counts as no inputs at all.
fn leaves(inputs: Value<'_>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if !inputs.is_object() || inputs.members().next().is_some() {
        inside(&mut Vec::new(), inputs, &mut found);
    }
    found
}

fn inside<'d>(path: &mut Vec<Step<'d>>, value: Value<'d>, found: &mut Vec<(String, String)>) {
    let children: Vec<(Step<'d>, Value<'d>)> = value
        .last_members()
        .into_iter()
        .map(|(key, value)| (Step::Key(key), value))
        .chain(value.elements().enumerate().map(|(index, value)| (Step::Index(index), value)))
        .collect();
    if children.is_empty() {
        found.push((input(path), shown(Some(value))));
    }
    for (step, value) in children {
        path.push(step);
        inside(path, value, found);
        path.pop();
    }
}

/// The values of every parameter by its key; a key may come more than once.
fn parameters(side: Option<&Interaction<'_>>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (key, value) in side.map(Interaction::parameters).unwrap_or_default() {
        let value = value.map_or_else(|| quoted(b""), |value| shown(Some(value)));
        let values = found.entry(quoted(key)).or_default();
        if !values.is_empty() {
            values.push_str(", ");
        }
        values.push_str(&value);
    }
    found
}

/// Behind field d: the event without volatile members, or a CloudEvent's data as it is, or bytes.
fn content(a: &Side<'_>, b: &Side<'_>, parts: &mut Listed<Part>) {
    if a.event.basis == Basis::Opaque && b.event.basis == Basis::Opaque {
        return put(parts, "d", "payload", &summary(&a.event.raw.data), &summary(&b.event.raw.data));
    }
    let values = match (a.interaction(), b.interaction(), a.cloudevent(), b.cloudevent()) {
        (Some(a), Some(b), ..) => Some((a.root, b.root)),
        (_, _, Some(a), Some(b)) => a.data.value().zip(b.data.value()),
        _ => None,
    };
    let Some((first, second)) = values else { return };
    let how = How { volatile: a.interaction().is_some(), cards: false };
    let mut visit = |found: &Found<'_, '_>| {
        if found.nature != Nature::Volatile {
            put_with(parts, "d", || told("content", found));
        }
    };
    Walk::new(how, &mut visit).values(first, second);
}

fn told(what: &str, found: &Found<'_, '_>) -> (String, String, String) {
    let place = format!("{what} {}", place(found.path));
    (place, discreet(found.path, found.first), discreet(found.path, found.second))
}

/// Behind field at.
fn attributes(a: &Side<'_>, b: &Side<'_>, parts: &mut Listed<Part>) {
    let (first, second) = (a.attributes, b.attributes);
    let names: BTreeSet<_> = first.keys().chain(second.keys()).collect();
    for name in names {
        let value = |side: Option<&String>| side.map_or_else(|| NONE.to_owned(), |text| quoted(text.as_bytes()));
        let (first, second) = (first.get(name), second.get(name));
        if first != second {
            let name = bounded(&plain(&format!("attribute {name}")));
            put(parts, "at", &name, &value(first), &value(second));
        }
    }
}

/// Behind field x where no message id is known: the bytes of the event.
fn body(a: &Side<'_>, b: &Side<'_>, parts: &mut Listed<Part>) {
    let (first, second) = (summary(a.unwrapped.bytes()), summary(b.unwrapped.bytes()));
    put(parts, "x", "payload, as there is no message id", &first, &second);
    let documents = (a.unwrapped.document(), b.unwrapped.document());
    if let (Some(first), Some(second)) = documents {
        let mut visit = |found: &Found<'_, '_>| {
            put_with(parts, "x", || told("payload", found));
        };
        Walk::new(How::default(), &mut visit).values(first.root(), second.root());
    }
}
