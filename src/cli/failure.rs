//! Errors as users and scripts get them.

use std::io::Write;

use serde_json::json;

use super::{Exit, Output, output};
use crate::{app::NotReady, config::Problems, source::pubsub::RequestError};

/// A command failed in a way that has its own exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// A stable name for scripts.
    pub code: &'static str,
    /// What happened.
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Failure {
    /// A failure without a hint.
    #[must_use]
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self { exit, code, message: message.into(), hint: String::new() }
    }

    /// Something the command depends on can not be reached.
    #[must_use]
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unreachable, "unreachable", message)
    }

    /// The command line is wrong in a way only the command can see.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// Pub/Sub did not do what was asked; `not_found` says what to do about a missing topic or subscription.
    #[must_use]
    pub fn of_request(error: RequestError, not_found: &str) -> Self {
        let message = error.to_string();
        match error {
            RequestError::Unclear(_) => Self::usage(message),
            RequestError::NotFound(_) => Self::new(Exit::NotFound, "not_found", message).hint(not_found),
            RequestError::Unreachable(_) => Self::unreachable(message).hint("check pubsub.endpoint, and that it is up"),
            RequestError::Refused { advice, .. } => Self::new(Exit::Failed, "failed", message).hint(advice),
        }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// As stderr gets it, without the line end.
    #[must_use]
    pub(super) fn text(&self, form: Output) -> String {
        let Self { code, message, hint, .. } = self;
        if form == Output::Json {
            return json!({"error": {"code": code, "message": message, "hint": hint}}).to_string();
        }
        let hint = if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") };
        format!("error: {}{hint}", output::printable(message))
    }
}

/// Tells an error on stderr, as JSON where the user asked for JSON, and gives the exit code.
pub(super) fn report(error: &anyhow::Error, form: Output) -> Exit {
    let failure = explain(error);
    // Nobody is left to hear of a closed stderr.
    drop(writeln!(std::io::stderr(), "{}", failure.text(form)));
    failure.exit
}

fn explain(error: &anyhow::Error) -> Failure {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        let Failure { exit, code, hint, .. } = failure;
        return Failure { exit: *exit, code, message: format!("{error:#}"), hint: hint.clone() };
    }
    if let Some(trouble) = error.downcast_ref::<NotReady>() {
        let (exit, code) = match trouble {
            NotReady::SchemaTooOld { .. } => (Exit::Refused, "schema_too_old"),
            NotReady::CodeTooOld { .. } => (Exit::Refused, "code_too_old"),
            NotReady::Unfit(_) => (Exit::Refused, "store_unfit"),
            NotReady::Away(_) => (Exit::Unreachable, "unreachable"),
        };
        return Failure::new(exit, code, error.to_string()).hint(trouble.hint());
    }
    if let Some(problems) = error.downcast_ref::<Problems>() {
        let hint = "`bellhop config show` prints every key with its value and origin".to_owned();
        let hint =
            if problems.problems.len() > 1 { "put all of them right, then start again".to_owned() } else { hint };
        return Failure::new(Exit::Usage, "configuration", format!("{error:#}")).hint(hint);
    }
    Failure::new(Exit::Failed, "failed", format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_exit_code_under_context() {
        let failure = Failure::unreachable("database does not answer").hint("is it up?");
        let error = anyhow::Error::from(failure).context("can not migrate");

        let told = explain(&error);

        assert_eq!((told.exit, told.code, told.hint.as_str()), (Exit::Unreachable, "unreachable", "is it up?"));
        assert_eq!(told.message, "can not migrate: database does not answer");
    }

    #[test]
    fn anything_else_is_exit_one() {
        assert_eq!(explain(&anyhow::anyhow!("no")).exit, Exit::Failed);
    }
}
