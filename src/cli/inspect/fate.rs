//! What becomes of an event before any handler is called.

use crate::{
    config::Config,
    event::{self, Event, Shape},
    rule::{self, Action, Rules},
};

/// The rules that decide it.
pub(super) struct Fates {
    rules: Rules,
    events: event::Config,
    /// Only the built-in ones: then the one that skips can be named.
    only_built_in: bool,
}

/// What becomes of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The handler gets it.
    Handled,
    /// Acked without a claim; the key of the built-in rule that says so, where it is one.
    Skipped(Option<&'static str>),
    /// A rule puts it in quarantine.
    Quarantined,
    /// It is no Chat event.
    Undecodable,
}

impl Fates {
    /// Of a configuration; the default one has the built-in rules alone.
    pub(super) fn new(config: &Config) -> Self {
        Self { rules: config.rules(), events: config.events.clone(), only_built_in: config.rule.is_empty() }
    }

    /// What becomes of `event`.
    pub(super) fn of(&self, event: &Event) -> Fate {
        match self.rules.ruling(event).action {
            Action::Skip => {
                let named = || rule::built_in_for(&self.events, event);
                Fate::Skipped(if self.only_built_in { named() } else { None })
            }
            _ if event.shape == Shape::Opaque => Fate::Undecodable,
            Action::Quarantine => Fate::Quarantined,
            Action::Handle => Fate::Handled,
        }
    }
}

impl Fate {
    /// In JSON.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Handled => "handled",
            Self::Skipped(_) => "skipped",
            Self::Quarantined => "quarantined",
            Self::Undecodable => "undecodable",
        }
    }

    /// Behind "is" or "are".
    pub(super) fn words(self) -> String {
        match self {
            Self::Handled => "handled".to_owned(),
            Self::Skipped(Some(name)) => format!("skipped by a built-in rule (events.{name})"),
            Self::Skipped(None) => "skipped by a rule".to_owned(),
            Self::Quarantined => "put in quarantine by a rule".to_owned(),
            Self::Undecodable => "put in quarantine as undecodable".to_owned(),
        }
    }
}
