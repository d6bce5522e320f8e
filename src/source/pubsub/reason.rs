//! Why a stream or a probe ended: a closed set, for labels and for what to do next.

use std::error::Error as _;

use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::{Error, error::AckError};
use tonic::Status;

/// Our own classes. None of them ends the source: permissions, subscriptions and networks come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The subscription does not exist (yet).
    NotFound,
    /// Not allowed (yet).
    PermissionDenied,
    /// The server did not take the credentials.
    Unauthenticated,
    /// No credentials could be had.
    Credentials,
    /// No connection, or what answers does not speak gRPC. On such an address the client library spins.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// The server or a proxy gave up on the call.
    Cancelled,
    /// The server does not say.
    Unknown,
    /// The server calls the request wrong.
    InvalidArgument,
    /// The server calls the state wrong.
    FailedPrecondition,
    /// What was to be made is there.
    AlreadyExists,
    /// Over a quota.
    ResourceExhausted,
    /// The server is in trouble: unavailable, internal, aborted.
    Server,
    /// A message could not be decoded; it closed its whole stream.
    Undecodable,
    /// The stream ended without an error.
    Ended,
    /// The stream had been silent for too long and was replaced.
    Silence,
    /// The reader died.
    Panicked,
    /// Anything else.
    Other,
}

impl Reason {
    /// The class of an error of the client library.
    pub(super) fn of(error: &Error) -> Self {
        if let Some(status) = error.status() {
            return Self::of_code(status.code);
        }
        if error.is_authentication() {
            Self::Credentials
        } else if error.is_timeout() || error.is_exhausted() {
            Self::Timeout
        } else if error.is_deserialization() {
            Self::Undecodable
        } else if error.is_connect() || error.is_transport() || error.is_io() {
            Self::Unreachable
        } else {
            Self::Other
        }
    }

    const fn of_code(code: Code) -> Self {
        match code {
            Code::NotFound => Self::NotFound,
            Code::PermissionDenied => Self::PermissionDenied,
            Code::Unauthenticated => Self::Unauthenticated,
            Code::Cancelled => Self::Cancelled,
            Code::Unknown => Self::Unknown,
            Code::InvalidArgument | Code::OutOfRange => Self::InvalidArgument,
            Code::FailedPrecondition => Self::FailedPrecondition,
            Code::AlreadyExists => Self::AlreadyExists,
            Code::ResourceExhausted => Self::ResourceExhausted,
            Code::DeadlineExceeded => Self::Timeout,
            Code::Unavailable | Code::Internal | Code::Aborted | Code::DataLoss => Self::Server,
            _ => Self::Other,
        }
    }

    /// The label.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::Unauthenticated => "unauthenticated",
            Self::Credentials => "credentials",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
            Self::InvalidArgument => "invalid_argument",
            Self::FailedPrecondition => "failed_precondition",
            Self::AlreadyExists => "already_exists",
            Self::ResourceExhausted => "resource_exhausted",
            Self::Server => "server",
            Self::Undecodable => "undecodable",
            Self::Ended => "ended",
            Self::Silence => "silence",
            Self::Panicked => "panicked",
            Self::Other => "other",
        }
    }

    /// What an operator can do about it.
    pub(super) const fn advice(self) -> &'static str {
        match self {
            Self::NotFound => "create the subscription, or correct pubsub.project and pubsub.subscription",
            Self::PermissionDenied => "grant roles/pubsub.subscriber and roles/pubsub.viewer on the subscription",
            Self::Unauthenticated | Self::Credentials => "check the credentials",
            Self::Unreachable | Self::Timeout => "check pubsub.endpoint and the network",
            Self::InvalidArgument | Self::FailedPrecondition => {
                "check the subscription: it must be a pull subscription"
            }
            Self::ResourceExhausted => "check the quotas of the project",
            _ => "nothing to do unless it stays",
        }
    }

    /// True when what listens at the endpoint can not be streamed from, so that a running stream only spins.
    pub(super) const fn forbids_streaming(self) -> bool {
        matches!(self, Self::Unreachable)
    }

    /// True when fresh credentials may help.
    pub(super) const fn blames_credentials(self) -> bool {
        matches!(self, Self::PermissionDenied | Self::Unauthenticated | Self::Credentials)
    }
}

/// What happened, with words for the log. The words never hold a payload.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) reason: Reason,
    pub(super) words: String,
}

