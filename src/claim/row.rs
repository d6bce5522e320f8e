//! A claim as a store keeps it, and every change it may go through. Pure.
//!
//! Stores without a server of their own read a row, let it change here, and write it back in the same transaction;
//! Postgres says the same in SQL. Each change names the attempt that asks for it and does nothing for any other.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{ClaimIntent, ClaimView, Key, Lease, Nonce, Phase, Standing, State};
use crate::{
    event::{EventId, Fingerprint},
    outcome::{CUT_BY_DRAIN, Certainty, Note, Reason},
};

/// A lease may outlive the promised deadline by so much, for the settling; no more, or a forgotten attempt would hold
/// its event for ever.
const SETTLE_TIME: Duration = Duration::from_secs(5 * 60);

/// A claim that nobody took up for so long after it was due is stranded: an hour, and the longest usual backoff.
const STRANDED_AFTER: Duration = Duration::from_secs(3_600 + 600);

/// One event's claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which event.
    pub key: Key,
    /// Its id.
    pub event_id: EventId,
    /// Its type.
    pub event_type: String,
    /// Tells another event with the same id.
    pub fingerprint: Fingerprint,
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

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Change {
    /// The row changed: write it back.
    Made,
    /// The same attempt had written this before, and its answer was lost. Nothing to write.
    Repeated,
    /// The attempt does not own the row. Nothing to write.
    Lost,
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
pub(super) fn until(time: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    (time - now).to_std().unwrap_or_default()
}

impl Row {
    /// The row of an event that nobody claimed before.
    #[must_use]
    pub fn first(intent: &ClaimIntent, now: DateTime<Utc>, lease: Lease) -> Self {
        Self {
            key: intent.key,
            event_id: intent.event_id.clone(),
            event_type: intent.event_type.clone(),
            fingerprint: intent.fingerprint,
            state: State::Running,
            phase: if intent.strict { Phase::NotBegun } else { Phase::MayHaveRun },
            strict: intent.strict,
            epoch: 1,
            failures: 0,
            lost: 0,
            nonce: intent.nonce,
            lease_until: after(now, lease.length()),
            deadline: (!intent.strict).then(|| after(now, intent.timeout + lease.grace())),
            not_before: None,
            first_seen_at: now,
            finished_at: None,
            note: String::new(),
        }
    }

    /// The row of an event that was handled, inserted where the row was lost.
    #[must_use]
    pub fn recovered(intent: &ClaimIntent, now: DateTime<Utc>, lease: Lease) -> Self {
        Self {
            state: State::Done,
            deadline: None,
            finished_at: Some(now),
            note: "inserted by its completion".to_owned(),
            ..Self::first(intent, now, lease)
        }
    }

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

    /// What a parked copy needs to know.
    #[must_use]
    pub fn view(&self, now: DateTime<Utc>, lease: Lease) -> ClaimView {
        let standing = match self.state {
            State::Done => Standing::Settled,
            State::Quarantined => Standing::Quarantined,
            State::Running if self.is_stale(now, lease) => Standing::Claimable,
            State::Running => Standing::Wait(self.lease_left(now, lease)),
            State::Retry => match self.due_in(now) {
                Duration::ZERO => Standing::Claimable,
                left => Standing::Wait(left),
            },
        };
        ClaimView { key: self.key, standing, nonce: Some(self.nonce) }
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

    /// Whether the attempt before the running one was cut by a drain. Not known of an event whose owner was lost since:
    /// a lost owner leaves the note of the attempt before it.
    #[must_use]
    pub fn was_cut_by_drain(note: &str, lost: u16) -> bool {
        lost == 0 && note == CUT_BY_DRAIN
    }

    fn is_owned_by(&self, nonce: Nonce) -> bool {
        self.state == State::Running && self.nonce == nonce
    }

    /// The handler is about to be called.
    pub fn start(&mut self, intent: &ClaimIntent, now: DateTime<Utc>, lease: Lease) -> Change {
        if !self.is_owned_by(intent.nonce) || self.phase == Phase::ReplyPending {
            return Change::Lost;
        }
        self.phase = Phase::MayHaveRun;
        self.lease_until = after(now, lease.length());
        self.deadline = Some(after(now, intent.timeout + lease.grace()));
        Change::Made
    }

    /// The handler returned; its replies are stored beside the row.
    pub fn reply_pending(&mut self, nonce: Nonce, now: DateTime<Utc>, lease: Lease) -> Change {
        if !self.is_owned_by(nonce) {
            return Change::Lost;
        }
        self.phase = Phase::ReplyPending;
        self.lease_until = after(now, lease.length());
        self.deadline = None;
        Change::Made
    }

    /// The owner lives.
    pub fn renew(&mut self, nonce: Nonce, now: DateTime<Utc>, lease: Lease) -> Change {
        if !self.is_owned_by(nonce) {
            return Change::Lost;
        }
        let limit = self.deadline.map_or(DateTime::<Utc>::MAX_UTC, |deadline| after(deadline, SETTLE_TIME));
        self.lease_until = after(now, lease.length()).min(limit);
        Change::Made
    }

    /// The event was handled. Taken from whoever the row names, whatever happened to it meanwhile.
    pub fn complete(&mut self, nonce: Nonce, now: DateTime<Utc>) -> Change {
        if self.nonce != nonce {
            return Change::Lost;
        }
        if self.state == State::Done {
            return Change::Repeated;
        }
        self.state = State::Done;
        self.finished_at.get_or_insert(now);
        Change::Made
    }

    /// The attempt failed cleanly, or is handed back.
    pub fn retry(&mut self, nonce: Nonce, retry: &Retry<'_>, now: DateTime<Utc>) -> Change {
        if self.state == State::Retry && self.nonce == nonce {
            return Change::Repeated;
        }
        if !self.is_owned_by(nonce) {
            return Change::Lost;
        }
        self.state = State::Retry;
        if self.phase != Phase::ReplyPending && self.strict && retry.certainty == Certainty::NotRun {
            self.phase = Phase::NotBegun;
        }
        self.end_attempt(retry.counts, retry.certainty);
        self.not_before = Some(after(now, retry.after.unwrap_or_default()));
        retry.note.as_str().clone_into(&mut self.note);
        Change::Made
    }

    /// The owner puts the event aside for a human. An undelivered reply does not undo that the event was handled.
    pub fn quarantine(&mut self, intent: &ClaimIntent, verdict: &Verdict, now: DateTime<Utc>) -> Change {
        let end = if verdict.reason == Reason::ReplyUndelivered { State::Done } else { State::Quarantined };
        if self.state == end && self.nonce == intent.nonce {
            return Change::Repeated;
        }
        if !self.is_owned_by(intent.nonce) {
            return Change::Lost;
        }
        self.end_attempt(verdict.counts, verdict.certainty);
        self.strict |= intent.strict;
        self.put_aside(verdict.reason, now);
        self.state = end;
        Change::Made
    }

    pub(super) fn put_aside(&mut self, reason: Reason, now: DateTime<Utc>) {
        self.state = State::Quarantined;
        self.finished_at = Some(now);
        reason.as_str().clone_into(&mut self.note);
    }

    fn end_attempt(&mut self, counts: bool, certainty: Certainty) {
        self.failures = self.failures.saturating_add(u16::from(counts));
        match certainty {
            Certainty::NotRun | Certainty::Over => self.deadline = None,
            Certainty::Open => {}
        }
    }

    /// Whether the handler of the last attempt may still be running.
    #[must_use]
    pub fn may_still_run(&self, now: DateTime<Utc>) -> bool {
        self.deadline.is_some_and(|deadline| deadline >= now)
    }

    /// An operator puts the event back: claimable at once, budgets anew. With `posts_only` its handler is not called
    /// again, its stored replies are posted.
    pub fn requeue(&mut self, seen: Nonce, posts_only: bool, now: DateTime<Utc>) -> Change {
        let end = if posts_only { State::Done } else { State::Quarantined };
        if self.state != end || self.nonce != seen || self.may_still_run(now) {
            return Change::Lost;
        }
        self.state = State::Retry;
        self.phase = if posts_only { Phase::ReplyPending } else { Phase::NotBegun };
        self.epoch = self.epoch.saturating_add(1);
        self.failures = 0;
        self.lost = 0;
        self.not_before = Some(now);
        self.finished_at = None;
        self.note = "requeued".to_owned();
        Change::Made
    }
}

/// A clean failure or a handing back.
#[derive(Debug, Clone, Copy)]
pub struct Retry<'a> {
    /// Whether it costs a failure.
    pub counts: bool,
    /// How long to wait.
    pub after: Option<Duration>,
    /// What is certain about the handler.
    pub certainty: Certainty,
    /// Why.
    pub note: &'a Note,
}

/// The owner's verdict that a human must look.
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    /// Why.
    pub reason: Reason,
    /// Whether the last attempt costs a failure.
    pub counts: bool,
    /// What is certain about the handler.
    pub certainty: Certainty,
}
