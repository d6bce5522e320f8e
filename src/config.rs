//! The whole configuration: each component's own section, read from file, environment and flags.
//!
//! Layers, later wins: built-in defaults < file < environment (`BELLHOP__SECTION__KEY`) < flags. Everything that is
//! wrong is reported together, with what is allowed and what to do, before any socket is opened. No other module reads
//! files or the environment. `docs/CONFIGURATION.md` lists every key; a test holds it to the structs.

mod check;
mod computed;
pub mod handler;
mod layers;
pub mod log;
mod problem;
pub mod quarantine;
pub mod ranges;
pub mod reply;
mod schema;
pub mod server;
mod sources;
pub mod store;
#[cfg(test)]
mod tests;
mod tree;
mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::{
    computed::Computed,
    problem::{Origin, Problem, Problems},
    sources::{Environment, Flag, Profile, Sources},
    view::Entry,
};
use crate::{
    claim, event, retry,
    rule::{Rule, Rules},
    source::pubsub,
    worker,
};

/// Every section.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each section is documented at its own struct")]
pub struct Config {
    pub pubsub: pubsub::Config,
    pub worker: worker::Config,
    pub store: store::Config,
    pub claims: claim::Config,
    pub retry: retry::Config,
    pub handler: handler::Config,
    pub rule: Vec<Rule>,
    pub events: event::Config,
    pub reply: reply::Config,
    pub quarantine: quarantine::Config,
    pub server: server::Config,
    pub log: log::Config,
}

/// A configuration that can be used.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// What is odd about them; tell it once.
    pub warnings: Vec<Problem>,
    /// Where each given value came from; what is not here is a default.
    pub origins: BTreeMap<String, Origin>,
    /// The user has nothing against colours on a terminal (`NO_COLOR`).
    pub colours: bool,
}

impl Config {
    /// Reads all layers and checks them for the commands of `sources.profile`.
    ///
    /// # Errors
    /// Everything that is wrong, together.
    pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
        let schema = schema::Schema::new();
        let mut found = Problems::default();
        let read = layers::read(sources, &schema, &mut found.problems, &mut found.warnings);
        if read.file_failed {
            return Err(found);
        }
        let mut tree = tree::Tree::grow(read.merged, &schema, &mut found.problems);
        tree.read_secrets(&mut found.problems);
        let (mut config, mut origins) = tree.into_config(&schema, &mut found.problems);
        emulator(&mut config, &mut origins, &sources.environment, &mut found.problems);
        let found = check::check(&config, &origins, &sources.environment, sources.profile, found);
        if found.problems.is_empty() {
            let colours = sources.environment.get("NO_COLOR").is_none_or(str::is_empty);
            Ok(Loaded { config, warnings: found.warnings, origins, colours })
        } else {
            Err(found)
        }
    }

    /// The rules in the order they are tried: the user's, then the built-in ones.
    #[must_use]
    pub fn rules(&self) -> Rules {
        let handler = &self.handler;
        Rules::new(self.rule.clone(), handler.timeout, handler.on_unknown, &self.retry).then_built_in(&self.events)
    }

    /// What the worker needs: its section, with a parking lot that leaves the handlers their places.
    #[must_use]
    pub fn worker(&self) -> worker::Config {
        worker::Config { parking: self.computed().parking, ..self.worker.clone() }
    }

    /// What follows from the values.
    #[must_use]
    pub fn computed(&self) -> Computed {
        Computed::of(self)
    }
}

/// `PUBSUB_EMULATOR_HOST`, as Google's own client libraries read it.
fn emulator(
    config: &mut Config,
    origins: &mut BTreeMap<String, Origin>,
    environment: &Environment,
    found: &mut Vec<Problem>,
) {
    const VARIABLE: &str = "PUBSUB_EMULATOR_HOST";
    let Some(host) = environment.get(VARIABLE).filter(|host| !host.trim().is_empty()) else { return };
    let origin = Origin::Env(VARIABLE.to_owned());
    match config.pubsub.use_emulator(Some(host), environment.in_kubernetes()) {
        Ok(()) => {
            origins.insert("pubsub.endpoint".to_owned(), origin);
        }
        Err(problem) => found.push(Problem {
            key: format!("pubsub.{}", problem.field),
            value: Some(format!("{host:?}")),
            origin,
            what: problem.message,
            fix: String::new(),
        }),
    }
}
