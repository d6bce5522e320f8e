//! Why a request that somebody waits for failed: with words for him, sorted by what he can do.

use super::{
    config::Problem,
    endpoint::EndpointError,
    reason::{Failure, Reason},
};

/// Why Pub/Sub did not do what was asked. The text holds no payload.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RequestError {
    /// What is meant can not be told from the configuration.
    #[error("{0}")]
    Unclear(String),
    /// The topic or the subscription does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The server can not be reached, or does not answer.
    #[error("Pub/Sub can not be reached: {0}")]
    Unreachable(String),
    /// The server refused, or ended the stream.
    #[error("Pub/Sub refused ({reason}): {words}")]
    Refused {
        /// Its class.
        reason: &'static str,
        /// What it said.
        words: String,
        /// What can be done about it; may be empty.
        advice: &'static str,
    },
}

impl RequestError {
    /// The same about a request that publishes: the advice for subscribers does not fit there.
    pub(super) fn of_publisher(mut self) -> Self {
        if let Self::Refused { reason, advice, .. } = &mut self {
            let denied = *reason == Reason::PermissionDenied.as_str();
            *advice = if denied { "grant roles/pubsub.publisher on the topic" } else { "" };
        }
        self
    }
}

impl From<Failure> for RequestError {
    fn from(Failure { reason, words }: Failure) -> Self {
        match reason {
            Reason::NotFound => Self::NotFound(words),
            Reason::Unreachable | Reason::Timeout => Self::Unreachable(words),
            other => Self::Refused { reason: other.as_str(), words, advice: other.advice() },
        }
    }
}

impl From<Problem> for RequestError {
    fn from(problem: Problem) -> Self {
        Self::Unclear(format!("pubsub.{} {}", problem.field, problem.message))
    }
}

impl From<EndpointError> for RequestError {
    fn from(error: EndpointError) -> Self {
        Self::Unclear(format!("pubsub.endpoint {error}"))
    }
}
