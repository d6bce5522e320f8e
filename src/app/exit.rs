//! How a process ends.

use std::process::ExitCode;

/// How a command ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Ok = 0,
    /// It, or a check, failed.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// What was asked for does not exist.
    NotFound = 3,
    /// Some of it was done.
    Partly = 4,
    /// Not done: not confirmed, or a precondition does not hold.
    Refused = 5,
    /// Something it depends on can not be reached.
    Unreachable = 6,
    /// Stopped by a signal before its end.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

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

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }
}
