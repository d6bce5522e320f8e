//! How handling ended, and what follows for store and source. Pure.

use std::{fmt, time::Duration};

/// Why an event is in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The handler said no as often as it may.
    FailuresExhausted,
    /// The handler said that no retry will help.
    Permanent,
    /// The owner of a strict event died while it may have run.
    OwnerLost,
    /// Owners died with it as often as they may.
    LostExhausted,
    /// Nobody knows whether the strict event was handled.
    OutcomeUnknown,
    /// Not a Chat event.
    Undecodable,
    /// A copy that came back after its row was forgotten.
    TooOld,
    /// The broker stopped redelivering it before it was settled.
    Stranded,
    /// A rule or an operator put it there.
    Operator,
    /// Another event holds this id.
    Mismatch,
}

impl Reason {
    /// Every reason, in the order of listings.
    pub const ALL: [Self; 10] = [
        Self::FailuresExhausted,
        Self::Permanent,
        Self::OwnerLost,
        Self::LostExhausted,
        Self::OutcomeUnknown,
        Self::Undecodable,
        Self::TooOld,
        Self::Stranded,
        Self::Operator,
        Self::Mismatch,
    ];

    /// The name in stores, metrics and listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailuresExhausted => "failures_exhausted",
            Self::Permanent => "permanent",
            Self::OwnerLost => "owner_lost",
            Self::LostExhausted => "lost_exhausted",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Undecodable => "undecodable",
            Self::TooOld => "too_old",
            Self::Stranded => "stranded",
            Self::Operator => "operator",
            Self::Mismatch => "mismatch",
        }
    }

    /// The reason of a stored name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A short text for a note or detail: lossy UTF-8, no control characters, at most 300 characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Note(String);

impl Note {
    /// Characters kept.
    pub const MAX: usize = 300;

    /// What is left of `text` after cleaning.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let line = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
        Self(line.filter(|c| !c.is_control()).take(Self::MAX).collect())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is noted of an attempt that a drain cut. The process that cut it is gone before anybody reads its metrics, so
/// it is counted by this note when the event is claimed again.
pub const CUT_BY_DRAIN: &str = "cut by a drain";

/// What is certain about the handler when an attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Certainly not called, or it said that nothing was done: a strict event may be tried again.
    NotRun,
    /// It answered, or its process group is gone: nothing of this attempt is still running.
    Over,
    /// It may still be running until the promised deadline.
    Open,
}

/// What is written to the store when an attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Handled. Final.
    Done,
    /// Try again after a while.
    Retry {
        /// Whether it costs the event a failure.
        counts: bool,
        /// How long to wait; `None` = at once.
        after: Option<Duration>,
        /// What is certain about the handler.
        certainty: Certainty,
        /// Why, for operators.
        note: Note,
    },
    /// Put aside for a human, with the payload.
    Quarantine {
        /// Why.
        reason: Reason,
        /// Whether the last attempt costs a failure.
        counts: bool,
        /// What is certain about the handler.
        certainty: Certainty,
        /// What the handler said, for operators: the first 2 kB of its answer or error output.
        detail: Detail,
    },
}

/// A longer text for a quarantine row: cleaned like a [`Note`], at most 2,048 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detail(String);

impl Detail {
    /// Bytes kept.
    pub const MAX: usize = 2_048;

    /// What is left of `bytes` after cleaning; line breaks stay.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(Self::MAX)];
        let mut text: String =
            String::from_utf8_lossy(head).chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control()).collect();
        while text.len() > Self::MAX {
            text.pop();
        }
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_has_no_control_characters_and_at_most_300_characters() {
        let note = Note::new(&format!("a\0b\u{1b}[31m\nc{}", "é".repeat(400)));

        assert!(note.as_str().starts_with("ab[31m c"));
        assert_eq!(note.as_str().chars().count(), Note::MAX);
    }

    #[test]
    fn a_detail_keeps_lines_and_at_most_2048_bytes() {
        let detail = Detail::new(&[b"first\nsecond\0".as_slice(), &[0xff; 3_000]].concat());

        assert!(detail.as_str().starts_with("first\nsecond\u{fffd}"));
        assert!(detail.as_str().len() <= Detail::MAX);
    }

    #[test]
    fn every_reason_is_found_by_its_name() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_name(reason.as_str()), Some(reason));
        }
    }
}
