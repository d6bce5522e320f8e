//! From how a handler ended to what is written. Pure.

use std::time::Duration;

use crate::{
    claim::{Budget, Claim},
    handler::{Handled, HandlerError},
    outcome::{CUT_BY_DRAIN, Certainty, Detail, Note, Outcome, Reason},
    retry::Backoff,
};

/// How calling the handler ended.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It answered.
    Answered(Result<Handled, HandlerError>),
    /// It did not answer in time and was cut.
    TimedOut,
    /// It panicked.
    Panicked,
    /// It was cut because its lease was lost.
    Fenced,
    /// It was cut because the drain's time was over.
    Drained,
    /// It was never called: the claim could not be proven to be ours any more, or a drain began first.
    NotCalled,
}

impl Verdict {
    /// The label of handler durations.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::Answered(Ok(_)) => "ok",
            Self::TimedOut | Self::Answered(Err(HandlerError::TimedOut { .. })) => "timeout",
            Self::Answered(Err(_)) | Self::Fenced | Self::Drained | Self::NotCalled => "error",
            Self::Panicked => "panic",
        }
    }

    /// Whether the handler's target could not be reached, or was not the right one; `None` when it was not asked.
    pub(super) const fn target_trouble(&self) -> Option<bool> {
        match self {
            Self::Answered(Err(HandlerError::TargetTrouble { .. })) => Some(true),
            Self::Answered(_) | Self::TimedOut | Self::Panicked => Some(false),
            Self::Fenced | Self::Drained | Self::NotCalled => None,
        }
    }
}

/// What the conclusion depends on beside the verdict.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The row's word, not the rule's.
    pub(super) strict: bool,
    /// Failures before this attempt.
    pub(super) failures: u16,
    /// Attempts before this one that cost nothing: they wait longer and longer all the same.
    pub(super) uncounted: u16,
    /// The limits of the rule.
    pub(super) budget: Budget,
    /// The delays.
    pub(super) backoff: Backoff,
    /// Decides the random half of the delay, `0.0..=1.0`.
    pub(super) luck: f64,
    /// Time left until the deadline the row promises.
    pub(super) promised: Duration,
}

impl Terms {
    pub(super) fn of(claim: &Claim, budget: Budget, backoff: Backoff, luck: f64, promised: Duration) -> Self {
        let attempts = u16::try_from(claim.epoch.saturating_sub(1)).unwrap_or(u16::MAX);
        let uncounted = attempts.saturating_sub(claim.failures).saturating_sub(claim.lost);
        Self { strict: claim.strict, failures: claim.failures, uncounted, budget, backoff, luck, promised }
    }

    /// What is to be written for `verdict`.
    pub(super) fn conclude(&self, verdict: Verdict) -> Outcome {
        match verdict {
            Verdict::Answered(Ok(_)) => Outcome::Done,
            Verdict::Answered(Err(error)) => self.failed(error),
            Verdict::TimedOut => self.unknown("handler did not answer in time", Detail::default(), Certainty::Open),
            Verdict::Panicked => self.unknown("handler panicked", Detail::default(), Certainty::Over),
            Verdict::Drained if self.strict => self.unknown(CUT_BY_DRAIN, Detail::default(), Certainty::Open),
            Verdict::Drained => self.hand_back(CUT_BY_DRAIN),
            Verdict::Fenced => self.hand_back("lease lost"),
            Verdict::NotCalled => Outcome::Retry {
                counts: false,
                after: None,
                certainty: Certainty::NotRun,
                note: Note::new("handed back before the handler was called"),
            },
        }
    }

    fn failed(&self, error: HandlerError) -> Outcome {
        match error {
            HandlerError::NotRun { what, after, detail } => self.retry(&what, after, detail, Certainty::NotRun),
            HandlerError::Failed { what, detail, .. } if self.strict => self.unknown(&what, detail, Certainty::Over),
            HandlerError::Failed { what, after, detail } => self.retry(&what, after, detail, Certainty::Over),
            HandlerError::Permanent { detail, what } => Outcome::Quarantine {
                reason: Reason::Permanent,
                counts: true,
                certainty: Certainty::Over,
                detail: said(&what, &detail),
            },
            HandlerError::TimedOut { what, detail } => self.unknown(&what, detail, Certainty::Over),
            HandlerError::Unknown { what, detail, over } => {
                self.unknown(&what, detail, if over { Certainty::Over } else { Certainty::Open })
            }
            HandlerError::TargetTrouble { what, .. } => Outcome::Retry {
                counts: false,
                after: Some(self.backoff.delay(self.uncounted.saturating_add(1), self.luck)),
                certainty: Certainty::NotRun,
                note: Note::new(&what),
            },
        }
    }