impl Failure {
    pub(super) fn new(reason: Reason, words: impl Into<String>) -> Self {
        Self { reason, words: words.into() }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        let reason = Reason::of(error);
        // Only what is known to quote no message: a decoding error may show what it could not decode.
        let words = match (reason, error.status()) {
            (Reason::Undecodable, _) => "a message could not be decoded".to_owned(),
            (_, Some(status)) => status.message.chars().take(300).collect(),
            (_, None) => error.to_string().chars().take(300).collect(),
        };
        Self { reason, words }
    }
}

impl From<&Status> for Failure {
    /// What the client library takes for a broken transport, and then spins on, is `Unreachable` here too: no
    /// connection, or an answer that is not gRPC.
    fn from(status: &Status) -> Self {
        let content_type = status.metadata().get("content-type").map(|value| value.as_bytes());
        if content_type.is_some_and(|value| !value.starts_with(b"application/grpc")) {
            return Self::new(Reason::Unreachable, "what answers there does not speak gRPC");
        }
        if status.source().is_some() {
            return Self::new(Reason::Unreachable, status.message().chars().take(300).collect::<String>());
        }
        let reason = Reason::of_code(Code::from(i32::from(status.code())));
        Self::new(reason, status.message().chars().take(300).collect::<String>())
    }
}

/// How a confirmed ack ended, as a label.
pub(super) fn ack_result(result: &Result<(), AckError>) -> &'static str {
    match result {
        Ok(()) => "ok",
        Err(AckError::LeaseExpired) => "lease_expired",
        Err(AckError::Rpc { source, .. }) => Reason::of(source).as_str(),
        Err(AckError::ShutdownBeforeAck | AckError::Shutdown(_)) => "shutdown",
        Err(_) => "other",
    }
}

#[cfg(test)]
mod tests {
    use google_cloud_gax::error::rpc::Status as Theirs;

    use super::*;
    use crate::metrics::labels::{ACK_RESULTS, SOURCE_REASONS};

    fn service(code: Code) -> Reason {
        Reason::of(&Error::service(Theirs::default().set_code(code).set_message("m")))
    }

    #[test]
    fn every_way_to_fail_has_a_class_of_its_own() {
        assert_eq!(service(Code::NotFound), Reason::NotFound);
        assert_eq!(service(Code::PermissionDenied), Reason::PermissionDenied);
        assert_eq!(service(Code::Unauthenticated), Reason::Unauthenticated);
        assert_eq!(service(Code::Cancelled), Reason::Cancelled);
        assert_eq!(service(Code::Unknown), Reason::Unknown);
        assert_eq!(service(Code::Unimplemented), Reason::Other);
        assert_eq!(Reason::of(&Error::io("refused")), Reason::Unreachable);
        assert_eq!(Reason::of(&Error::timeout("late")), Reason::Timeout);
        assert_eq!(Reason::of(&Error::deser("bad")), Reason::Undecodable);
    }

    #[test]
    fn every_class_is_a_declared_label() {
        use Reason as R;
        let all = [
            R::NotFound,
            R::PermissionDenied,
            R::Unauthenticated,
            R::Credentials,
            R::Unreachable,
            R::Timeout,
            R::Cancelled,
            R::Unknown,
            R::InvalidArgument,
            R::FailedPrecondition,
            R::AlreadyExists,
            R::ResourceExhausted,
            R::Server,
            R::Undecodable,
            R::Ended,
            R::Silence,
            R::Panicked,
            R::Other,
        ];

        assert_eq!(all.map(Reason::as_str), SOURCE_REASONS);
        let too_late = ack_result(&Err(AckError::LeaseExpired));
        for label in [ack_result(&Ok(())), too_late, ack_result(&Err(AckError::ShutdownBeforeAck)), "sent"] {
            assert!(ACK_RESULTS.contains(&label), "{label}");
        }
    }

    #[test]
    fn an_answer_that_is_not_grpc_is_no_answer() {
        let mut status = Status::unknown("404");
        assert_eq!(Failure::from(&status).reason, Reason::Unknown);
        status.metadata_mut().insert("content-type", "text/html".parse().unwrap());
        assert_eq!(Failure::from(&status).reason, Reason::Unreachable);
        assert_eq!(Failure::from(&Status::not_found("x")).reason, Reason::NotFound);
        let broken = Status::from_error(Box::new(std::io::Error::other("reset")));
        assert_eq!(Failure::from(&broken).reason, Reason::Unreachable);
    }

    #[test]
    fn the_words_never_quote_what_could_not_be_decoded() {
        let failure = Failure::from(&Error::deser("the text of a message"));

        assert_eq!(failure.words, "a message could not be decoded");
    }
}
