//! `[handler]`: something to call, and a way for it to know who calls.

use std::path::Path;

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
        let Some(program) = self.config.handler.command.first().cloned().filter(|program| !program.is_empty()) else {
            let fix = "set it to the program and its arguments, such as [\"./handler\"]";
            self.problem("handler.command", "is needed by handler.kind \"exec\"", fix);
            return;
        };
        if !self.program_exists(&program) {
            self.warning("handler.command", "names a program that is not there", "check the path");
        }
        let names = &self.config.handler.env;
        if let Some(name) = names.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])).cloned() {
            let what = format!("holds {name:?}; it lists names of variables, not values");
            self.problem("handler.env", what, "set the variable for bellhop itself and list its name");
        }
    }

    fn program_exists(&self, program: &str) -> bool {
        if program.contains('/') {
            return Path::new(program).is_file();
        }
        let path = self.environment.get("PATH").unwrap_or("/usr/local/bin:/usr/bin:/bin");
        path.split(':').any(|folder| Path::new(folder).join(program).is_file())
    }
}
