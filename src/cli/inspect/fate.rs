//! What becomes of each message.

use std::collections::HashMap;

use crate::{
    config::Config,
    event::{Event, EventId, Fingerprint, Shape},
    rule::{Action, Name, Rules},
};

/// Judges messages in the order they come, as a bellhop that has seen none before: the rules first, then the claim.
pub(super) struct Fates {
    rules: Rules,
    /// Who holds the claim of an id is known by its fingerprint.
    claimed: HashMap<EventId, Fingerprint>,
}

/// What becomes of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The handler gets it.
    Handled,
    /// Acked without a claim, by this rule: the id stays free.
    Skipped(Name),
    /// This rule puts it in quarantine.
    Quarantined(Name),
    /// It is no Chat event.
    Undecodable,
    /// One before it claimed its id, with the same content: acked.
    Copy,
    /// One before it claimed its id, with other content: it goes to quarantine.
    Mismatch,
}

impl Fates {
    /// By the rules of a configuration; the default one has the built-in rules alone.
    pub(super) fn new(config: &Config) -> Self {
        Self { rules: config.rules(), claimed: HashMap::new() }
    }

    /// What becomes of `event`, which comes after all that were asked about before.
    pub(super) fn of(&mut self, event: &Event) -> Fate {
        let ruling = self.rules.ruling(event);
        if ruling.action == Action::Skip {
            return Fate::Skipped(ruling.rule);
        }
        if let Some(claimed) = self.claimed.get(&event.id) {
            return if *claimed == event.fingerprint { Fate::Copy } else { Fate::Mismatch };
        }
        self.claimed.insert(event.id.clone(), event.fingerprint);
        match ruling.action {
            _ if event.shape == Shape::Opaque => Fate::Undecodable,
            Action::Quarantine => Fate::Quarantined(ruling.rule),
            Action::Handle | Action::Skip => Fate::Handled,
        }
    }
}

impl Fate {
    /// In JSON.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Handled => "handled",
            Self::Skipped(_) => "skipped",
            Self::Quarantined(_) => "quarantined",
            Self::Undecodable => "undecodable",
            Self::Copy => "copy",
            Self::Mismatch => "mismatch",
        }
    }

    /// In a column: with the rule, where one decides.
    pub(super) fn cell(self) -> String {
        match self {
            Self::Skipped(rule) | Self::Quarantined(rule) => format!("{} ({rule})", self.as_str()),
            _ => self.as_str().to_owned(),
        }
    }

    /// Behind "is" or "are".
    pub(super) fn words(self) -> String {
        match self {
            Self::Handled => "handled".to_owned(),
            Self::Skipped(rule) => format!("skipped by {}", by(rule)),
            Self::Quarantined(rule) => format!("put in quarantine by {}", by(rule)),
            Self::Undecodable => "put in quarantine as undecodable".to_owned(),
            Self::Copy => "acked as a copy".to_owned(),
            Self::Mismatch => "put in quarantine as a mismatch".to_owned(),
        }
    }

    /// True for the one message of an id that holds its claim.
    pub(super) const fn claims(self) -> bool {
        matches!(self, Self::Handled | Self::Quarantined(_) | Self::Undecodable)
    }
}

fn by(rule: Name) -> String {
    match rule {
        Name::BuiltIn(_) => format!("a built-in rule ({rule})"),
        Name::User(_) | Name::Default => format!("a rule ({rule})"),
    }
}
