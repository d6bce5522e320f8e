//! The answer to a claim, given the row as it stands. Pure: the table of `docs/CLAIMS.md`, row by row.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{
    ClaimIntent, Lease, Phase, State, Wait,
    row::{Row, after, before},
};
use crate::{event::Fingerprint, outcome::Reason};

/// A copy younger than this less than the retention can not have been forgotten yet.
const FENCE_MARGIN: Duration = Duration::from_secs(86_400);

/// A claim, and when it reached the store.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// What is asked for.
    pub intent: &'a ClaimIntent,
    /// The store's time.
    pub now: DateTime<Utc>,
    /// The store's lease.
    pub lease: Lease,
    /// How long finished events are remembered.
    pub retention: Duration,
}

/// What the store writes and answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The event is the claimer's: write this row.
    Mine(Row),
    /// The event ends here: write this row, and one in quarantine under the row's nonce and epoch.
    Quarantine(Row, Reason),
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
pub fn decide(row: Option<&Row>, ask: &Ask<'_>) -> Decision {
    let Some(row) = row else { return ask.unseen() };
    if !same(row.fingerprint, ask.intent.fingerprint) {
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

/// Whether both name one event. Fingerprints of different versions can not be compared: they count as equal.
fn same(stored: Fingerprint, asked: Fingerprint) -> bool {
    stored.0[0] != asked.0[0] || stored == asked
}

impl Ask<'_> {
    fn unseen(&self) -> Decision {
        let mut row = Row::first(self.intent, self.now, self.lease);
        if self.intent.born >= before(self.now, self.retention.saturating_sub(FENCE_MARGIN)) {
            return Decision::Mine(row);
        }
        row.phase = Phase::NotBegun;
        row.deadline = None;
        row.put_aside(Reason::TooOld, self.now);
        Decision::Quarantine(row, Reason::TooOld)
    }

    fn running(&self, row: &Row) -> Decision {
        if row.nonce == self.intent.nonce {
            return Decision::Mine(Row {
                lease_until: after(self.now, self.lease.length()),
                strict: self.strict(row),
                ..row.clone()
            });
        }
        if !row.is_stale(self.now, self.lease) {
            return Decision::Wait { wake_in: row.lease_left(self.now, self.lease), why: Wait::Running };
        }
        match row.phase {
            Phase::ReplyPending => self.take(row),
            Phase::MayHaveRun if self.strict(row) => self.put_aside(row, Reason::OwnerLost),
            _ if row.lost >= self.intent.budget.max_lost => self.put_aside(row, Reason::LostExhausted),
            _ if !self.intent.suspect => self.suspect(),
            _ => self.take(row),
        }
    }

    fn retry(&self, row: &Row) -> Decision {
        let due_in = row.due_in(self.now);
        if !due_in.is_zero() || row.nonce == self.intent.nonce {
            // An attempt that has ended does not begin again under its own name.
            return Decision::Wait { wake_in: due_in, why: Wait::NotDue };
        }
        match row.phase {
            Phase::ReplyPending => self.take(row),
            Phase::MayHaveRun if self.strict(row) => self.put_aside(row, Reason::OutcomeUnknown),
            _ if row.failures >= self.intent.budget.max_failures => self.put_aside(row, Reason::FailuresExhausted),
            _ if row.lost > 0 && !self.intent.suspect => self.suspect(),
            _ => self.take(row),
        }
    }

    fn strict(&self, row: &Row) -> bool {
        row.strict || self.intent.strict
    }

    /// A new attempt: next epoch, and the phase that the stricter of row and claimer asks for.
    fn take(&self, row: &Row) -> Decision {
        let replies_only = row.phase == Phase::ReplyPending;
        let strict = self.strict(row);
        let lost_owner = row.state == State::Running && !replies_only;
        Decision::Mine(Row {
            state: State::Running,
            nonce: self.intent.nonce,
            lease_until: after(self.now, self.lease.length()),
            strict,
            epoch: row.epoch.saturating_add(1),
            lost: row.lost.saturating_add(u16::from(lost_owner)),
            phase: match (replies_only, strict) {
                (true, _) => Phase::ReplyPending,
                (false, true) => Phase::NotBegun,
                (false, false) => Phase::MayHaveRun,
            },
            deadline: (!replies_only && !strict).then(|| after(self.now, self.intent.timeout + self.lease.grace())),
            ..row.clone()
        })
    }

    fn put_aside(&self, row: &Row, reason: Reason) -> Decision {
        let mut row = row.clone();
        row.strict = self.strict(&row);
        row.put_aside(reason, self.now);
        Decision::Quarantine(row, reason)
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

    use super::*;
    use crate::{
        claim::{Budget, Key, Nonce},
        event::{EventId, RawEvent},
    };

    const LEASE: Lease = Lease::new(Duration::from_secs(60));
    const BUDGET: Budget = Budget { max_failures: 8, max_lost: 3 };
    const MINUTE: Duration = Duration::from_secs(60);

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    fn intent(nonce: u128, strict: bool, suspect: bool) -> ClaimIntent {
        ClaimIntent {
            key: Key::from(Uuid::from_u128(1)),
            event_id: EventId::new("bh1-ix-1"),
            event_type: "MESSAGE".to_owned(),
            fingerprint: Fingerprint([1; 17]),
            nonce: Nonce::from(Uuid::from_u128(nonce)),
            strict,
            budget: BUDGET,
            timeout: MINUTE,
            born: now(),
            suspect,
            raw: Arc::new(RawEvent::default()),
        }
    }

    /// Every row that owner 1 may have left.
    fn rows() -> Vec<Row> {
        let mut rows = Vec::new();
        for state in [State::Running, State::Done, State::Retry, State::Quarantined] {
            for phase in [Phase::NotBegun, Phase::MayHaveRun, Phase::ReplyPending] {
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
                        ..Row::first(&intent(1, strict, false), before(now(), MINUTE * 5), LEASE)
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
                    let ask = Ask { intent: &intent, now: now(), lease: LEASE, retention: MINUTE * 60 * 24 * 10 };
                    check(&row, &intent, &decide(Some(&row), &ask));
                }
            }
        }
    }

    #[test]
    fn a_strict_event_that_may_have_run_is_nobody_elses() {
        for_all(|row, intent, decision| {
            let strict = row.strict || intent.strict;
            if strict && row.phase == Phase::MayHaveRun && row.nonce != intent.nonce {
                assert!(!matches!(decision, Decision::Mine(_)), "{row:?} {intent:?} {decision:?}");
            }
        });
    }

    #[test]
    fn a_new_owner_has_the_next_epoch_and_the_old_one_its_own() {
        for_all(|row, intent, decision| {
            if let Decision::Mine(mine) = decision {
                let own = row.nonce == intent.nonce;
                assert_eq!((mine.nonce, mine.epoch), (intent.nonce, if own { 5 } else { 6 }), "{row:?}");
                assert!(!own || row.state == State::Running, "{row:?}");
            }
        });
    }

    #[test]
    fn nothing_is_taken_from_a_live_owner_nor_before_its_time_nor_when_final() {
        for_all(|row, intent, decision| {
            if let Decision::Mine(_) | Decision::Quarantine(..) = decision {
                let over = row.lease_until < now();
                assert!(row.nonce == intent.nonce || over, "{row:?} {decision:?}");
                assert!(matches!(row.state, State::Running | State::Retry), "{row:?} {decision:?}");
            }
        });
    }

    #[test]
    fn an_event_that_lost_an_owner_is_claimed_only_with_the_permit() {
        for_all(|row, intent, decision| {
            let suspect = row.lost > 0 || row.state == State::Running;
            let other = row.nonce != intent.nonce;
            if let (Decision::Mine(_), true, true) = (decision, suspect, other) {
                assert!(intent.suspect || row.phase == Phase::ReplyPending, "{row:?} {intent:?}");
            }
        });
    }

    #[test]
    fn budgets_are_never_passed_and_what_is_put_aside_keeps_its_name() {
        for_all(|row, intent, decision| match decision {
            Decision::Mine(mine) if mine.phase != Phase::ReplyPending && row.nonce != intent.nonce => {
                assert!(mine.lost <= BUDGET.max_lost && row.failures <= BUDGET.max_failures, "{row:?}");
                assert!(row.state != State::Retry || row.failures < BUDGET.max_failures, "{row:?}");
            }
            Decision::Quarantine(aside, reason) => {
                assert_eq!((aside.nonce, aside.epoch, aside.state), (row.nonce, row.epoch, State::Quarantined));
                assert_eq!(Reason::from_name(&aside.note), Some(*reason));
            }
            _ => {}
        });
    }

    #[test]
    fn a_strict_claim_begins_as_not_begun_and_promises_no_deadline_yet() {
        for_all(|row, intent, decision| {
            if let (Decision::Mine(mine), true) = (decision, row.nonce != intent.nonce) {
                let lax = mine.phase == Phase::MayHaveRun;
                assert_eq!(mine.strict, row.strict || intent.strict);
                assert_eq!((lax, mine.deadline.is_some()), (!mine.strict && row.phase != Phase::ReplyPending, lax));
            }
        });
    }
    #[test]
    fn a_lease_is_over_only_when_its_grace_is_over_too() {
        let intent = intent(2, false, true);
        let ask = Ask { intent: &intent, now: now(), lease: LEASE, retention: MINUTE * 60 * 24 * 10 };
        let ended = |ago| Row { lease_until: before(now(), ago), ..rows().remove(0) };

        let within = decide(Some(&ended(LEASE.grace())), &ask);
        let beyond = decide(Some(&ended(LEASE.grace() + Duration::from_millis(1))), &ask);

        assert_eq!(within, Decision::Wait { wake_in: Duration::ZERO, why: Wait::Running });
        assert!(matches!(beyond, Decision::Mine(_)), "{beyond:?}");
    }
}
