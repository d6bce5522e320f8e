//! The answer to a claim, given the row as it stands. Pure: the table of `docs/CLAIMS.md`, row by row.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{
    ClaimIntent, Lease, Phase, State, Wait,
    row::{At, Next, Row},
};
use crate::{event::Fingerprint, outcome::Reason};

/// A claim that found a row, and when it did.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What is asked for.
    pub intent: &'a ClaimIntent,
    /// The store's time as read with the row.
    pub now: DateTime<Utc>,
    /// The times that follow from the lease.
    pub lease: Lease,
    /// Take-overs are not allowed for this long: owners get the first word after a start, an outage or a failover.
    pub held_off: Option<Duration>,
}

/// What follows from the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The row is the claimer's own, from a claim whose answer was lost: write this as its owner, then it is answered.
    Resume(Next),
    /// The event is the claimer's once this is written, if the row is still as it was read.
    Take(Next),
    /// The event ends here: write this and the payload to quarantine, if the row is still as it was read.
    PutAside(Next, Reason),
    /// Another event holds this id: its row stays, this payload goes to quarantine. `None` = that row is final.
    Mismatch(Option<Duration>),
    /// Not now.
    Wait {
        /// When asking again makes sense.
        wake_in: Duration,
        /// Why.
        why: Wait,
    },
    /// Handled already.
    Settled,
    /// In quarantine already.
    Quarantined(Reason),
}

/// Answers `ask`; `row` is the event's row.
#[must_use]
pub fn decide(row: &Row, ask: &Ask<'_>) -> Decision {
    if !same(row.event.fingerprint, ask.intent.event.fingerprint) {
        return Decision::Mismatch(match row.state {
            State::Done | State::Quarantined => None,
            State::Running => Some(row.lease_left(ask.now, ask.lease).max(ask.lease.length())),
            State::Retry => Some(row.due_in(ask.now).max(ask.lease.length())),
        });
    }
    match row.state {
        State::Done => Decision::Settled,
        State::Quarantined => Decision::Quarantined(Reason::from_name(&row.note).unwrap_or(Reason::Operator)),
        State::Running => ask.running(row),
        State::Retry => ask.retry(row),
    }
}

/// Whether both name one event. Fingerprints of different versions cannot be compared: they count as equal.
fn same(stored: Fingerprint, asked: Fingerprint) -> bool {
    stored.0[0] != asked.0[0] || stored == asked
}

