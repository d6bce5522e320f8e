//! From merged values to a typed configuration. Whatever is wrong on the way is noted and left out, so that one pass
//! finds everything.

use std::{collections::BTreeMap, fs};

use ::config::{Value, ValueKind};
use serde_json::{Map, Value as Json};

use super::{
    Config,
    problem::{Origin, Problem},
    ranges,
    schema::{self, SECRETS, Schema, join, pattern},
};

/// Values by section, and where each came from.
#[derive(Debug, Default)]
pub(super) struct Tree {
    root: Json,
    origins: BTreeMap<String, Origin>,
}

impl Tree {
    /// Takes over what is known; the rest is a problem each.
    pub(super) fn grow(merged: Value, schema: &Schema, found: &mut Vec<Problem>) -> Self {
        let mut tree = Self::default();
        tree.root = tree.convert("", merged, schema, found).unwrap_or_else(|| Json::Object(Map::new()));
        tree
    }

    fn convert(&mut self, path: &str, value: Value, schema: &Schema, found: &mut Vec<Problem>) -> Option<Json> {
        let origin = Origin::of_tag(value.origin());
        if !path.is_empty() {
            self.origins.insert(path.to_owned(), origin.clone());
        }
        Some(match value.kind {
            ValueKind::Nil => return None,
            ValueKind::Boolean(value) => Json::Bool(value),
            ValueKind::I64(value) => Json::from(value),
            ValueKind::U64(value) => Json::from(value),
            ValueKind::I128(value) => Json::String(value.to_string()),
            ValueKind::U128(value) => Json::String(value.to_string()),
            ValueKind::Float(value) => Json::from(value),
            ValueKind::String(text) => match origin {
                Origin::Env(_) | Origin::Flag(_) => typed(text, schema.sample(path)),
                _ => Json::String(text),
            },
            ValueKind::Array(list) => {
                let elements = list.into_iter().enumerate();
                Json::Array(
                    elements.filter_map(|(i, v)| self.convert(&format!("{path}[{i}]"), v, schema, found)).collect(),
                )
            }
            ValueKind::Table(table) => {
                let known = schema.children(&pattern(path));
                let mut entries: Vec<_> = table.into_iter().collect();
                entries.sort_by(|(a, _), (b, _)| a.cmp(b));
                let mut object = Map::new();
                for (key, value) in entries {
                    let here = join(path, &key);
                    if known.is_some_and(|known| !known.contains(&key)) {
                        found.push(unknown(&here, &value, schema));
                    } else if let Some(value) = self.convert(&here, value, schema, found) {
                        object.insert(key, value);
                    }
                }
                Json::Object(object)
            }
        })
    }

    /// Replaces every `<secret>_file` by what the file holds.
    pub(super) fn read_secrets(&mut self, found: &mut Vec<Problem>) {
        for secret in SECRETS {
            let file_key = format!("{secret}_file");
            let Some(path) = self.take(&file_key) else { continue };
            let origin = self.origin(&file_key);
            let mut refuse = |value: Option<String>, what: String, fix: String| {
                found.push(Problem { key: file_key.clone(), value, origin: origin.clone(), what, fix });
            };
            let Some(path) = path.as_str().map(str::to_owned) else {
                refuse(None, "must be the path of a file".to_owned(), String::new());
                continue;
            };
            if self.get(secret).is_some() {
                let what = format!("{secret} is given too ({})", self.origin(secret));
                refuse(Some(path), what, "give one of the two".to_owned());
                continue;
            }
            match fs::read_to_string(&path) {
                Ok(text) => {
                    let text = text.trim_end_matches(['\n', '\r']);
                    if text.is_empty() {
                        refuse(Some(path), "the file is empty".to_owned(), "write the secret into it".to_owned());
                    } else {
                        self.put(secret, Json::String(text.to_owned()));
                        self.origins.insert((*secret).to_owned(), Origin::SecretFile(path));
                    }
                }
                Err(error) => {
                    let fix = "check the path and its permissions".to_owned();
                    refuse(Some(path), format!("the file can not be read: {error}"), fix);
                }
            }
        }
    }

    /// The typed configuration; what does not fit its type is noted and left at its default.
    pub(super) fn into_config(
        mut self,
        schema: &Schema,
        found: &mut Vec<Problem>,
    ) -> (Config, BTreeMap<String, Origin>) {
        loop {
            let error = match serde_path_to_error::deserialize::<_, Config>(&self.root) {
                Ok(config) => return (config, self.origins),
                Err(error) => error,
            };
            let key = error.path().to_string();
            let value = self.take(&key);
            found.push(Problem {
                value: value.as_ref().map(|value| shown(&key, value)),
                origin: self.origin(&key),
                what: wanted(&key, schema, &error.into_inner().to_string()),
                fix: String::new(),
                key,
            });
            if value.is_none() {
                return (Config::default(), self.origins);
            }
        }
    }

