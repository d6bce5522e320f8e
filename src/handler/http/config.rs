//! What is set under `[handler]` for a handler behind a URL, and what is wrong with it.

use std::{net::IpAddr, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{Url, header::HeaderValue};
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// How bellhop shows a handler who it is, besides a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// Not at all.
    #[default]
    None,
    /// An identity token of the application default credentials, as Cloud Run and IAP ask for.
    GoogleIdToken,
    /// `bearer_token` as it stands.
    Bearer,
}

/// The keys of `[handler]` that belong to `kind = "http"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where events are posted.
    pub url: String,
    /// A proxy for the way there, `http://…` or `https://…`. The environment's proxy variables are not read.
    pub proxy: String,
    /// Signs every request as Standard Webhooks do: `whsec_` and base64, or any text.
    pub signing_secret: Secret,
    /// What goes into the `Authorization` header.
    pub auth: Auth,
    /// For `auth = "bearer"`.
    pub bearer_token: Secret,
    /// For `auth = "google_id_token"`; empty = the URL without its path.
    pub audience: String,
    /// Allow a URL off this machine without signature and without authentication.
    pub unauthenticated: bool,
    /// How long connecting may take, 100 ms to 30 s. No connection in that time = certainly not run.
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:9000/events".to_owned(),
            proxy: String::new(),
            signing_secret: Secret::default(),
            auth: Auth::None,
            bearer_token: Secret::default(),
            audience: String::new(),
            unauthenticated: false,
            connect_timeout: Duration::from_secs(3),
        }
    }
}

impl Config {
    /// Everything that is wrong, as (key under `[handler]`, what to do about it).
    #[must_use]
    pub fn validate(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let mut wrong = |key, what: &str| problems.push((key, what.to_owned()));
        match self.target() {
            Err(what) => wrong("url", what),
            Ok(url) if !is_loopback(&url) && !self.is_authenticated() && !self.unauthenticated => wrong(
                "url",
                "is not on this machine: set handler.signing_secret or handler.auth, or handler.unauthenticated = true",
            ),
            Ok(_) => {}
        }
        if !self.proxy.is_empty() && !web_url(&self.proxy).is_ok_and(|proxy| !has_password(&proxy)) {
            wrong("proxy", "must be http://host:port or https://host:port, without user and password");
        }
        if self.signing_key().is_none() {
            wrong("signing_secret", "starts with whsec_ but goes on with something other than base64");
        }
        if self.auth == Auth::Bearer && self.bearer_token.is_empty() {
            wrong("bearer_token", "is needed for handler.auth = \"bearer\"");
        }
        if self.auth != Auth::Bearer && !self.bearer_token.is_empty() {
            wrong("bearer_token", "is only used with handler.auth = \"bearer\"");
        }
        if HeaderValue::from_str(self.bearer_token.expose()).is_err() {
            wrong("bearer_token", "has characters that no header can carry, such as a line break");
        }
        if self.auth != Auth::GoogleIdToken && !self.audience.is_empty() {
            wrong("audience", "is only used with handler.auth = \"google_id_token\"");
        }
        if !(Duration::from_millis(100)..=Duration::from_secs(30)).contains(&self.connect_timeout) {
            wrong("connect_timeout", "must be between 100ms and 30s");
        }
        problems
    }

    /// Where events are posted, or what is wrong with it.
    pub(super) fn target(&self) -> Result<Url, &'static str> {
        let url = web_url(&self.url)?;
        if has_password(&url) {
            return Err("must not hold a password: use handler.auth = \"bearer\"");
        }
        if url.fragment().is_some() {
            return Err("must not have a fragment (#…)");
        }
        Ok(url)
    }

    /// The audience of identity tokens for `url`.
    pub(super) fn audience_for(&self, url: &Url) -> String {
        if self.audience.is_empty() { url.origin().ascii_serialization() } else { self.audience.clone() }
    }

    /// The bytes to sign with, empty without a secret; `None` when the secret is malformed.
    pub(super) fn signing_key(&self) -> Option<Vec<u8>> {
        let secret = self.signing_secret.expose();
        match secret.strip_prefix("whsec_") {
            Some(encoded) => STANDARD.decode(encoded).ok().filter(|key| !key.is_empty()),
            None => Some(secret.as_bytes().to_vec()),
        }
    }

    fn is_authenticated(&self) -> bool {
        !self.signing_secret.is_empty() || self.auth != Auth::None
    }
}

