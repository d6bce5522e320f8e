//! Errors as users and scripts get them.

use std::io::Write;

use serde_json::json;

use super::{Exit, Failure, Output, output};
use crate::config::Problems;

/// Tells an error on stderr, as JSON where the user asked for JSON, and gives the exit code.
pub(super) fn report(error: &anyhow::Error, form: Output) -> Exit {
    let failure = explain(error);
    let text = if form == Output::Json {
        json!({"error": {"code": failure.code, "message": failure.message, "hint": failure.hint}}).to_string()
    } else {
        let hint = if failure.hint.is_empty() { String::new() } else { format!("\nhint: {}", failure.hint) };
        format!("error: {}{hint}", output::printable(&failure.message))
    };
    // Nobody is left to hear of a closed stderr.
    drop(writeln!(std::io::stderr(), "{text}"));
    failure.exit
}

fn explain(error: &anyhow::Error) -> Failure {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        let Failure { exit, code, hint, .. } = failure;
        return Failure { exit: *exit, code, message: format!("{error:#}"), hint: hint.clone() };
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
