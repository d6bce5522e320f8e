//! What one configuration must hold beyond the types of its keys: limits, what needs what, what contradicts what.

mod handler;
mod limits;
mod pubsub;
mod rules;
mod store;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;

use super::{
    Config, Environment, Profile,
    problem::{Origin, Problem, Problems},
    ranges::RANGES,
    tree,
};

/// One configuration under examination.
struct Check<'a> {
    config: &'a Config,
    /// The same as shown to users: secrets are `***`.
    values: Value,
    origins: &'a BTreeMap<String, Origin>,
    environment: &'a Environment,
    profile: Profile,
    /// Keys that are known to be wrong: what stands at them is a default nobody asked for.
    spoiled: BTreeSet<String>,
    found: Problems,
}

/// Adds to `found` what is wrong with `config`, and what is odd.
pub(super) fn check(
    config: &Config,
    origins: &BTreeMap<String, Origin>,
    environment: &Environment,
    profile: Profile,
    found: Problems,
) -> Problems {
    let spoiled = found.problems.iter().map(|problem| problem.key.trim_end_matches("_file").to_owned()).collect();
    let values = serde_json::to_value(config).unwrap_or_default();
    let mut check = Check { config, values, origins, environment, profile, spoiled, found };
    check.ranges();
    if matches!(profile, Profile::Run | Profile::Demo) {
        check.pubsub();
        check.limits();
        check.handler();
        check.rules();
    }
    if profile != Profile::Probe {
        check.store();
    }
    check.log();
    check.found
}

impl Check<'_> {
    /// Notes a problem, unless the key was found wrong before.
    fn problem(&mut self, key: &str, what: impl Into<String>, fix: impl Into<String>) {
        if !self.spoiled.contains(key) {
            let problem = self.note(key, what.into(), fix.into());
            self.found.problems.push(problem);
        }
    }

    /// Notes what is odd, but not wrong.
    fn warning(&mut self, key: &str, what: impl Into<String>, fix: impl Into<String>) {
        if !self.spoiled.contains(key) {
            let problem = self.note(key, what.into(), fix.into());
            self.found.warnings.push(problem);
        }
    }

    fn note(&self, key: &str, what: String, fix: String) -> Problem {
        let given = self.origins.contains_key(key);
        let value = self.values.pointer(&tree::pointer(key)).filter(|value| given || *value != "");
        let value = value.map(|value| tree::shown(key, value));
        let value = if given { value } else { value.map(|value| format!("{value} (default)")) };
        let origin = self.origins.get(key).cloned().unwrap_or_default();
        Problem { key: key.to_owned(), value, origin, what, fix }
    }

    /// True when some layer gave the key.
    fn given(&self, key: &str) -> bool {
        self.origins.contains_key(key)
    }

    fn ranges(&mut self) {
        let mut beyond = Vec::new();
        for (pattern, range) in RANGES {
            for (key, value) in self.at(pattern) {
                if !range.admits(&value) {
                    beyond.push((key, range));
                }
            }
        }
        for (key, range) in beyond {
            self.problem(&key, format!("must be {range}"), "");
            self.spoiled.insert(key);
        }
    }

    /// The values at a pattern: one, or one for each list element that has it.
    fn at(&self, pattern: &str) -> Vec<(String, Value)> {
        let Some((list, key)) = pattern.split_once("[].") else {
            return self
                .values
                .pointer(&tree::pointer(pattern))
                .map(|v| (pattern.to_owned(), v.clone()))
                .into_iter()
                .collect();
        };
        let elements = self.values.get(list).and_then(Value::as_array).into_iter().flatten().enumerate();
        elements.filter_map(|(i, element)| Some((format!("{list}[{i}].{key}"), element.get(key)?.clone()))).collect()
    }

    fn log(&mut self) {
        let level = |text: &str| text.trim().parse::<LevelFilter>().is_ok();
        let directive = |text: &str| match text.split_once('=') {
            Some((target, text)) => !target.trim().is_empty() && level(text),
            None => level(text),
        };
        if !self.config.log.level.split(',').all(directive) {
            let what = "must be error, warn, info, debug, trace or off, also per target (\"info,sqlx=warn\")";
            self.problem("log.level", what, "");
        }
    }

    /// True when anything under a key was found wrong before.
    fn is_spoiled(&self, start: &str) -> bool {
        self.spoiled.iter().any(|key| key.starts_with(start))
    }
}
