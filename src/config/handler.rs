//! The `[handler]` section.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{rule::OnUnknown, secret::Secret};

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
    pub token: Secret,
    /// For `auth = "google_id_token"`; empty = the URL's origin.
    pub audience: String,
    /// Signs each request (Standard Webhooks), `whsec_` + base64 of 24 to 64 bytes.
    pub signing_secret: Secret,
    /// Allow a URL off loopback without any of these.
    pub unauthenticated: bool,
    /// `http`: an HTTP proxy; the environment's is not used.
    pub proxy: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            kind: Kind::Http,
            url: String::new(),
            command: Vec::new(),
            env: Vec::new(),
            timeout: Duration::from_secs(60),
            on_unknown: OnUnknown::Rerun,
            auth: Auth::None,
            token: Secret::default(),
            audience: String::new(),
            signing_secret: Secret::default(),
            unauthenticated: false,
            proxy: String::new(),
        }
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

/// What goes into `Authorization`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// Nothing.
    #[default]
    None,
    /// `handler.token`.
    Bearer,
    /// A Google identity token for `handler.audience`.
    GoogleIdToken,
}
