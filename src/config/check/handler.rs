//! `[handler]`: something to call, and a way for it to know who calls.

use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Url;

use super::Check;
use crate::config::handler::{Auth, Kind};

impl Check<'_> {
    pub(super) fn handler(&mut self) {
        match self.config.handler.kind {
            Kind::Http => self.http(),
            Kind::Exec => self.exec(),
            Kind::Echo => {}
        }
    }

    fn http(&mut self) {
        let handler = &self.config.handler;
        let unproven = handler.auth == Auth::None && handler.signing_secret.is_empty() && !handler.unauthenticated;
        if handler.url.is_empty() {
            let fix = "set it to where events are sent, such as \"http://127.0.0.1:9000/events\"";
            self.problem("handler.url", "is needed by handler.kind \"http\"", fix);
        } else if let Some(url) = web_url(&handler.url) {
            if !url.username().is_empty() || url.password().is_some() {
                let fix = "use handler.auth = \"bearer\" with handler.token_file";
                self.problem("handler.url", "must not hold credentials: it is shown in logs", fix);
            } else if unproven && !is_loopback(&url) && !self.spoiled.contains("handler.signing_secret") {
                let what = "is not on this machine, and nothing proves to the handler that bellhop calls";
                let fix = "set handler.signing_secret or handler.auth, or handler.unauthenticated = true";
                self.problem("handler.url", what, fix);
            }
        } else {
            self.problem("handler.url", "must be an http:// or https:// URL with a host", "");
        }
        self.credentials();
        let proxy = self.config.handler.proxy.clone();
        if !proxy.is_empty() && web_url(&proxy).is_none() {
            self.problem("handler.proxy", "must be an http:// or https:// URL with a host", "");
        }
    }

    fn credentials(&mut self) {
        let handler = &self.config.handler;
        let (auth, token) = (handler.auth, handler.token.is_empty());
        if self.given("handler.token") && auth == Auth::Bearer && token {
            self.problem("handler.token", "is given but empty", "fill it");
        } else if auth == Auth::Bearer && token {
            let fix = "set handler.token or handler.token_file";
            self.problem("handler.token", "is needed by handler.auth \"bearer\"", fix);
        } else if auth != Auth::Bearer && !token {
            self.problem(
                "handler.token",
                "is not used: handler.auth is not \"bearer\"",
                "set it, or leave the token out",
            );
        }
        if auth != Auth::GoogleIdToken && !self.config.handler.audience.is_empty() {
            self.warning("handler.audience", "is not used: handler.auth is not \"google_id_token\"", "leave it out");
        }
        let secret = &self.config.handler.signing_secret;
        if secret.is_empty() && self.given("handler.signing_secret") {
            self.problem("handler.signing_secret", "is given but empty", "fill it, or leave it out");
        } else if !secret.is_empty() && !is_signing_secret(secret.expose()) {
            let what = "must be whsec_ followed by the base64 of 24 to 64 bytes";
            let fix = "make one: printf 'whsec_%s\\n' \"$(openssl rand -base64 32)\"";
            self.problem("handler.signing_secret", what, fix);
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

fn web_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_signing_secret(secret: &str) -> bool {
    let bytes = secret.strip_prefix("whsec_").and_then(|encoded| STANDARD.decode(encoded).ok());
    bytes.is_some_and(|bytes| (24..=64).contains(&bytes.len()))
}
