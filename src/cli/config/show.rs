//! `bellhop config show`

use serde_json::{Map, Value, json};

use super::super::{Exit, Output, Settings, output};
use crate::{
    config::{Entry, Loaded, Origin, Profile},
    rule,
};

/// How to show it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Form of the answer; toml can be used as a configuration file once secrets are filled in
    #[arg(long, short, value_enum, default_value = "table")]
    output: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Table,
    Toml,
    Json,
}

impl Args {
    pub(super) const fn errors_as(&self) -> Output {
        match self.output {
            Form::Json => Output::Json,
            Form::Table | Form::Toml => Output::Table,
        }
    }
}

/// Prints what is in effect; a configuration with problems has no effect.
pub(super) fn run(args: Args, settings: Settings) -> anyhow::Result<Exit> {
    let loaded = settings.load(Profile::Run)?;
    let text = match args.output {
        Form::Table => table(&loaded),
        Form::Toml => toml(&loaded),
        Form::Json => format!("{}\n", json(&loaded)),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}

fn built_in(loaded: &Loaded) -> impl Iterator<Item = (&'static str, Value)> {
    let rules = rule::built_in(&loaded.config.events);
    rules.into_iter().map(|(name, rule)| (name, serde_json::to_value(rule).unwrap_or_default()))
}

fn computed(loaded: &Loaded) -> Map<String, Value> {
    match serde_json::to_value(loaded.config.computed()) {
        Ok(Value::Object(computed)) => computed,
        _ => Map::new(),
    }
}

fn table(loaded: &Loaded) -> String {
    let mut rows = vec![vec!["KEY".to_owned(), "VALUE".to_owned(), "FROM".to_owned()]];
    for Entry { key, value, origin, .. } in loaded.entries() {
        match value.as_array().filter(|_| key == "rule") {
            Some(rules) => rows.extend(
                rules
                    .iter()
                    .enumerate()
                    .map(|(i, rule)| vec![format!("rule[{i}]"), rule.to_string(), origin.to_string()]),
            ),
            None => rows.push(vec![key, value.to_string(), origin.to_string()]),
        }
    }
    for (name, rule) in built_in(loaded) {
        rows.push(vec!["rule (built in)".to_owned(), rule["match"].to_string(), format!("events.{name}")]);
    }
    for (name, value) in computed(loaded) {
        rows.push(vec![name, value.to_string(), "computed".to_owned()]);
    }
    output::table(&rows)
}

fn json(loaded: &Loaded) -> Value {
    let origin = |entry: Entry| (entry.key, json!({"layer": entry.origin.layer(), "name": entry.origin}));
    let rules: Vec<_> =
        built_in(loaded).map(|(name, rule)| json!({"switch": format!("events.{name}"), "rule": rule})).collect();
    json!({
        "version": 1,
        "values": loaded.config,
        "origins": loaded.entries().into_iter().map(origin).collect::<Map<_, _>>(),
        "built_in_rules": rules,
        "computed": computed(loaded),
        "warnings": loaded.warnings,
    })
}

fn toml(loaded: &Loaded) -> String {
    let mut text = String::new();
    let mut section = String::new();
    let mut rules = Vec::new();
    for entry in loaded.entries() {
        let Some((table, key)) = entry.key.split_once('.') else {
            rules = entry.value.as_array().cloned().unwrap_or_default();
            continue;
        };
        if table != section {
            text.push_str(&format!("\n[{table}]\n"));
            table.clone_into(&mut section);
        }
        if entry.is_secret && entry.value == "" {
            // "Given but empty" is refused, so an empty one is left out.
            text.push_str(&format!("# {key} is not given\n"));
            continue;
        }
        let from = if entry.origin == Origin::Default { String::new() } else { format!("  # {}", entry.origin) };
        text.push_str(&format!("{key} = {}{from}\n", toml_value(&entry.value)));
    }
    for rule in &rules {
        text.push_str("\n[[rule]]\n");
        for (key, value) in rule.as_object().into_iter().flatten() {
            text.push_str(&format!("{key} = {}\n", toml_value(value)));
        }
    }
    text.push_str("\n# Built-in rules stand after these:\n");
    for (name, rule) in built_in(loaded) {
        text.push_str(&format!("# events.{name}: match = {}, action = \"skip\"\n", toml_value(&rule["match"])));
    }
    text.push_str("\n# Computed:\n");
    for (name, value) in computed(loaded) {
        text.push_str(&format!("# {name} = {}\n", toml_value(&value)));
    }
    text.trim_start().to_owned()
}

/// JSON texts, numbers and lists are TOML; tables are written inline.
fn toml_value(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let pairs: Vec<_> = table.iter().map(|(key, value)| format!("{key} = {}", toml_value(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(toml_value).collect::<Vec<_>>().join(", ")),
        Value::String(text) => Value::from(text.as_str()).to_string().replace('\u{7f}', "\\u007f"),
        scalar => scalar.to_string(),
    }
}
