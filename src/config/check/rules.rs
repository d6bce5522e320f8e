//! `[[rule]]`: rules that can not apply, or not as meant.

use super::Check;
use crate::{
    config::schema::nearest,
    event::INTERACTION_TYPES,
    rule::{Action, Match, Pattern, Rule},
};

impl Check<'_> {
    pub(super) fn rules(&mut self) {
        let rules = self.config.rule.clone();
        for (i, rule) in rules.iter().enumerate() {
            self.patterns(i, &rule.matches);
            if rule.action != Action::Handle
                && (rule.timeout.is_some() || rule.on_unknown.is_some() || rule.max_failures.is_some())
            {
                let what = "does not call the handler: timeout, on_unknown and max_failures say nothing here";
                self.warning(&format!("rule[{i}].action"), what, "leave them out");
            }
            if self.is_spoiled("rule") {
                continue;
            }
            if let Some(earlier) = rules.iter().take(i).position(|earlier| covers(earlier, rule)) {
                let what = format!("can never apply: rule[{earlier}] comes first and takes all its events");
                self.warning(&format!("rule[{i}].match"), what, "move it up, or remove it");
            }
        }
    }

    fn patterns(&mut self, i: usize, matches: &Match) {
        let fields = fields(matches);
        for (name, pattern) in fields {
            let key = format!("rule[{i}].match.{name}");
            let patterns = each(pattern);
            if patterns.is_empty() || patterns.iter().any(|pattern| pattern.is_empty()) {
                self.problem(&key, "matches nothing: it is empty", "leave it out to match everything");
                continue;
            }
            for pattern in patterns {
                if let Some((what, fix)) = oddity(name, pattern) {
                    self.warning(&key, what, fix);
                }
            }
        }
    }
}

/// What is most likely not meant.
fn oddity(field: &str, pattern: &str) -> Option<(String, String)> {
    let start = pattern.trim_end_matches('*');
    match field {
        "type" => {
            let known = start.is_empty()
                || start.starts_with("google.")
                || start.starts_with("addon:")
                || INTERACTION_TYPES
                    .iter()
                    .any(|known| *known == pattern || (start != pattern && known.starts_with(start)));
            let fix = nearest(pattern, &INTERACTION_TYPES).map_or_else(
                || "types are written like MESSAGE or google.workspace.chat.message.*".to_owned(),
                |near| format!("did you mean {near:?}?"),
            );
            (!known).then(|| (format!("{pattern:?} is no event type bellhop knows"), fix))
        }
        "command" => {
            let known = start.is_empty() || start.starts_with('/') || start.chars().all(|c| c.is_ascii_digit());
            (!known).then(|| {
                let what = format!("{pattern:?} is neither a command's name with its slash nor its id");
                (what, format!("did you mean \"/{pattern}\"?"))
            })
        }
        "space" => wrong_prefix(pattern, start, "spaces/"),
        "user" => wrong_prefix(pattern, start, "users/"),
        "sender" => (!["HUMAN", "BOT"].contains(&pattern) && !start.is_empty())
            .then(|| (format!("{pattern:?} sends nothing"), "senders are \"HUMAN\" and \"BOT\"".to_owned())),
        _ => None,
    }
}

fn wrong_prefix(pattern: &str, start: &str, prefix: &str) -> Option<(String, String)> {
    let fits = start.starts_with(prefix) || prefix.starts_with(start);
    (!fits).then(|| (format!("{pattern:?} can not match: names start with {prefix}"), format!("write {prefix}…")))
}

fn fields(matches: &Match) -> impl Iterator<Item = (&'static str, &Pattern)> {
    let Match { event_type, command, action, space, user, sender } = matches;
    [
        ("type", event_type),
        ("command", command),
        ("action", action),
        ("space", space),
        ("user", user),
        ("sender", sender),
    ]
    .into_iter()
    .filter_map(|(name, pattern)| Some((name, pattern.as_ref()?)))
}

fn each(pattern: &Pattern) -> Vec<&str> {
    match pattern {
        Pattern::One(pattern) => vec![pattern],
        Pattern::Any(patterns) => patterns.iter().map(String::as_str).collect(),
    }
}

/// True when every event the later rule could take matches the earlier one.
fn covers(earlier: &Rule, later: &Rule) -> bool {
    fields(&earlier.matches).all(|(name, wide)| {
        let narrow = fields(&later.matches).find(|(other, _)| *other == name);
        narrow.is_some_and(|(_, narrow)| {
            each(narrow).iter().all(|narrow| each(wide).iter().any(|wide| takes(wide, narrow)))
        })
    })
}

fn takes(wide: &str, narrow: &str) -> bool {
    match wide.strip_suffix('*') {
        Some(start) => narrow.strip_suffix('*').unwrap_or(narrow).starts_with(start),
        None => wide == narrow,
    }
}
