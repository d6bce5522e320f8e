//! A handler behind a URL: one POST per attempt.
//!
//! Only an attempt whose connection could not be made is certainly not run; every later error leaves the outcome
//! unknown. Dropping the call closes its connection.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use chrono::Utc;
use google_cloud_auth::credentials::idtoken::{self, IDTokenCredentials};
use reqwest::{
    Client, Response, Url,
    header::{AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue},
};
use tokio::time::{Instant, timeout};

use self::{answer::Verdict, client::Connections};
use crate::{
    event::Event,
    handler::{Handled, Handler, HandlerContext, HandlerError, body},
    outcome::Detail,
};

mod answer;
mod client;
mod config;
mod request;

pub use self::config::{Auth, Config};

/// The caller cuts at the timeout; what the status line said must have been told before.
const MARGIN: Duration = Duration::from_millis(100);

/// How long an identity token may take. It comes from a cache but once an hour.
const TOKEN_TIME: Duration = Duration::from_secs(5);

/// Why a handler could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The configuration is wrong.
    #[error("handler.{key} {what}")]
    Config {
        /// The key under `[handler]`.
        key: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The HTTP client did not come up.
    #[error("no HTTP client")]
    Client(#[source] reqwest::Error),
    /// The default credentials can not make identity tokens.
    #[error("no credentials for identity tokens")]
    Credentials(#[source] google_cloud_auth::build_errors::Error),
}

/// Posts events to a URL.
pub struct HttpHandler {
    url: Url,
    kept: Client,
    new: Client,
    signing_key: Vec<u8>,
    auth: Authorization,
    pass_credentials: bool,
    read_replies: bool,
}

enum Authorization {
    None,
    Bearer(HeaderValue),
    IdToken(IDTokenCredentials),
}

impl HttpHandler {
    /// A handler for `config`; nothing is connected yet. Call it inside a tokio runtime: identity tokens are renewed in
    /// the background. `pass_credentials` leaves credentials in what the handler gets.
    ///
    /// # Errors
    /// The first problem of `config`, or what the machine lacks.
    pub fn new(config: &Config, pass_credentials: bool) -> Result<Self, BuildError> {
        if let Some((key, what)) = config.validate().into_iter().next() {
            return Err(BuildError::Config { key, what });
        }
        let url = config.target().map_err(|what| BuildError::Config { key: "url", what: what.to_owned() })?;
        let client = |connections| client::build(config, &url, connections).map_err(BuildError::Client);
        let auth = match config.auth {
            Auth::None => Authorization::None,
            Auth::Bearer => bearer(config.bearer_token.expose()).map_or(Authorization::None, Authorization::Bearer),
            Auth::GoogleIdToken => {
                let credentials = idtoken::Builder::new(config.audience_for(&url)).with_include_email().build();
                Authorization::IdToken(credentials.map_err(BuildError::Credentials)?)
            }
        };
        Ok(Self {
            kept: client(Connections::Kept)?,
            new: client(Connections::New)?,
            signing_key: config.signing_key().unwrap_or_default(),
            url,
            auth,
            pass_credentials,
            read_replies: false,
        })
    }

    /// Reads the body of an answer as a reply. Without this bodies of successful answers are not read.
    #[must_use]
    pub const fn reading_replies(mut self) -> Self {
        self.read_replies = true;
        self
    }

    async fn send(&self, event: &Event, cx: &HandlerContext) -> Result<Response, HandlerError> {
        let body = body::of(event, self.pass_credentials);
        let mut headers = request::headers(event, cx);
        if !self.signing_key.is_empty() {
            headers.extend(request::signature(&self.signing_key, event, cx.epoch, Utc::now(), &body));
        }
        self.authorize(&mut headers).await?;
        let client = if cx.strict {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
            &self.new
        } else {
            &self.kept
        };
        client.post(self.url.clone()).headers(headers).body(body).send().await.map_err(client::classify)
    }

    async fn authorize(&self, headers: &mut HeaderMap) -> Result<(), HandlerError> {
        let value = match &self.auth {
            Authorization::None => return Ok(()),
            Authorization::Bearer(value) => value.clone(),
            Authorization::IdToken(credentials) => {
                let token = match timeout(TOKEN_TIME, credentials.id_token()).await {
                    Ok(token) => token.map_err(|error| no_token(&client::root(&error)))?,
                    Err(_) => return Err(no_token("it took too long")),
                };
                bearer(&token).ok_or_else(|| no_token("no header can carry it"))?
            }
        };
        headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}

#[async_trait]
impl Handler for HttpHandler {
    async fn handle(&self, event: &Event, cx: &HandlerContext) -> Result<Handled, HandlerError> {
        let end = Instant::now() + cx.timeout.saturating_sub(MARGIN);
        let answer = self.send(event, cx).await?;
        let left = end.saturating_duration_since(Instant::now());
        let status = answer.status();
        let what = format!("answered {}", status.as_u16());
        match answer::verdict(status, answer.headers(), SystemTime::now()) {
            Verdict::Done if self.read_replies => Ok(answer::reply(answer, left).await),
            Verdict::Done => Ok(Handled::default()),
            Verdict::NotRun { after } => {
                Err(HandlerError::NotRun { what, after, detail: answer::detail(answer, left).await })
            }
            Verdict::Failed => {
                Err(HandlerError::Failed { what, after: None, detail: answer::detail(answer, left).await })
            }
            Verdict::Permanent => Err(HandlerError::Permanent { what, detail: answer::detail(answer, left).await }),
            Verdict::TargetTrouble => {
                Err(HandlerError::TargetTrouble { what, detail: answer::detail(answer, left).await })
            }
            Verdict::Malformed => Err(HandlerError::Unknown { what, detail: Detail::default(), over: false }),
        }
    }
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn no_token(why: &str) -> HandlerError {
    HandlerError::TargetTrouble { what: format!("no identity token: {why}"), detail: Detail::default() }
}
