//! Which rule applies to an event: the first that matches. Pure.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{claim::Budget, event::Event, retry};

/// What an unknown outcome means for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnUnknown {
    /// Run it again: the handler recognises repeats.
    #[default]
    Rerun,
    /// Never run it again by machine (strict): ask a human.
    Quarantine,
}

impl OnUnknown {
    /// The name in configuration and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rerun => "rerun",
            Self::Quarantine => "quarantine",
        }
    }
}

/// What a rule does with its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Call the handler.
    #[default]
    Handle,
    /// Ack without a claim.
    Skip,
    /// Put it in quarantine without calling the handler.
    Quarantine,
}

/// One value or several; each may end in `*` to match any ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pattern {
    /// One value.
    One(String),
    /// Any of these.
    Any(Vec<String>),
}

impl Pattern {
    fn matches(&self, value: &str) -> bool {
        let one = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => value.starts_with(start),
            None => value == pattern,
        };
        match self {
            Self::One(pattern) => one(pattern),
            Self::Any(patterns) => patterns.iter().any(one),
        }
    }
}

/// What an event must have for a rule to apply: everything given here.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Match {
    /// The event type, `MESSAGE` or `google.workspace.chat.message.*`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<Pattern>,
    /// The command: its name (`/restart`) or its id (`7`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Pattern>,
    /// The invoked card action or function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Pattern>,
    /// `spaces/…`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<Pattern>,
    /// `users/…`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Pattern>,
    /// `HUMAN` or `BOT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Pattern>,
}

impl Match {
    fn matches(&self, event: &Event) -> bool {
        let chat = &event.chat;
        let command = |pattern: &Pattern| {
            chat.command.as_ref().is_some_and(|command| {
                pattern.matches(&command.id) || command.name.as_deref().is_some_and(|name| pattern.matches(name))
            })
        };
        fits(self.event_type.as_ref(), Some(&event.event_type))
            && self.command.as_ref().is_none_or(command)
            && fits(self.action.as_ref(), chat.action.as_ref())
            && fits(self.space.as_ref(), chat.space.as_ref())
            && fits(self.user.as_ref(), chat.user.as_ref())
            && fits(self.sender.as_ref(), chat.sender_type.as_ref())
    }
}

fn fits(pattern: Option<&Pattern>, value: Option<&String>) -> bool {
    pattern.is_none_or(|pattern| value.is_some_and(|value| pattern.matches(value)))
}

/// One `[[rule]]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// Which events; empty = all.
    #[serde(rename = "match")]
    pub matches: Match,
    /// What to do with them.
    pub action: Action,
    /// Instead of `handler.timeout`.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Instead of `handler.on_unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknown>,
    /// Instead of `retry.max_failures`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<u16>,
}

/// Which rule applied, as the configuration names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// `rule[0]`, `rule[1]`, …: a `[[rule]]` of the user.
    User(usize),
    /// A built-in rule, by the key under `[events]` that switches it off.
    BuiltIn(&'static str),
    /// No rule matched: the handler's own settings.
    Default,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(index) => write!(f, "rule[{index}]"),
            Self::BuiltIn(key) => write!(f, "events.{key}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// What applies to one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// By which rule.
    pub rule: Name,
    /// What to do with it.
    pub action: Action,
    /// How long its handler may take.
    pub timeout: Duration,
    /// Never run again by machine when its outcome is unknown.
    pub strict: bool,
    /// How often it may fail.
    pub budget: Budget,
}

/// The user's rules, then the built-in ones, then the defaults.
#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<(Name, Rule)>,
    default: Ruling,
}

impl Rules {
    /// Rules in the order they are tried; `timeout` and `on_unknown` are the handler's own.
    #[must_use]
    pub fn new(rules: Vec<Rule>, timeout: Duration, on_unknown: OnUnknown, retry: &retry::Config) -> Self {
        let budget = Budget { max_failures: retry.max_failures, max_lost: retry.max_lost };
        let strict = on_unknown == OnUnknown::Quarantine;
        let default = Ruling { rule: Name::Default, action: Action::Handle, timeout, strict, budget };
        let rules = rules.into_iter().enumerate().map(|(index, rule)| (Name::User(index), rule)).collect();
        Self { rules, default }
    }

