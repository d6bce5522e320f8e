//! A claim row, and every write it may go through. Pure.
//!
//! A write is a [`Next`]: the columns the row has afterwards, with times as spans, since only the store's clock at the
//! moment of the write may turn them into times. Stores write what they are given; none of them knows why.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Claim, ClaimIntent, Identity, Lease, Nonce, Phase, Standing, State};
use crate::outcome::{CUT_BY_DRAIN, Certainty, Note, Reason};

/// A lease may outlive the promised deadline by this much, for the settling; no more, or a forgotten attempt would
/// hold its event for ever.
pub const SETTLE_TIME: Duration = Duration::from_secs(5 * 60);

/// A claim that nobody took up for this long after it was due is stranded: an hour, and the longest usual backoff.
pub const STRANDED_AFTER: Duration = Duration::from_secs(3_600 + 600);

/// One event's claim as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which event.
    pub event: Identity,
    /// Where it stands.
    pub state: State,
    /// Whether the handler may have been called.
    pub phase: Phase,
    /// Once strict, always strict.
    pub strict: bool,
    /// Fencing number, never lowered.
    pub epoch: u32,
    /// Times the handler said no.
    pub failures: u16,
    /// Times an owner was lost.
    pub lost: u16,
    /// The attempt that owns it, or owned it last.
    pub nonce: Nonce,
    /// How long the owner may be silent.
    pub lease_until: DateTime<Utc>,
    /// The handler may run until then; `None` = it certainly does not run.
    pub deadline: Option<DateTime<Utc>>,
    /// When the next attempt is due.
    pub not_before: Option<DateTime<Utc>>,
    /// When it was first claimed.
    pub first_seen_at: DateTime<Utc>,
    /// When it became final.
    pub finished_at: Option<DateTime<Utc>>,
    /// Why it stands where it stands.
    pub note: String,
}

/// A time that a write sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// As it is.
    Keep,
    /// None any more.
    Clear,
    /// This long after the store's time at the write.
    In(Duration),
}

/// A row as a write leaves it. All columns but the times are written, whatever the writer believes they are now: his
/// copy may be older than the row.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns of `Row`")]
pub struct Next {
    pub state: State,
    pub phase: Phase,
    pub strict: bool,
    pub epoch: u32,
    pub failures: u16,
    pub lost: u16,
    pub nonce: Nonce,
    pub note: String,
    /// Never [`At::Clear`]: every row has a lease, live or over.
    pub lease_until: At,
    pub deadline: At,
    pub not_before: At,
    pub finished_at: At,
}

/// `span` after `time`, at most the end of time.
pub(super) fn after(time: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span).ok().and_then(|span| time.checked_add_signed(span)).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// `span` before `time`, at least the beginning of time.
#[must_use]
pub fn before(time: DateTime<Utc>, span: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(span).ok().and_then(|span| time.checked_sub_signed(span)).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// The time from `now` until `time`, zero when it has passed.
fn until(time: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (time - now).to_std().unwrap_or_default()
}

impl At {
    /// What a column that holds `current` holds after the write.
    #[must_use]
    pub fn apply(self, current: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Keep => current,
            Self::Clear => None,
            Self::In(span) => Some(after(now, span)),
        }
    }
}

impl Row {
    /// Whether the owner was silent for longer than lease and grace.
    #[must_use]
    pub fn is_stale(&self, now: DateTime<Utc>, lease: Lease) -> bool {
        self.state == State::Running && after(self.lease_until, lease.grace()) < now
    }

    /// Whether nobody delivers the event any more.
    #[must_use]
    pub fn is_stranded(&self, now: DateTime<Utc>) -> bool {
        let due = match self.state {
            State::Running => self.lease_until,
            State::Retry => self.not_before.unwrap_or(self.first_seen_at),
            State::Done | State::Quarantined => return false,
        };
        after(due, STRANDED_AFTER) < now
    }

