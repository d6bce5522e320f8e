//! The port to the team's code.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::{event::Event, outcome::Detail};

mod body;
pub mod echo;
pub mod exec;
#[cfg(test)]
mod fixture;
pub mod http;
mod printable;
mod traceparent;

/// What a handler may know about the attempt it serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerContext {
    /// Fencing number, from 1.
    pub epoch: u32,
    /// failures + lost + 1.
    pub attempt: u32,
    /// How often an operator put the event back; 0 = never.
    pub replay: u32,
    /// How long it may take, connect to status line.
    pub timeout: Duration,
    /// The wall-clock time at which it is cut.
    pub deadline: DateTime<Utc>,
    /// The event is never run again when its outcome is unknown.
    pub strict: bool,
    /// The source's name.
    pub source: String,
}

/// The team's code. Dropping the future cuts it: the connection is closed, the process group killed.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Handles one event. The caller enforces `cx.timeout`; a handler that can stop itself earlier does.
    ///
    /// # Errors
    /// See [`HandlerError`]: what is certain about the handler when it did not succeed.
    async fn handle(&self, event: &Event, cx: &HandlerContext) -> Result<Handled, HandlerError>;
}

/// The handler did its work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handled {
    /// What it answered, a JSON text, where it answered anything.
    pub reply: Option<Bytes>,
    /// It answered a body that could not be read (cut, late, too long, not JSON): done all the same.
    pub reply_unreadable: bool,
}

/// The handler did not succeed, by what is certain.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    /// Certainly nothing was done. Retry under every rule.
    #[error("handler did nothing: {what}")]
    NotRun {
        /// What happened, without private text.
        what: String,
        /// When it asked to be called again.
        after: Option<Duration>,
        /// What it said.
        detail: Detail,
    },
    /// It answered "error". `rerun`: retry; strict: unknown.
    #[error("handler failed: {what}")]
    Failed {
        /// What happened, without private text.
        what: String,
        /// When it asked to be called again.
        after: Option<Duration>,
        /// What it said.
        detail: Detail,
    },
    /// It said that no retry will help.
    #[error("handler refused the event: {what}")]
    Permanent {
        /// What happened, without private text.
        what: String,
        /// What it said.
        detail: Detail,
    },
    /// It was ended because its deadline came, and its outcome is unknown: nothing of it is running any more. Where
    /// that can not be known, the caller notices the deadline, as it does a panic.
    #[error("handler did not end in time: {what}")]
    TimedOut {
        /// What happened, without private text.
        what: String,
        /// What it said.
        detail: Detail,
    },
    /// Nobody knows: a cut answer, a signal.
    #[error("handler's outcome is unknown: {what}")]
    Unknown {
        /// What happened, without private text.
        what: String,
        /// What it said.
        detail: Detail,
        /// Nothing of it is running any more.
        over: bool,
    },
    /// The target is not reachable, or not the right one. Not counted; opens the breaker.
    #[error("handler target is in trouble: {what}")]
    TargetTrouble {
        /// What happened, without private text.
        what: String,
        /// What it said.
        detail: Detail,
    },
}
