//! What the source is told, by how an event ended here. A pure table.

use std::time::Duration;

use crate::{
    claim::{Claim, Wait},
    outcome::{Outcome, Reason},
};

/// How long an event that the store refuses is held before it is tried again.
const HOLD: Duration = Duration::from_secs(60);
/// How long a copy waits before it asks what became of an event that somebody else took.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How an event ended here.
#[derive(Debug)]
pub(super) enum End {
    /// Our attempt ended, and its outcome is written.
    Settled {
        /// The attempt.
        claim: Claim,
        /// Its outcome.
        outcome: Outcome,
        /// From the claim to the confirmed outcome.
        took: Duration,
    },
    /// A copy of an event that is final.
    Duplicate,
    /// The claim itself put the event in quarantine.
    PutAside(Reason),
    /// Another attempt has it, or it is not due.
    Waits {
        /// When asking again makes sense.
        wake_in: Duration,
        /// Why.
        why: Wait,
    },
    /// The store refuses this event.
    Refused,
    /// Somebody else owns the event now.
    Lost {
        /// The epoch of the attempt that lost it.
        epoch: u32,
    },
    /// The store refuses to take the outcome.
    Held,
    /// The drain's time is over and the outcome was not confirmed.
    Unconfirmed,
    /// A drain began before anything did.
    Stopped,
    /// It was parked for as long as a delivery may be.
    Expired,
}

/// What its copies are answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// They never come again.
    Ack,
    /// They come again.
    Nack,
    /// None yet: they wait here.
    Park {
        /// For how long.
        wake_in: Duration,
        /// What for.
        why: Wait,
    },
}

impl End {
    /// The row of the table. Only what is final in the store is acked.
    pub(super) const fn answer(&self) -> Answer {
        match self {
            Self::Settled { outcome: Outcome::Done | Outcome::Quarantine { .. }, .. }
            | Self::Duplicate
            | Self::PutAside(_) => Answer::Ack,
            Self::Settled { outcome: Outcome::Retry { .. }, .. }
            | Self::Unconfirmed
            | Self::Stopped
            | Self::Expired => Answer::Nack,
            Self::Waits { wake_in, why } => Answer::Park { wake_in: *wake_in, why: *why },
            Self::Refused => Answer::Park { wake_in: HOLD, why: Wait::NotDue },
            Self::Lost { .. } => Answer::Park { wake_in: LOOK_AGAIN, why: Wait::Running },
            Self::Held => Answer::Park { wake_in: HOLD, why: Wait::Running },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        claim::{Budget, ClaimIntent, Identity, Key, Nonce, Phase},
        clock::Moment,
        event::{EventId, Fingerprint},
        outcome::{Certainty, Detail, Note},
    };

    fn settled(outcome: Outcome) -> End {
        let intent = ClaimIntent {
            event: Identity {
                key: Key::from(uuid::Uuid::nil()),
                event_id: EventId::new("e"),
                event_type: String::new(),
                fingerprint: Fingerprint([0; 17]),
            },
            nonce: Nonce::random(),
            strict: false,
            budget: Budget { max_failures: 1, max_lost: 1 },
            timeout: Duration::ZERO,
            born: chrono::DateTime::UNIX_EPOCH,
            suspect: false,
            raw: Arc::default(),
        };
        let claim = Claim {
            intent: Arc::new(intent),
            epoch: 1,
            phase: Phase::MayHaveRun,
            strict: false,
            failures: 0,
            lost: 0,
            note: String::new(),
            fence_at: Moment::from_boot(Duration::ZERO),
            deadline_at: None,
        };
        End::Settled { claim, outcome, took: Duration::ZERO }
    }

    #[test]
    fn only_what_is_final_in_the_store_is_acked() {
        let retry = Outcome::Retry { counts: true, after: None, certainty: Certainty::Over, note: Note::default() };
        let quarantine = Outcome::Quarantine {
            reason: Reason::Permanent,
            counts: true,
            certainty: Certainty::Over,
            detail: Detail::default(),
        };
        let acked = [settled(Outcome::Done), settled(quarantine), End::Duplicate, End::PutAside(Reason::TooOld)];
        let nacked = [settled(retry), End::Unconfirmed, End::Stopped, End::Expired];
        let waits = End::Waits { wake_in: Duration::from_secs(5), why: Wait::Suspect };

        assert!(acked.iter().all(|end| end.answer() == Answer::Ack));
        assert!(nacked.iter().all(|end| end.answer() == Answer::Nack));
        assert_eq!(waits.answer(), Answer::Park { wake_in: Duration::from_secs(5), why: Wait::Suspect });
        for end in [End::Refused, End::Lost { epoch: 1 }, End::Held] {
            assert!(
                matches!(end.answer(), Answer::Park { wake_in, .. } if !wake_in.is_zero()),
                "{end:?} must not spin"
            );
        }
    }
}