    /// What a parked copy does next. `held_off`: take-overs are not allowed for this long.
    #[must_use]
    pub fn standing(&self, now: DateTime<Utc>, lease: Lease, held_off: Option<Duration>) -> Standing {
        let wait = |left: Duration| if left.is_zero() { Standing::Claimable } else { Standing::Wait(left) };
        match self.state {
            State::Done => Standing::Settled,
            State::Quarantined => Standing::Quarantined,
            State::Running if self.is_stale(now, lease) => wait(held_off.unwrap_or_default()),
            State::Running => Standing::Wait(self.lease_left(now, lease)),
            State::Retry => wait(self.due_in(now)),
        }
    }

    /// The time until lease and grace are over.
    #[must_use]
    pub fn lease_left(&self, now: DateTime<Utc>, lease: Lease) -> Duration {
        until(after(self.lease_until, lease.grace()), now)
    }

    /// The time until the next attempt is due.
    #[must_use]
    pub fn due_in(&self, now: DateTime<Utc>) -> Duration {
        self.not_before.map_or(Duration::ZERO, |due| until(due, now))
    }

    /// The end of the lease after a renewal: a whole lease, at most [`SETTLE_TIME`] beyond the promised deadline.
    #[must_use]
    pub fn renewed_until(&self, now: DateTime<Utc>, lease: Lease) -> DateTime<Utc> {
        let limit = self.deadline.map_or(DateTime::<Utc>::MAX_UTC, |deadline| after(deadline, SETTLE_TIME));
        after(now, lease.length()).min(limit)
    }

    /// Whether this attempt owns the event now.
    #[must_use]
    pub fn is_owned_by(&self, nonce: Nonce) -> bool {
        self.state == State::Running && self.nonce == nonce
    }

    /// Whether the handler of the last attempt may still be running.
    #[must_use]
    pub fn may_still_run(&self, now: DateTime<Utc>) -> bool {
        self.deadline.is_some_and(|deadline| deadline >= now)
    }

    /// The row as it is: what a write changes is said on top of it.
    #[must_use]
    pub fn unchanged(&self) -> Next {
        Next {
            state: self.state,
            phase: self.phase,
            strict: self.strict,
            epoch: self.epoch,
            failures: self.failures,
            lost: self.lost,
            nonce: self.nonce,
            note: self.note.clone(),
            lease_until: At::Keep,
            deadline: At::Keep,
            not_before: At::Keep,
            finished_at: At::Keep,
        }
    }

    /// The row after `next`.
    #[must_use]
    pub fn after(self, next: &Next, now: DateTime<Utc>) -> Self {
        Self {
            state: next.state,
            phase: next.phase,
            strict: next.strict,
            epoch: next.epoch,
            failures: next.failures,
            lost: next.lost,
            nonce: next.nonce,
            note: next.note.clone(),
            lease_until: next.lease_until.apply(Some(self.lease_until), now).unwrap_or(now),
            deadline: next.deadline.apply(self.deadline, now),
            not_before: next.not_before.apply(self.not_before, now),
            finished_at: next.finished_at.apply(self.finished_at, now),
            ..self
        }
    }
}

impl Next {
    /// The row this makes where there was none.
    #[must_use]
    pub fn insert(&self, event: Identity, now: DateTime<Utc>) -> Row {
        let blank = Row {
            event,
            state: self.state,
            phase: self.phase,
            strict: self.strict,
            epoch: self.epoch,
            failures: self.failures,
            lost: self.lost,
            nonce: self.nonce,
            lease_until: now,
            deadline: None,
            not_before: None,
            first_seen_at: now,
            finished_at: None,
            note: String::new(),
        };
        blank.after(self, now)
    }

    /// The first claim of an event. Under `rerun` the handler may be called at once; a strict attempt says so first.
    #[must_use]
    pub fn first(intent: &ClaimIntent, lease: Lease) -> Self {
        Self {
            state: State::Running,
            phase: if intent.strict { Phase::NotBegun } else { Phase::MayHaveRun },
            strict: intent.strict,
            epoch: 1,
            failures: 0,
            lost: 0,
            nonce: intent.nonce,
            note: String::new(),
            lease_until: At::In(lease.length()),
            deadline: if intent.strict { At::Clear } else { At::In(lease.promise(intent.timeout)) },
            not_before: At::Clear,
            finished_at: At::Clear,
        }
    }

