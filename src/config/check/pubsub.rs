//! `[pubsub]` and `[reply]`. The source knows what is wrong with its own section.

use super::Check;
use crate::config::{ranges, reply::Mode};

impl Check<'_> {
    pub(super) fn pubsub(&mut self) {
        let pubsub = &self.config.pubsub;
        for problem in pubsub.problems() {
            let key = format!("pubsub.{}", problem.field);
            // What has a range has been told.
            if ranges::range(&key).is_none() {
                self.problem(&key, problem.message, "");
            }
        }
        for warning in pubsub.warnings() {
            self.warning(&format!("pubsub.{}", warning.field), warning.message, "");
        }
        if self.config.reply.mode == Mode::Chat {
            let what = "is announced for a later version; this one knows only \"none\"";
            self.problem("reply.mode", what, "let the handler post its answers itself");
        }
    }
}
