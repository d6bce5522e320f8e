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

    fn exec(&mut self) {
        for (key, what) in self.config.handler.exec().validate() {
            self.problem(&format!("handler.{key}"), what, "");
        }
    }
}
