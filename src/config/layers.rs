//! Reads the layers and lays them on each other; every value keeps where it came from.

mod numbers;

use std::{fs, path::Path};

use ::config::{ConfigError, FileFormat, Format, Map, Source, Value};

use super::{
    Profile, Sources,
    problem::{Origin, Problem},
    schema::{self, Schema},
};

const PREFIX: &str = "BELLHOP__";

/// One layer, keys as paths.
#[derive(Debug, Clone, Default)]
struct Layer(Map<String, Value>);

impl Layer {
    fn put(&mut self, key: &str, value: &str, origin: &Origin) {
        self.0.insert(key.to_owned(), Value::new(Some(&origin.tag()), value));
    }
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.0.clone())
    }
}

/// What was read. A file that could not be read makes every further check meaningless.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) merged: Value,
    pub(super) file_failed: bool,
}

/// All layers above the built-in defaults, merged.
pub(super) fn read(sources: &Sources, schema: &Schema, found: &mut Vec<Problem>, odd: &mut Vec<Problem>) -> Read {
    let before = found.len();
    let file = file(sources, found);
    let file_failed = found.len() > before;
    let layers =
        [profile(sources.profile), file, environment(sources, schema, found, odd), flags(sources, schema, found)];
    let builder = layers.into_iter().fold(::config::Config::builder(), |builder, layer| builder.add_source(layer));
    let merged = builder.build().map(|merged| merged.cache).unwrap_or_else(|error| {
        found.push(whole("configuration", Origin::Default, error.to_string(), ""));
        Value::from(Map::<String, Value>::new())
    });
    Read { merged, file_failed }
}

fn profile(profile: Profile) -> Layer {
    let mut layer = Layer::default();
    if profile == Profile::Demo {
        for (key, value) in [
            ("pubsub.project", "bellhop-demo"),
            ("pubsub.subscription", "chat-events"),
            ("handler.kind", "echo"),
            ("server.listen", "127.0.0.1:0"),
        ] {
            layer.put(key, value, &Origin::Default);
        }
    }
    layer
}

fn file(sources: &Sources, found: &mut Vec<Problem>) -> Layer {
    let Some((path, named_by)) = sources.file() else { return Layer::default() };
    let shown = path.display().to_string();
    let mut refuse = |what: String, fix: &str| found.push(whole(&shown, named_by.clone(), what, fix));
    let Some(format) = format(&path) else {
        refuse("is neither TOML nor YAML by its name".to_owned(), "end its name in .toml, .yaml or .yml");
        return Layer::default();
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            refuse(format!("can not be read: {error}"), "check the path and its permissions");
            return Layer::default();
        }
    };
    let origin = Origin::File(shown.clone()).tag();
    let text = text.trim_start_matches('\u{feff}');
    let parsed = format.parse(Some(&origin), text);
    let tamed = if parsed.is_err() && format == FileFormat::Toml { numbers::tamed(text) } else { None };
    match tamed.map_or(parsed, |text| format.parse(Some(&origin), &text)) {
        Ok(values) => Layer(values),
        Err(error) => {
            refuse(without_source_lines(&error.to_string()), "");
            Layer::default()
        }
    }
}

fn format(path: &Path) -> Option<FileFormat> {
    match path.extension()?.to_str()?.to_lowercase().as_str() {
        "toml" => Some(FileFormat::Toml),
        "yaml" | "yml" => Some(FileFormat::Yaml),
        _ => None,
    }
}

/// A parser's message quotes the line it failed on, and that line may hold a secret.
fn without_source_lines(message: &str) -> String {
    let kept = message.lines().filter(|line| !line.contains(" | ") && !line.trim_end().ends_with('|'));
    kept.collect::<Vec<_>>().join(": ")
}

fn environment(sources: &Sources, schema: &Schema, found: &mut Vec<Problem>, odd: &mut Vec<Problem>) -> Layer {
    let environment = &sources.environment;
    let mut layer = Layer::default();
    // The demo brings its own store: a DATABASE_URL that happens to be set belongs to something else.
    if let (Some(url), true) = (environment.get("DATABASE_URL"), sources.profile != Profile::Demo) {
        layer.put("store.url", url, &Origin::Env("DATABASE_URL".to_owned()));
    }
    for (name, value) in environment.iter() {
        if !is_heard(name, sources.profile) {
            continue;
        }
        if let Some(rest) = name.strip_prefix(PREFIX) {
            let key = rest.to_lowercase().replace("__", ".");
            if schema.is_key(&key) {
                layer.put(&key, value, &Origin::Env(name.to_owned()));
            } else {
                found.push(unknown_variable(name, &key, schema));
            }
        } else if let Some(rest) = name.strip_prefix("BELLHOP_")
            && (rest.contains("__") || schema.keys().any(|key| key.replace('.', "_").eq_ignore_ascii_case(rest)))
        {
            let fix = "settings are written BELLHOP__SECTION__KEY, with two underscores each time";
            odd.push(whole(name, Origin::Env(name.to_owned()), "is not read".to_owned(), fix));
        }
    }
    for name in environment.unreadable().filter(|name| name.starts_with(PREFIX) && is_heard(name, sources.profile)) {
        found.push(whole(name, Origin::Env(name.to_owned()), "is not valid UTF-8".to_owned(), ""));
    }
    layer
}

/// The demo hears only how to log: what is set for a real run would point it at real subscriptions, stores and handlers.
fn is_heard(name: &str, profile: Profile) -> bool {
    profile != Profile::Demo || !name.starts_with("BELLHOP_") || name.starts_with("BELLHOP__LOG__")
}

fn unknown_variable(name: &str, key: &str, schema: &Schema) -> Problem {
    let mut fix = schema.suggest(key);
    if let Some(near) = fix.strip_prefix("did you mean `").and_then(|rest| rest.strip_suffix("`?"))
        && schema.is_key(near)
    {
        fix = format!("did you mean {PREFIX}{}?", near.to_uppercase().replace('.', "__"));
    }
    if key.starts_with("rule.") {
        "rules are given all together: BELLHOP__RULE='[{\"match\": {…}, …}]'".clone_into(&mut fix);
    }
    whole(name, Origin::Default, "is no setting of bellhop".to_owned(), &fix)
}

fn flags(sources: &Sources, schema: &Schema, found: &mut Vec<Problem>) -> Layer {
    let mut layer = Layer::default();
    for flag in &sources.flags {
        let origin = Origin::Flag(flag.name.clone());
        if schema.is_key(&flag.key) {
            layer.put(&flag.key, &flag.value, &origin);
        } else {
            let fix = schema.suggest(&schema::pattern(&flag.key));
            found.push(whole(&flag.key, origin, "is no setting of bellhop".to_owned(), &fix));
        }
    }
    layer
}

/// A problem without a value that could be shown.
pub(super) fn whole(key: &str, origin: Origin, what: String, fix: &str) -> Problem {
    Problem { key: key.to_owned(), value: None, origin, what, fix: fix.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parse_error_never_quotes_the_file() {
        let error = FileFormat::Toml.parse(None, "[store]\nurl = \"postgres://u:hunter2@db/x\n").unwrap_err();

        let message = without_source_lines(&error.to_string());

        assert!(!message.contains("hunter2"), "{message}");
        assert!(message.starts_with("TOML parse error at line 2"), "{message}");
    }
}
