//! Handlers against real servers and real programs: every row of the contract.

mod exec;
mod exec_group;
mod http;
mod http_client;
pub(super) mod server;

use std::{sync::Arc, time::Duration};

use bellhop::{
    event::{Event, EventId, RawEvent, decode},
    handler::{Handled, HandlerContext, HandlerError},
};
use bytes::Bytes;
use chrono::{TimeDelta, Utc};

const BODY: &str = r#"{"type":"MESSAGE","message":{"text":"hello"}}"#;

pub(super) fn event() -> Event {
    let data = Bytes::from_static(BODY.as_bytes());
    let mut event = decode(&Arc::new(RawEvent { data, ..RawEvent::default() }));
    event.id = EventId::new("bh1-ix-0123456789abcdef0123456789abcdef");
    event.chat.space = Some("spaces/A".to_owned());
    event
}

pub(super) fn with_body(body: impl Into<Bytes>) -> Event {
    let mut event = event();
    event.body = body.into();
    event
}

pub(super) fn cx() -> HandlerContext {
    within(Duration::from_secs(30))
}

fn strict() -> HandlerContext {
    HandlerContext { strict: true, ..cx() }
}

fn within(timeout: Duration) -> HandlerContext {
    HandlerContext {
        epoch: 1,
        attempt: 1,
        replay: 0,
        timeout,
        deadline: Utc::now() + TimeDelta::from_std(timeout).unwrap(),
        strict: false,
        source: "pubsub".to_owned(),
    }
}

/// The variant's name, and what the handler said.
pub(super) fn verdict(result: &Result<Handled, HandlerError>) -> (&'static str, &str) {
    match result {
        Ok(handled) if handled.reply_unreadable => ("done, unreadable", ""),
        Ok(Handled { reply: Some(reply), .. }) => ("done", std::str::from_utf8(reply).unwrap()),
        Ok(_) => ("done", ""),
        Err(HandlerError::NotRun { detail, .. }) => ("not run", detail.as_str()),
        Err(HandlerError::Failed { detail, .. }) => ("failed", detail.as_str()),
        Err(HandlerError::Permanent { detail, .. }) => ("permanent", detail.as_str()),
        Err(HandlerError::TimedOut { detail, .. }) => ("timed out", detail.as_str()),
        Err(HandlerError::Unknown { detail, .. }) => ("unknown", detail.as_str()),
        Err(HandlerError::TargetTrouble { detail, .. }) => ("target trouble", detail.as_str()),
    }
}
