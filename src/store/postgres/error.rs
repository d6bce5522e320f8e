//! What a failed statement means for the caller.

use crate::store::StoreError;

/// What the server said, without its detail: that may quote values of a row.
#[derive(Debug, thiserror::Error)]
#[error("{message} (SQLSTATE {code})")]
struct ServerError {
    code: String,
    message: String,
}

/// The store client's own patience ended.
#[derive(Debug, thiserror::Error)]
#[error("no answer in time")]
pub(super) struct TimedOut;

/// All connections were in use for as long as an answer may take.
#[derive(Debug, thiserror::Error)]
#[error("no connection came free in time")]
pub(super) struct Busy;

/// The server answers, but what it would do with a write is not what the protocol needs.
#[derive(Debug, thiserror::Error)]
#[error("server is unfit: {0}")]
pub(super) struct Unfit(pub(super) String);

/// Sorts an error by what the caller does next.
///
/// Contention: a deadlock, a serialisation failure, a lock or statement timeout of the server; nothing was written.
/// Refused: the data or the statement (classes 22, 23, 42, or what could not be encoded). All else, also a read-only
/// server, means that nobody knows.
pub(super) fn classify(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default().into_owned();
            let cause = ServerError { message: error.message().to_owned(), code };
            match cause.code.as_str() {
                "40001" | "40P01" | "55P03" | "57014" => StoreError::contention(cause),
                code if ["22", "23", "42"].contains(&code.get(..2).unwrap_or_default()) => StoreError::refused(cause),
                _ => StoreError::unknown(cause),
            }
        }
        sqlx::Error::Encode(_)
        | sqlx::Error::Decode(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::Configuration(_) => StoreError::refused(error),
        other => StoreError::unknown(other),
    }
}

/// The server's five-character code, where a server error caused it.
pub(super) fn sqlstate(error: &StoreError) -> Option<&str> {
    match error {
        StoreError::Contention(cause) | StoreError::Refused(cause) | StoreError::Unknown(cause) => {
            cause.downcast_ref::<ServerError>().map(|server| server.code.as_str())
        }
        StoreError::ClaimLost => None,
    }
}