    /// Nobody knows whether it was handled: the rule decides.
    fn unknown(&self, what: &str, detail: Detail, certainty: Certainty) -> Outcome {
        if self.strict {
            let detail = said(what, &detail);
            return Outcome::Quarantine { reason: Reason::OutcomeUnknown, counts: false, certainty, detail };
        }
        self.retry(what, None, detail, certainty)
    }

    /// A failure that counts, until the budget is spent.
    fn retry(&self, what: &str, asked: Option<Duration>, detail: Detail, certainty: Certainty) -> Outcome {
        let failures = self.failures.saturating_add(1);
        if failures >= self.budget.max_failures {
            return Outcome::Quarantine {
                reason: Reason::FailuresExhausted,
                counts: true,
                certainty,
                detail: said(what, &detail),
            };
        }
        let delay = asked.map_or_else(|| self.backoff.delay(failures, self.luck), |asked| self.backoff.clamp(asked));
        Outcome::Retry { counts: true, after: Some(delay), certainty, note: Note::new(what) }
    }

    /// Not before the deadline that was promised: the cut handler may run until then.
    fn hand_back(&self, why: &str) -> Outcome {
        Outcome::Retry { counts: false, after: Some(self.promised), certainty: Certainty::Open, note: Note::new(why) }
    }
}

