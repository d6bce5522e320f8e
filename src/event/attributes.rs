//! The attributes of a CloudEvent, where they came: beside its data (binary mode) or around it (structured mode).

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    chat::number_text,
    document::{Kind, Value},
};

const PREFIX: &str = "ce-";

/// Where they are looked up; nothing is copied.
#[derive(Clone, Copy)]
pub(super) enum Attributes<'d> {
    /// Transport attributes named `ce-…`, in any case.
    Binary(&'d BTreeMap<String, String>),
    /// Members of the event.
    Structured(Value<'d>),
}

impl<'d> Attributes<'d> {
    /// The value of one, unless it is empty. Its name begins with `ce-`, as in binary mode.
    pub(super) fn get(self, name: &str) -> Option<Cow<'d, str>> {
        match self {
            Self::Binary(attributes) => lookup(attributes, name).filter(|value| !value.is_empty()).map(Cow::Borrowed),
            Self::Structured(event) => event.get(name.strip_prefix(PREFIX)?).and_then(text),
        }
    }

    /// All of them, by their names without `ce-`.
    pub(super) fn all(self) -> BTreeMap<Cow<'d, str>, Cow<'d, str>> {
        match self {
            Self::Binary(attributes) => binary(attributes),
            Self::Structured(event) => structured(event),
        }
    }
}

/// The value of a transport attribute, whatever the case of its name; the exact name first.
pub(super) fn lookup<'a>(attributes: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let exact = attributes.get(name);
    let other = || attributes.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    exact.or_else(other).map(String::as_str)
}

/// Of names that differ only in case the one counts that [`lookup`] finds: the lower, else the first.
fn binary(attributes: &BTreeMap<String, String>) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    let mut found = BTreeMap::new();
    for (name, value) in attributes {
        let Some((prefix, short)) = name.split_at_checked(PREFIX.len()) else { continue };
        if !prefix.eq_ignore_ascii_case(PREFIX) {
            continue;
        }
        let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
        let short = if is_lower { Cow::Borrowed(short) } else { short.to_ascii_lowercase().into() };
        if is_lower || !found.contains_key(&short) {
            found.insert(short, value.into());
        }
    }
    found
}

fn structured(event: Value<'_>) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    let mut found = BTreeMap::new();
    for (name, value) in event.members() {
        let name = match name {
            b"data" | b"data_base64" => continue,
            b"spec_version" => "specversion",
            name => std::str::from_utf8(name).unwrap_or_default(),
        };
        // Given twice, the last one wins, also when it is no attribute.
        match text(value) {
            Some(text) => found.insert(name.into(), text),
            None => found.remove(name),
        };
    }
    found
}

/// Attributes are strings, booleans and numbers.
fn text(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value.kind() {
        Kind::Text(_) => value.text().map(Cow::Borrowed),
        Kind::Bool(value) => Some(value.to_string().into()),
        _ => number_text(value).map(Cow::Owned),
    }
}