    /// The final row of an event so old that its row may have been forgotten: it must not look new.
    #[must_use]
    pub fn too_old(intent: &ClaimIntent, lease: Lease) -> Self {
        let unclaimed = Self { phase: Phase::NotBegun, deadline: At::Clear, ..Self::first(intent, lease) };
        Self { lease_until: At::In(Duration::ZERO), ..unclaimed }.put_aside(Reason::TooOld)
    }

    /// The event is put aside for a human.
    pub(super) fn put_aside(self, reason: Reason) -> Self {
        Self {
            state: State::Quarantined,
            finished_at: At::In(Duration::ZERO),
            note: reason.as_str().to_owned(),
            ..self
        }
    }

    /// The attempt is over.
    fn ended(self, counts: bool, certainty: Certainty) -> Self {
        // Nothing was done by this attempt. Where it is the first, or the event is strict (its attempts begin only
        // where none has begun), nothing was ever done.
        let never_begun = certainty == Certainty::NotRun && (self.strict || self.epoch == 1);
        Self {
            phase: if never_begun { Phase::NotBegun } else { self.phase },
            failures: self.failures.saturating_add(u16::from(counts)),
            deadline: match certainty {
                Certainty::NotRun | Certainty::Over => At::Clear,
                Certainty::Open => self.deadline,
            },
            ..self
        }
    }

    /// The attempt failed cleanly, or is handed back.
    #[must_use]
    pub fn retry(self, counts: bool, after: Option<Duration>, certainty: Certainty, note: &Note) -> Self {
        Self {
            state: State::Retry,
            not_before: At::In(after.unwrap_or_default()),
            note: note.as_str().to_owned(),
            ..self.ended(counts, certainty)
        }
    }

    /// The owner puts the event aside for a human.
    #[must_use]
    pub fn quarantined(self, counts: bool, certainty: Certainty, reason: Reason) -> Self {
        self.ended(counts, certainty).put_aside(reason)
    }

    /// An operator puts the event back: claimable at once under the next epoch, budgets anew.
    #[must_use]
    pub fn requeued(self) -> Self {
        Self {
            state: State::Retry,
            phase: Phase::NotBegun,
            epoch: self.epoch.saturating_add(1),
            failures: 0,
            lost: 0,
            deadline: At::Clear,
            not_before: At::In(Duration::ZERO),
            finished_at: At::Clear,
            note: "requeued".to_owned(),
            ..self
        }
    }
}

impl Claim {
    /// The row as its owner knows it.
    #[must_use]
    pub fn as_row(&self) -> Next {
        Next {
            state: State::Running,
            phase: self.phase,
            strict: self.strict,
            epoch: self.epoch,
            failures: self.failures,
            lost: self.lost,
            nonce: self.intent.nonce,
            note: self.note.clone(),
            lease_until: At::Keep,
            deadline: At::Keep,
            not_before: At::Keep,
            finished_at: At::Keep,
        }
    }

    /// The handler is about to be called.
    #[must_use]
    pub fn started(&self, lease: Lease) -> Next {
        Next {
            phase: Phase::MayHaveRun,
            lease_until: At::In(lease.length()),
            deadline: At::In(lease.promise(self.intent.timeout)),
            ..self.as_row()
        }
    }

    /// The event was handled; for where its row is gone.
    #[must_use]
    pub fn done(&self) -> Next {
        Next {
            state: State::Done,
            lease_until: At::In(Duration::ZERO),
            deadline: At::Clear,
            finished_at: At::In(Duration::ZERO),
            note: "inserted by its completion".to_owned(),
            ..self.as_row()
        }
    }

    /// Whether the attempt before this one was cut by a drain. Not known of an event whose owner was lost since: a lost
    /// owner leaves the note of the attempt before it. The note is the only witness: whoever cut it is gone.
    #[must_use]
    pub fn follows_a_drain(&self) -> bool {
        self.lost == 0 && self.note == CUT_BY_DRAIN
    }
}