    /// The same, with the built-in rules that `events` leaves on behind them.
    #[must_use]
    pub fn then_built_in(mut self, events: &crate::event::Config) -> Self {
        self.rules.extend(built_in(events).into_iter().map(|(key, rule)| (Name::BuiltIn(key), rule)));
        self
    }

    /// What applies to `event`.
    #[must_use]
    pub fn ruling(&self, event: &Event) -> Ruling {
        let found = self.rules.iter().find(|(_, rule)| rule.matches.matches(event));
        found.map_or(self.default, |(name, rule)| self.overridden(*name, rule))
    }

    /// The longest time any handler may take.
    #[must_use]
    pub fn longest_timeout(&self) -> Duration {
        self.rules.iter().filter_map(|(_, rule)| rule.timeout).chain([self.default.timeout]).max().unwrap_or_default()
    }

    /// True when some event can be strict.
    #[must_use]
    pub fn any_strict(&self) -> bool {
        self.default.strict || self.rules.iter().any(|(_, rule)| rule.on_unknown == Some(OnUnknown::Quarantine))
    }

    fn overridden(&self, name: Name, rule: &Rule) -> Ruling {
        let Ruling { timeout, strict, budget, .. } = self.default;
        Ruling {
            rule: name,
            action: rule.action,
            timeout: rule.timeout.unwrap_or(timeout),
            strict: rule.on_unknown.map_or(strict, |on_unknown| on_unknown == OnUnknown::Quarantine),
            budget: Budget { max_failures: rule.max_failures.unwrap_or(budget.max_failures), ..budget },
        }
    }
}

/// The built-in skip rules, by name: what they match can not be answered over Pub/Sub, or would loop.
#[must_use]
pub fn built_in(events: &crate::event::Config) -> Vec<(&'static str, Rule)> {
    let skip = |matches| Rule { matches, action: Action::Skip, ..Rule::default() };
    let of_type = |name: &str| Match { event_type: Some(Pattern::One(name.to_owned())), ..Match::default() };
    let by_bot = Match { sender: Some(Pattern::One("BOT".to_owned())), ..of_type("google.workspace.chat.message.*") };
    [
        (events.skip_widget_updated, "skip_widget_updated", of_type("WIDGET_UPDATED")),
        (events.skip_app_home, "skip_app_home", of_type("APP_HOME")),
        (events.skip_bot_messages, "skip_bot_messages", by_bot),
    ]
    .into_iter()
    .filter(|(on, ..)| *on)
    .map(|(_, name, matches)| (name, skip(matches)))
    .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{self, RawEvent, decode};

    fn of_type(name: &str) -> Event {
        let data = format!(r#"{{"type": "{name}", "space": {{"name": "spaces/S"}}}}"#);
        Event::clone(&decode(&Arc::new(RawEvent { data: data.into(), ..RawEvent::default() })))
    }

    #[test]
    fn a_ruling_names_its_rule_as_the_configuration_does() {
        let pattern = |name: &str| Some(Pattern::One(name.to_owned()));
        let rule = |name| Rule { matches: Match { event_type: pattern(name), ..Match::default() }, ..Rule::default() };
        let user = vec![rule("CARD_CLICKED"), rule("ADDED_TO_SPACE")];
        let timeout = Duration::from_secs(1);
        let rules = Rules::new(user, timeout, OnUnknown::Rerun, &retry::Config::default());
        let rules = rules.then_built_in(&event::Config::default());

        let name = |event_type| rules.ruling(&of_type(event_type)).rule.to_string();

        assert_eq!(name("CARD_CLICKED"), "rule[0]");
        assert_eq!(name("ADDED_TO_SPACE"), "rule[1]");
        assert_eq!(name("APP_HOME"), "events.skip_app_home");
        assert_eq!(name("MESSAGE"), "default");
    }
}
