//! docs/CONFIGURATION.md and the example say what the code does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    super::{
        ranges,
        schema::{SECRETS, Schema},
    },
    *,
};

/// The rows of the tables: key → (default, allowed).
fn rows() -> BTreeMap<String, (String, String)> {
    let text = project_file("docs/CONFIGURATION.md");
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, key, default, allowed, meaning, _] = cells[..] else { panic!("not four columns: {line}") };
        assert!(!allowed.is_empty() && !meaning.is_empty(), "{line}");
        let old = rows.insert(key.replace('`', ""), (default.replace('`', ""), allowed.to_owned()));
        assert!(old.is_none(), "twice: {key}");
    }
    rows
}

/// What two spellings of a value have in common: `"60s"` and `"1m"` are one duration.
fn meaning(text: &str) -> String {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("not a value: {text}"));
    let Some(text) = value.as_str() else { return value.to_string() };
    let time = humantime::parse_duration(text).map(|time| format!("{time:?}"));
    let size = text.parse::<bytesize::ByteSize>().map(|size| size.as_u64().to_string());
    time.or(size).unwrap_or_else(|_| text.to_owned())
}

#[test]
fn every_key_is_documented_and_every_documented_key_exists() {
    let schema = Schema::new();
    let mut known: BTreeSet<String> = schema.keys().cloned().collect();
    known.insert("rule[].match".to_owned());

    let documented: BTreeSet<String> = rows().into_keys().collect();

    let missing: Vec<_> = known.difference(&documented).collect();
    let invented: Vec<_> = documented.difference(&known).collect();
    assert!(missing.is_empty() && invented.is_empty(), "missing: {missing:?}, invented: {invented:?}");
}

#[test]
fn every_documented_default_and_range_is_the_real_one() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    for (key, (default, allowed)) in rows() {
        if let Some(value) = defaults.pointer(&format!("/{}", key.replace('.', "/"))) {
            assert_eq!(meaning(&default), meaning(&value.to_string()), "default of {key}");
        } else {
            assert_eq!(default, "", "default of {key}");
        }
        if let Some(range) = ranges::range(&key) {
            assert_eq!(allowed, range.to_string(), "range of {key}");
        }
        assert_eq!(allowed.contains("secret"), SECRETS.contains(&key.as_str()), "{key}");
    }
}

#[test]
fn every_default_lies_in_its_range() {
    let defaults = serde_json::to_value(Config::default()).unwrap();
    for (key, range) in ranges::RANGES {
        if let Some(value) = defaults.pointer(&format!("/{}", key.replace('.', "/"))) {
            assert!(range.admits(value), "{key} = {value}");
        }
    }
}

#[test]
fn the_example_is_valid_and_shows_every_key_at_its_default() {
    let text = project_file("config/bellhop.example.toml");

    let loaded = load(&text, &[], &[]).unwrap();

    assert_eq!(loaded.warnings, []);
    let needed = ["pubsub.project", "pubsub.subscription", "store.url", "rule"];
    let defaults = Loaded { config: Config::default(), ..loaded.clone() };
    for (entry, default) in loaded.entries().into_iter().zip(defaults.entries()) {
        let shown = loaded.origins.contains_key(&entry.key)
            || text.contains(&entry.key.replace("handler.", "# "))
            || text.contains(&entry.key.replace("store.", "# "));
        assert!(shown, "{} is not in the example", entry.key);
        if !needed.contains(&entry.key.as_str()) {
            assert_eq!(entry.value, default.value, "{}", entry.key);
        }
    }
}
