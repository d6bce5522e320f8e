//! The two clients: one keeps connections for a moment, one never.

use std::{error::Error, time::Duration};

use reqwest::{Client, Proxy, Url, redirect, retry};

use super::Config;
use crate::{
    handler::HandlerError,
    outcome::{Detail, Note},
};

/// Longer, and the other side may have closed the connection just when the next event is sent over it.
const IDLE: Duration = Duration::from_secs(1);

/// Whether connections serve one request or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connections {
    /// Kept for one second.
    Kept,
    /// One per request: a request on a kept connection can be lost between two processes without either at fault.
    New,
}

/// A client that does what it is told and no more: no proxy of the environment, no redirects, no second tries.
pub(super) fn build(config: &Config, target: &Url, connections: Connections) -> Result<Client, reqwest::Error> {
    let mut builder = Client::builder()
        .user_agent(concat!("bellhop/", env!("CARGO_PKG_VERSION")))
        .http1_only()
        .no_proxy()
        .referer(false)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(IDLE);
    if connections == Connections::New {
        builder = builder.pool_max_idle_per_host(0);
    }
    if !config.proxy.is_empty() {
        builder = builder.proxy(Proxy::all(&config.proxy)?);
    }
    if target.scheme() == "http" && !config.proxy.starts_with("https:") {
        // No certificate is ever looked at: the system's need not be there, nor be read.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// What an error says about the handler: without a connection nothing was done, after that nobody knows.
pub(super) fn classify(error: reqwest::Error) -> HandlerError {
    let certainly_not_run = error.is_connect() || error.is_builder();
    let error = error.without_url();
    let cause = root(&error);
    let detail = Detail::default();
    if certainly_not_run {
        HandlerError::TargetTrouble { what: format!("no connection: {cause}"), detail }
    } else {
        HandlerError::Unknown { what: format!("no answer: {cause}"), detail, over: false }
    }
}

/// The innermost cause, which is what an operator can act on.
pub(super) fn root(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    Note::new(&cause.to_string()).as_str().to_owned()
}
