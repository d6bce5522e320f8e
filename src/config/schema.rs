//! The keys there are, read off the structs themselves, so that no list of names can go stale.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Config;
use crate::rule::{Match, OnUnknown, Pattern, Rule};

/// Keys whose values are never shown; each can also be given as `<key>_file`.
pub(super) const SECRETS: &[&str] =
    &["store.url", "store.migrate_url", "handler.signing_secret", "handler.bearer_token"];

/// Every key by its section, and an example of each value's type. List elements are written `rule[]`.
#[derive(Debug)]
pub(super) struct Schema {
    children: BTreeMap<String, Vec<String>>,
    samples: BTreeMap<String, Value>,
}

impl Schema {
    pub(super) fn new() -> Self {
        let mut schema = Self { children: BTreeMap::new(), samples: BTreeMap::new() };
        let sample = Config { rule: vec![full_rule()], ..Config::default() };
        let sample = serde_json::to_value(sample).unwrap_or_default();
        schema.learn("", &sample);
        for secret in SECRETS {
            let file_key = format!("{secret}_file");
            if let Some((section, key)) = file_key.split_once('.') {
                schema.children.entry(section.to_owned()).or_default().push(key.to_owned());
            }
            schema.samples.insert(file_key, Value::String(String::new()));
        }
        schema
    }

    fn learn(&mut self, path: &str, value: &Value) {
        match value {
            Value::Object(table) => {
                for (key, value) in table {
                    self.children.entry(path.to_owned()).or_default().push(key.clone());
                    self.learn(&join(path, key), value);
                }
            }
            Value::Array(list) => {
                self.samples.insert(path.to_owned(), value.clone());
                if let Some(element) = list.first() {
                    self.learn(&format!("{path}[]"), element);
                }
            }
            scalar => {
                self.samples.insert(path.to_owned(), scalar.clone());
            }
        }
    }

    /// The keys of a table; `None` where the path is no table.
    pub(super) fn children(&self, pattern: &str) -> Option<&[String]> {
        self.children.get(pattern).map(Vec::as_slice)
    }

    /// A value of the type that is wanted at a path; `None` for tables and unknown keys.
    pub(super) fn sample(&self, pattern: &str) -> Option<&Value> {
        self.samples.get(pattern)
    }

    /// Every key that holds a value.
    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.samples.keys()
    }

    /// True for a key that can be given in the environment or by a flag: not a table, not inside a list.
    pub(super) fn is_key(&self, key: &str) -> bool {
        !key.contains('[') && self.samples.contains_key(key)
    }

    /// What a user who wrote `key` may have meant: the nearest key of the same table, or where the same name stands.
    pub(super) fn suggest(&self, pattern: &str) -> String {
        let (table, name) = pattern.rsplit_once('.').unwrap_or(("", pattern));
        let Some(known) = self.children(table) else {
            let known = self.children("").unwrap_or_default();
            return nearest(table, known).map_or_else(
                || format!("sections are {}", known.join(", ")),
                |near| format!("did you mean [{near}]?"),
            );
        };
        if let Some(near) = nearest(name, known) {
            return if table.is_empty() {
                format!("did you mean [{near}]?")
            } else {
                format!("did you mean `{table}.{near}`?")
            };
        }
        let elsewhere = self.samples.keys().find(|key| key.rsplit_once('.').is_some_and(|(_, last)| last == name));
        elsewhere.map_or_else(
            || format!("known here: {}", known.join(", ")),
            |elsewhere| format!("did you mean `{elsewhere}`?"),
        )
    }
}

/// `section` + `key`.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// `rule[3].timeout` as `rule[].timeout`.
pub(super) fn pattern(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// True for a key whose value is never shown.
pub(super) fn is_secret(key: &str) -> bool {
    SECRETS.contains(&key)
}

/// The most similar name, if any is similar enough to be meant.
pub(super) fn nearest<'a, S: AsRef<str>>(name: &str, known: &'a [S]) -> Option<&'a str> {
    known
        .iter()
        .map(|known| (strsim::jaro_winkler(&name.to_lowercase(), &known.as_ref().to_lowercase()), known.as_ref()))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, known)| known)
}

/// A rule with everything given: what is optional must be known too.
fn full_rule() -> Rule {
    let any = || Some(Pattern::One(String::new()));
    Rule {
        matches: Match { event_type: any(), command: any(), action: any(), space: any(), user: any(), sender: any() },
        timeout: Some(std::time::Duration::from_secs(1)),
        on_unknown: Some(OnUnknown::Rerun),
        max_failures: Some(1),
        ..Rule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_known_and_rules_have_theirs() {
        let schema = Schema::new();

        for key in ["worker.drain_timeout", "store.url", "store.url_file", "rule", "pubsub.project"] {
            assert!(schema.is_key(key), "{key}");
        }
        assert!(!schema.is_key("worker"));
        assert!(schema.sample("rule[].match.command").is_some());
        assert_eq!(schema.children("rule[]").unwrap(), ["match", "action", "timeout", "on_unknown", "max_failures"]);
    }

    #[test]
    fn a_wrong_name_gets_the_nearest_of_its_section() {
        let schema = Schema::new();

        assert_eq!(schema.suggest("worker.concurency"), "did you mean `worker.concurrency`?");
        assert_eq!(schema.suggest("wroker.parking"), "did you mean [worker]?");
        assert_eq!(schema.suggest("rule[].match.typ"), "did you mean `rule[].match.type`?");
        assert_eq!(schema.suggest("worker.subscription"), "did you mean `pubsub.subscription`?");
        assert!(schema.suggest("log.zzz").starts_with("known here: format, level"));
    }
}
