//! `[handler]`: something to call, and a way for it to know who calls.

use super::Check;
use crate::config::{handler::Kind, ranges, tree};

impl Check<'_> {
    pub(super) fn handler(&mut self) {
        match self.config.handler.kind {
            Kind::Http => self.http(),
            Kind::Exec => self.exec(),
            Kind::Echo => {}
        }
    }

    fn http(&mut self) {
        self.connecting();
        for key in ["handler.bearer_token", "handler.signing_secret"] {
            if self.given(key) && self.values.pointer(&tree::pointer(key)).is_some_and(|value| value == "") {
                self.problem(key, "is given but empty", "fill it, or leave it out");
                self.spoiled.insert(key.to_owned());
            }
        }
        // A secret that could not be read would be missed again here, in other words.
        let secret = self.is_spoiled("handler.bearer_token") || self.is_spoiled("handler.signing_secret");
        let problems = self.config.handler.http().validate();
        for (key, what) in problems {
            let key = format!("handler.{key}");
            if ranges::range(&key).is_none() && !(secret && key == "handler.url") {
                self.problem(&key, what, "");
            }
        }
    }

    /// A call that is cut while it still connects counts as unknown, though it was certainly not run.
    fn connecting(&mut self) {
        let handler = &self.config.handler;
        let timeouts = self.config.rule.iter().filter_map(|rule| rule.timeout).chain([handler.timeout]);
        let Some(shortest) = timeouts.min().filter(|shortest| *shortest <= handler.connect_timeout) else { return };
        let shortest = humantime::format_duration(shortest);
        let what = format!("is not below the shortest handler timeout, {shortest}: a call cut before that is unknown");
        self.warning("handler.connect_timeout", what, "lower it, or raise the timeout");
    }

    fn exec(&mut self) {
        for (key, what) in self.config.handler.exec().validate() {
            self.problem(&format!("handler.{key}"), what, "");
        }
    }
}