impl Ask<'_> {
    fn running(&self, row: &Row) -> Decision {
        if row.nonce == self.intent.nonce {
            return Decision::Resume(Next {
                lease_until: At::In(self.lease.length()),
                strict: self.strict(row),
                ..row.unchanged()
            });
        }
        if !row.is_stale(self.now, self.lease) {
            return Decision::Wait { wake_in: row.lease_left(self.now, self.lease), why: Wait::Running };
        }
        if let Some(left) = self.held_off {
            return Decision::Wait { wake_in: left, why: Wait::Running };
        }
        match row.phase {
            Phase::MayHaveRun if self.strict(row) => self.put_aside(row, Reason::OwnerLost),
            _ if row.lost >= self.intent.budget.max_lost => self.put_aside(row, Reason::LostExhausted),
            _ if !self.intent.suspect => self.suspect(),
            Phase::NotBegun | Phase::MayHaveRun => self.take(row),
        }
    }

    fn retry(&self, row: &Row) -> Decision {
        let due_in = row.due_in(self.now);
        if !due_in.is_zero() || row.nonce == self.intent.nonce {
            // An attempt that has ended does not begin again under its own name.
            return Decision::Wait { wake_in: due_in, why: Wait::NotDue };
        }
        match row.phase {
            Phase::MayHaveRun if self.strict(row) => self.put_aside(row, Reason::OutcomeUnknown),
            _ if row.failures >= self.intent.budget.max_failures => self.put_aside(row, Reason::FailuresExhausted),
            _ if row.lost > 0 && !self.intent.suspect => self.suspect(),
            Phase::NotBegun | Phase::MayHaveRun => self.take(row),
        }
    }

    fn strict(&self, row: &Row) -> bool {
        row.strict || self.intent.strict
    }

    /// A new attempt: next epoch, and the phase that the stricter of row and claimer asks for.
    fn take(&self, row: &Row) -> Decision {
        let strict = self.strict(row);
        Decision::Take(Next {
            state: State::Running,
            phase: if strict { Phase::NotBegun } else { Phase::MayHaveRun },
            strict,
            epoch: row.epoch.saturating_add(1),
            lost: row.lost.saturating_add(u16::from(row.state == State::Running)),
            nonce: self.intent.nonce,
            lease_until: At::In(self.lease.length()),
            deadline: if strict { At::Clear } else { At::In(self.lease.promise(self.intent.timeout)) },
            ..row.unchanged()
        })
    }

    fn put_aside(&self, row: &Row, reason: Reason) -> Decision {
        let next = Next { strict: self.strict(row), ..row.unchanged() };
        Decision::PutAside(next.put_aside(reason), reason)
    }

    /// Waits for the process's one permit; the time is for when nobody wakes the copy.
    fn suspect(&self) -> Decision {
        Decision::Wait { wake_in: self.lease.length(), why: Wait::Suspect }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use uuid::Uuid;

    use super::{super::row::after, *};
    use crate::{
        claim::{Budget, Claim, Identity, Key, Nonce, row::before},
        clock::Moment,
        event::{EventId, RawEvent},
        outcome::{Certainty, Note},
    };

    const LEASE: Lease = Lease::new(Duration::from_secs(60));
    const BUDGET: Budget = Budget { max_failures: 8, max_lost: 3 };
    const MINUTE: Duration = Duration::from_secs(60);

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn intent(nonce: u128, strict: bool, suspect: bool) -> ClaimIntent {
        ClaimIntent {
            event: Identity {
                key: Key::from(Uuid::from_u128(1)),
                event_id: EventId::new("bh1-ix-1"),
                event_type: "MESSAGE".to_owned(),
                fingerprint: Fingerprint([1; 17]),
            },
            nonce: Nonce::from(Uuid::from_u128(nonce)),
            strict,
            budget: BUDGET,
            timeout: MINUTE,
            born: now(),
            suspect,
            raw: Arc::new(RawEvent::default()),
        }
    }

    fn first(intent: &ClaimIntent, at: DateTime<Utc>) -> Row {
        Next::first(intent, LEASE).insert(intent.event.clone(), at)
    }

    fn ask(intent: &ClaimIntent) -> Ask<'_> {
        Ask { intent, now: now(), lease: LEASE, held_off: None }
    }

    /// Every row that owner 1 may have left.
    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for state in [State::Running, State::Done, State::Retry, State::Quarantined] {
            for phase in [Phase::NotBegun, Phase::MayHaveRun] {
                for (strict, due, failures, lost) in (0..36).map(|n| (n % 2 == 0, n % 4 < 2, n / 4 % 3, n / 12)) {
                    let at = if due { before(now(), MINUTE * 2) } else { after(now(), MINUTE) };
                    rows.push(Row {
                        state,
                        phase,
                        strict,
                        failures: [0, 1, BUDGET.max_failures][failures],
                        lost: [0, 1, BUDGET.max_lost][lost],
                        epoch: 5,
                        lease_until: at,
                        not_before: Some(at),
                        ..first(&intent(1, strict, false), before(now(), MINUTE * 5))
                    });
                }
            }
        }
        rows
    }

    /// Calls `check` with every row, every claimer, and the answer.
    fn for_all(check: impl Fn(&Row, &ClaimIntent, &Decision)) {
        for row in rows() {
            for nonce in [1, 2] {
                for (strict, suspect) in [(false, false), (false, true), (true, false), (true, true)] {
                    let intent = intent(nonce, strict, suspect);
                    check(&row, &intent, &decide(&row, &ask(&intent)));
                }
            }
        }
    }

    #[test]
    fn a_strict_event_that_may_have_run_is_nobody_elses() {
        for_all(|row, intent, decision| {
            let strict = row.strict || intent.strict;
            if strict && row.phase == Phase::MayHaveRun && row.nonce != intent.nonce {
                assert!(
                    !matches!(decision, Decision::Take(_) | Decision::Resume(_)),
                    "{row:?} {intent:?} {decision:?}"
                );
            }
        });
    }

    #[test]
    fn a_new_owner_has_the_next_epoch_and_the_old_one_its_own() {
        for_all(|row, intent, decision| {
            let own = row.is_owned_by(intent.nonce);
            match decision {
                Decision::Take(next) => {
                    assert_eq!((next.nonce, next.epoch, own), (intent.nonce, 6, false), "{row:?}");
                }
                Decision::Resume(next) => {
                    assert_eq!((next.nonce, next.epoch, own), (intent.nonce, 5, true), "{row:?}");
                }
                _ => assert!(!own, "{row:?}"),
            }
        });
    }

    #[test]
    fn nothing_is_taken_from_a_live_owner_nor_before_its_time_nor_when_final() {
        for_all(|row, _, decision| {
            if let Decision::Take(_) | Decision::PutAside(..) = decision {
                assert!(row.lease_until < now(), "{row:?} {decision:?}");
                assert!(matches!(row.state, State::Running | State::Retry), "{row:?} {decision:?}");
            }
        });
    }

    #[test]
    fn an_event_that_lost_an_owner_is_claimed_only_with_the_permit() {
        for_all(|row, intent, decision| {
            let suspect = row.lost > 0 || row.state == State::Running;
            if let (Decision::Take(_), true) = (decision, suspect) {
                assert!(intent.suspect, "{row:?} {intent:?}");
            }
        });
    }

    #[test]
    fn budgets_are_never_passed_and_what_is_put_aside_keeps_its_name() {
        for_all(|row, _, decision| match decision {
            Decision::Take(next) => {
                assert!(next.lost <= BUDGET.max_lost && row.failures <= BUDGET.max_failures, "{row:?}");
                assert!(row.state != State::Retry || row.failures < BUDGET.max_failures, "{row:?}");
            }
            Decision::PutAside(aside, reason) => {
                assert_eq!((aside.nonce, aside.epoch, aside.state), (row.nonce, row.epoch, State::Quarantined));
                assert_eq!(Reason::from_name(&aside.note), Some(*reason));
            }
            _ => {}
        });
    }

    #[test]
    fn a_strict_claim_begins_as_not_begun_and_promises_no_deadline_yet() {
        for_all(|row, intent, decision| {
            if let Decision::Take(next) = decision {
                let begun = next.phase == Phase::MayHaveRun;
                assert_eq!(next.strict, row.strict || intent.strict);
                assert_eq!((begun, next.deadline != At::Clear), (!next.strict, begun));
            }
        });
    }

    #[test]
    fn while_owners_have_the_first_word_nobody_is_taken_over() {
        for row in rows() {
            for suspect in [false, true] {
                let intent = intent(2, false, suspect);
                let decision = decide(&row, &Ask { held_off: Some(MINUTE), ..ask(&intent) });

                let touched = matches!(decision, Decision::Take(_) | Decision::PutAside(..));
                assert!(!touched || row.state != State::Running, "{row:?} {decision:?}");
            }
        }
    }

    /// The guard of a write by somebody else compares these three: a write that changed none of them would let his in.
    #[test]
    fn every_write_but_a_completion_changes_state_epoch_or_lease() {
        let seen = |row: &Row, next: &Next| {
            next.state != row.state || next.epoch != row.epoch || matches!(next.lease_until, At::In(_))
        };
        for_all(|row, _, decision| {
            if let Decision::Resume(next) | Decision::Take(next) | Decision::PutAside(next, _) = decision {
                assert!(seen(row, next), "{row:?} {next:?}");
            }
            if row.state == State::Quarantined {
                assert!(seen(row, &row.unchanged().requeued()), "{row:?}");
            }
            let claim = claim_of(row);
            let note = Note::new("no");
            let owners = [
                claim.started(LEASE),
                claim.as_row().retry(false, None, Certainty::NotRun, &note),
                claim.as_row().quarantined(true, Certainty::Open, Reason::Permanent),
            ];
            if row.state == State::Running {
                assert!(owners.iter().all(|next| seen(row, next)), "{row:?}");
            }
        });
    }

    fn claim_of(row: &Row) -> Claim {
        Claim {
            intent: Arc::new(intent(1, row.strict, false)),
            epoch: row.epoch,
            phase: row.phase,
            strict: row.strict,
            failures: row.failures,
            lost: row.lost,
            note: row.note.clone(),
            fence_at: Moment::from_boot(MINUTE),
            deadline_at: None,
        }
    }

    #[test]
    fn certainty_that_nothing_was_done_is_kept_only_where_nothing_ever_was() {
        for (strict, epoch) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let row = Row { strict, epoch, ..first(&intent(1, strict, false), now()) };
            let started = Claim { phase: Phase::MayHaveRun, ..claim_of(&row) };

            let phase = |certainty| started.as_row().retry(false, None, certainty, &Note::default()).phase;

            let certain = strict || epoch == 1;
            let not_run = if certain { Phase::NotBegun } else { Phase::MayHaveRun };
            assert_eq!(phase(Certainty::NotRun), not_run, "strict {strict}, epoch {epoch}");
            assert_eq!((phase(Certainty::Over), phase(Certainty::Open)), (Phase::MayHaveRun, Phase::MayHaveRun));
        }
    }

    #[test]
    fn a_lease_is_over_only_when_its_grace_is_over_too() {
        let intent = intent(2, false, true);
        let ended = |ago| Row { lease_until: before(now(), ago), ..rows().remove(0) };

        let within = decide(&ended(LEASE.grace()), &ask(&intent));
        let beyond = decide(&ended(LEASE.grace() + Duration::from_millis(1)), &ask(&intent));

        assert_eq!(within, Decision::Wait { wake_in: Duration::ZERO, why: Wait::Running });
        assert!(matches!(beyond, Decision::Take(_)), "{beyond:?}");
    }
}