fn said(what: &str, detail: &Detail) -> Detail {
    if detail.as_str().is_empty() {
        return Detail::new(what.as_bytes());
    }
    Detail::new(format!("{what}\n{}", detail.as_str()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMISED: Duration = Duration::from_secs(42);

    fn terms(strict: bool, failures: u16) -> Terms {
        Terms {
            strict,
            failures,
            uncounted: 0,
            budget: Budget { max_failures: 3, max_lost: 3 },
            backoff: Backoff::new(Duration::from_secs(10), Duration::from_secs(600)),
            luck: 1.0,
            promised: PROMISED,
        }
    }

    fn failed(after: Option<Duration>) -> Verdict {
        Verdict::Answered(Err(HandlerError::Failed { what: "500".into(), after, detail: Detail::default() }))
    }

    fn not_run(after: Option<Duration>) -> Verdict {
        Verdict::Answered(Err(HandlerError::NotRun { what: "429".into(), after, detail: Detail::default() }))
    }

    fn trouble() -> Verdict {
        Verdict::Answered(Err(HandlerError::TargetTrouble { what: "refused".into(), detail: Detail::default() }))
    }

    /// (counts, seconds, certainty) of a retry, or the reason of a quarantine.
    fn shape(outcome: &Outcome) -> String {
        match outcome {
            Outcome::Done => "done".into(),
            Outcome::Retry { counts, after, certainty, .. } => {
                format!("retry counts={counts} after={:?} {certainty:?}", after.map(|after| after.as_secs()))
            }
            Outcome::Quarantine { reason, counts, certainty, .. } => {
                format!("{reason} counts={counts} {certainty:?}")
            }
        }
    }

    #[test]
    fn each_verdict_has_one_outcome_under_each_rule() {
        let hangs_up = |over| {
            Verdict::Answered(Err(HandlerError::Unknown { what: "reset".into(), detail: Detail::default(), over }))
        };
        let stopped =
            || Verdict::Answered(Err(HandlerError::TimedOut { what: "killed".into(), detail: Detail::default() }));
        let permanent =
            || Verdict::Answered(Err(HandlerError::Permanent { what: "400".into(), detail: Detail::default() }));
        let ok = || Verdict::Answered(Ok(Handled::default()));
        type Row = (&'static str, fn() -> Verdict, &'static str, &'static str);
        let table: [Row; 4] = [
            (
                "timeout",
                || Verdict::TimedOut,
                "retry counts=true after=Some(10) Open",
                "outcome_unknown counts=false Open",
            ),
            (
                "panic",
                || Verdict::Panicked,
                "retry counts=true after=Some(10) Over",
                "outcome_unknown counts=false Over",
            ),
            (
                "drained",
                || Verdict::Drained,
                "retry counts=false after=Some(42) Open",
                "outcome_unknown counts=false Open",
            ),
            (
                "not called",
                || Verdict::NotCalled,
                "retry counts=false after=None NotRun",
                "retry counts=false after=None NotRun",
            ),
        ];
        for (name, verdict, rerun, strict) in table {
            assert_eq!(shape(&terms(false, 0).conclude(verdict())), rerun, "{name}, rerun");
            assert_eq!(shape(&terms(true, 0).conclude(verdict())), strict, "{name}, strict");
        }
        for strict in [false, true] {
            let of = |verdict| shape(&terms(strict, 0).conclude(verdict));
            assert_eq!(of(ok()), "done");
            assert_eq!(of(permanent()), "permanent counts=true Over");
            assert_eq!(of(not_run(None)), "retry counts=true after=Some(10) NotRun");
            assert_eq!(of(trouble()), "retry counts=false after=Some(10) NotRun");
            assert_eq!(of(Verdict::Fenced), "retry counts=false after=Some(42) Open");
        }
        assert_eq!(shape(&terms(false, 0).conclude(failed(None))), "retry counts=true after=Some(10) Over");
        assert_eq!(shape(&terms(true, 0).conclude(failed(None))), "outcome_unknown counts=false Over");
        assert_eq!(shape(&terms(false, 0).conclude(stopped())), "retry counts=true after=Some(10) Over");
        assert_eq!(shape(&terms(true, 0).conclude(stopped())), "outcome_unknown counts=false Over");
        assert_eq!(shape(&terms(false, 0).conclude(hangs_up(true))), "retry counts=true after=Some(10) Over");
        assert_eq!(shape(&terms(true, 0).conclude(hangs_up(false))), "outcome_unknown counts=false Open");
    }

    #[test]
    fn a_handler_that_was_ended_at_its_deadline_is_labelled_as_a_timeout() {
        let ended = HandlerError::TimedOut { what: "killed at the deadline".into(), detail: Detail::default() };

        assert_eq!(Verdict::Answered(Err(ended)).label(), "timeout");
        assert_eq!(Verdict::TimedOut.label(), "timeout");
        assert_eq!(failed(None).label(), "error");
    }

    #[test]
    fn the_last_failure_the_budget_allows_quarantines() {
        assert_eq!(shape(&terms(false, 1).conclude(failed(None))), "retry counts=true after=Some(20) Over");
        assert_eq!(shape(&terms(false, 2).conclude(failed(None))), "failures_exhausted counts=true Over");
        assert_eq!(shape(&terms(true, 2).conclude(not_run(None))), "failures_exhausted counts=true NotRun");
    }

    #[test]
    fn target_trouble_never_spends_the_budget() {
        assert_eq!(shape(&terms(false, 2).conclude(trouble())), "retry counts=false after=Some(10) NotRun");
    }

    #[test]
    fn an_event_that_is_always_target_trouble_comes_ever_more_seldom() {
        let after = |uncounted| shape(&Terms { uncounted, ..terms(false, 0) }.conclude(trouble()));

        assert_eq!(after(1), "retry counts=false after=Some(20) NotRun");
        assert_eq!(after(9), "retry counts=false after=Some(600) NotRun");
    }

    #[test]
    fn what_the_handler_asks_for_is_kept_between_the_limits() {
        let after = |seconds| not_run(Some(Duration::from_secs(seconds)));

        assert_eq!(shape(&terms(false, 0).conclude(after(1))), "retry counts=true after=Some(10) NotRun");
        assert_eq!(shape(&terms(false, 0).conclude(after(90))), "retry counts=true after=Some(90) NotRun");
        assert_eq!(shape(&terms(false, 0).conclude(after(86_400))), "retry counts=true after=Some(600) NotRun");
    }
}