    fn origin(&self, key: &str) -> Origin {
        origin(&self.origins, key)
    }

    fn get(&self, key: &str) -> Option<&Json> {
        self.root.pointer(&pointer(key))
    }

    fn put(&mut self, key: &str, value: Json) {
        if let (Some((section, key)), Some(root)) = (key.split_once('.'), self.root.as_object_mut())
            && let Some(section) = root.entry(section).or_insert_with(|| Json::Object(Map::new())).as_object_mut()
        {
            section.insert(key.to_owned(), value);
        }
    }

    fn take(&mut self, key: &str) -> Option<Json> {
        let pointer = pointer(key);
        let (parent, last) = pointer.rsplit_once('/')?;
        match self.root.pointer_mut(parent)? {
            Json::Object(table) => table.remove(last),
            Json::Array(list) => last.parse().ok().filter(|i| *i < list.len()).map(|i: usize| list.remove(i)),
            _ => None,
        }
    }
}

/// Where a key came from: its own origin, or that of the table or list it stands in.
pub(super) fn origin(origins: &BTreeMap<String, Origin>, key: &str) -> Origin {
    let mut path = key;
    loop {
        if let Some(origin) = origins.get(path) {
            return origin.clone();
        }
        let Some(cut) = path.rfind(['.', '[']) else { return Origin::Default };
        path = &path[..cut];
    }
}

/// `rule[0].match.type` as `/rule/0/match/type`.
pub(super) fn pointer(key: &str) -> String {
    format!("/{}", key.replace(['.', '['], "/").replace(']', ""))
}

/// A URL's user and password are nobody's to read, where a key should not have held them.
pub(super) fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 < at => format!("{}***{}", &text[..scheme + 3], &text[at..]),
        _ => text.to_owned(),
    }
}

/// A value as a problem shows it.
pub(super) fn shown(key: &str, value: &Json) -> String {
    if schema::is_secret(key) && value != "" {
        return "***".to_owned();
    }
    let text = without_password(&value.to_string());
    if text.chars().count() > 80 { text.chars().take(79).chain(['…']).collect() } else { text }
}

/// Environment and flags carry texts only: gives them the type that is wanted, where they have it.
fn typed(text: String, sample: Option<&Json>) -> Json {
    let parsed = match sample {
        Some(Json::Number(_)) => text.trim().parse::<i64>().ok().map(Json::from),
        Some(Json::Bool(_)) => text.trim().parse::<bool>().ok().map(Json::Bool),
        Some(Json::Array(_)) if text.trim_start().starts_with('[') => serde_json::from_str(&text).ok(),
        Some(Json::Array(_)) => Some(Json::Array(vec![Json::String(text.clone())])),
        _ => None,
    };
    parsed.unwrap_or(Json::String(text))
}

fn unknown(path: &str, value: &Value, schema: &Schema) -> Problem {
    let what = if path.contains('.') { "is no setting of bellhop" } else { "is no section of bellhop's configuration" };
    Problem {
        key: path.to_owned(),
        // An unknown key may be a misspelt secret.
        value: None,
        origin: Origin::of_tag(value.origin().or_else(|| first_origin(value))),
        what: what.to_owned(),
        fix: schema.suggest(&pattern(path)),
    }
}

/// Tables that merging made have no origin of their own.
fn first_origin(value: &Value) -> Option<&str> {
    match &value.kind {
        ValueKind::Table(table) => table.values().find_map(|value| value.origin().or_else(|| first_origin(value))),
        _ => None,
    }
}

/// What is allowed at a key, in words.
fn wanted(key: &str, schema: &Schema, message: &str) -> String {
    let pattern = pattern(key);
    if let Some(range) = ranges::range(&pattern) {
        return format!("must be {range}");
    }
    if let Some((_, choices)) = message.split_once(", expected ").filter(|_| message.starts_with("unknown variant")) {
        return format!("must be {}", choices.replace('`', "\""));
    }
    match schema.sample(&pattern) {
        _ if pattern == "server.listen" => "must be an address and a port such as \"0.0.0.0:8080\"".to_owned(),
        _ if pattern.starts_with("rule[].match.") => "must be a text or a list of texts".to_owned(),
        Some(Json::Bool(_)) => "must be true or false".to_owned(),
        Some(Json::Array(_)) => "must be a list".to_owned(),
        Some(Json::String(_)) => "must be a text in quotes".to_owned(),
        None if schema.children(&pattern).is_some() => "must be a section of keys and values".to_owned(),
        _ => "has the wrong type".to_owned(),
    }
}

/// Where a key itself came from. A section that was given says nothing about the keys it leaves out.
pub(super) fn exact_origin(origins: &BTreeMap<String, Origin>, key: &str) -> Origin {
    origins.get(key).cloned().unwrap_or_default()
}
