//! The `[handler]` section.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    handler::{
        exec,
        http::{self, Auth},
    },
    rule::OnUnknown,
    secret::Secret,
};

/// The team's code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How it is called.
    pub kind: Kind,
    /// `http`: where.
    pub url: String,
    /// `exec`: the program and its arguments.
    pub command: Vec<String>,
    /// `exec`: variables the program inherits besides PATH, HOME and LANG.
    pub env: Vec<String>,
    /// How long it may take, unless a rule says otherwise.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// What an unknown outcome means, unless a rule says otherwise.
    pub on_unknown: OnUnknown,
    /// `http`: how bellhop proves who it is.
    pub auth: Auth,
    /// For `auth = "bearer"`.
    pub bearer_token: Secret,
    /// For `auth = "google_id_token"`; empty = the URL without its path.
    pub audience: String,
    /// Signs each request as Standard Webhooks do: `whsec_` and base64, or any text.
    pub signing_secret: Secret,
    /// Allow a URL off loopback without any of these.
    pub unauthenticated: bool,
    /// `http`: an HTTP proxy; the environment's is not used.
    pub proxy: String,
    /// `http`: how long connecting may take.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let http::Config { url, proxy, signing_secret, auth, bearer_token, audience, unauthenticated, connect_timeout } =
            http::Config::default();
        let exec::Config { command, env } = exec::Config::default();
        Self {
            kind: Kind::Http,
            url,
            command,
            env,
            timeout: Duration::from_secs(60),
            on_unknown: OnUnknown::Rerun,
            auth,
            bearer_token,
            audience,
            signing_secret,
            unauthenticated,
            proxy,
            connect_timeout,
        }
    }
}

impl Config {
    /// What the HTTP handler needs of the section.
    #[must_use]
    pub fn http(&self) -> http::Config {
        http::Config {
            url: self.url.clone(),
            proxy: self.proxy.clone(),
            signing_secret: self.signing_secret.clone(),
            auth: self.auth,
            bearer_token: self.bearer_token.clone(),
            audience: self.audience.clone(),
            unauthenticated: self.unauthenticated,
            connect_timeout: self.connect_timeout,
        }
    }

    /// What the program handler needs of the section.
    #[must_use]
    pub fn exec(&self) -> exec::Config {
        exec::Config { command: self.command.clone(), env: self.env.clone() }
    }
}

/// The kinds of handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// POST to a URL.
    #[default]
    Http,
    /// Run a program.
    Exec,
    /// Answer with what came; for demos.
    Echo,
}