fn has_password(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn web_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a URL: write http://host:port/path")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with http:// or https://");
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(config: &Config) -> Vec<&'static str> {
        config.validate().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn the_defaults_are_right() {
        assert_eq!(Config::default().validate(), []);
    }

    #[test]
    fn only_a_url_off_this_machine_needs_authentication() {
        for url in
            ["http://127.0.0.1:1/", "http://127.9.9.9/", "http://[::1]:1/x", "http://localhost/", "http://LOCALHOST/"]
        {
            assert_eq!(keys(&Config { url: url.to_owned(), ..Config::default() }), [""; 0], "{url}");
        }
        for url in
            ["http://bot:1/", "http://10.0.0.1/", "https://localhost.example/", "http://0.0.0.0/", "http://[::]/"]
        {
            let bare = Config { url: url.to_owned(), ..Config::default() };
            let signed = Config { signing_secret: "s".into(), ..bare.clone() };
            let bearer = Config { auth: Auth::Bearer, bearer_token: "t".into(), ..bare.clone() };
            let google = Config { auth: Auth::GoogleIdToken, ..bare.clone() };
            let open = Config { unauthenticated: true, ..bare.clone() };

            assert_eq!(keys(&bare), ["url"], "{url}");
            for enough in [signed, bearer, google, open] {
                assert_eq!(keys(&enough), [""; 0], "{url}");
            }
        }
    }

    #[test]
    fn a_url_without_a_usable_scheme_is_refused() {
        for url in [
            "",
            "bot:9000",
            "localhost:9000/events",
            "ftp://localhost/",
            "unix:///run/bot",
            "http://",
            "http://u:p@localhost/",
            "http://localhost/#x",
        ] {
            assert_eq!(keys(&Config { url: url.to_owned(), ..Config::default() }), ["url"], "{url}");
        }
    }

    #[test]
    fn all_problems_are_reported_together() {
        let config = Config {
            url: "bot".to_owned(),
            proxy: "socks5://proxy".to_owned(),
            signing_secret: "whsec_***".into(),
            bearer_token: "a\nb".into(),
            audience: "x".to_owned(),
            connect_timeout: Duration::ZERO,
            ..Config::default()
        };

        assert_eq!(
            keys(&config),
            ["url", "proxy", "signing_secret", "bearer_token", "bearer_token", "audience", "connect_timeout"]
        );
        assert_eq!(keys(&Config { auth: Auth::Bearer, ..Config::default() }), ["bearer_token"]);
    }

    #[test]
    fn no_problem_shows_a_secret() {
        let config = Config {
            url: "http://u:hunter2@localhost/".to_owned(),
            signing_secret: "whsec_hunter2".into(),
            bearer_token: "hunter2\n".into(),
            ..Config::default()
        };

        assert!(!format!("{:?}", config.validate()).contains("hunter2"));
    }

    #[test]
    fn a_secret_is_plain_or_base64() {
        let key = |secret: &str| Config { signing_secret: secret.into(), ..Config::default() }.signing_key();

        assert_eq!(key("whsec_aGVsbG8="), Some(b"hello".to_vec()));
        assert_eq!(key("hello"), Some(b"hello".to_vec()));
        assert_eq!(key(""), Some(Vec::new()));
        assert_eq!(key("whsec_"), None);
    }

    #[test]
    fn the_audience_is_the_url_without_its_path_unless_given() {
        let config = Config { url: "https://bot-x.a.run.app/events?x=1".to_owned(), ..Config::default() };

        assert_eq!(config.audience_for(&config.target().unwrap()), "https://bot-x.a.run.app");
    }

    #[test]
    fn unknown_keys_are_refused() {
        assert!(serde_json::from_str::<Config>(r#"{"urll": "x"}"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{"auth": "google_id_token", "connect_timeout": "1s"}"#).is_ok());
    }
}
