//! Asking the store for an event until it has answered.

use std::{sync::Arc, time::Duration};

use tokio::{sync::OwnedSemaphorePermit, time};

use super::{
    parking::Lot,
    processor::{Attempt, Processor, REPEAT, put_aside},
};
use crate::{
    claim::{Claim, ClaimIntent, ClaimRef, Claimed, Nonce, Wait},
    outcome::{Certainty, Note, Outcome, Reason},
    store::StoreError,
};

/// What came of claiming.
pub(super) enum Answer {
    Mine(Claim, Option<Suspect>),
    Settled,
    Quarantined(Reason),
    Wait(Duration, Wait),
    Refused,
    Stopping,
}

/// Held while this process deals with a suspect; wakes the next one.
pub(super) struct Suspect {
    lot: Arc<Lot>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Suspect {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.lot.wake_suspect();
    }
}

impl Processor {
    /// Asks until the store has answered: the same intent again after a lost answer.
    pub(super) async fn claim(&self, attempt: &Attempt) -> Answer {
        let mut suspect = None;
        let mut intent = self.intent(attempt, false);
        let mut tries = 0_u16;
        loop {
            let error = match self.store.claim(&intent).await {
                Ok(claimed) => {
                    self.intake.store_answered();
                    match claimed {
                        Claimed::Mine(claim) => return Answer::Mine(claim, suspect),
                        Claimed::Settled | Claimed::Quarantined { fresh: false, .. } => return Answer::Settled,
                        Claimed::Quarantined { reason, fresh: true } => return Answer::Quarantined(reason),
                        Claimed::Wait { wake_in, why: Wait::Suspect } if suspect.is_none() => {
                            let Ok(permit) = Arc::clone(&self.suspects).try_acquire_owned() else {
                                return Answer::Wait(wake_in, Wait::Suspect);
                            };
                            suspect = Some(Suspect { lot: Arc::clone(&self.lot), permit: Some(permit) });
                            intent = self.intent(attempt, true);
                            continue;
                        }
                        Claimed::Wait { wake_in, why } => return Answer::Wait(wake_in, why),
                    }
                }
                Err(error) => error,
            };
            self.report.store_trouble(&attempt.event, &error);
            match error {
                StoreError::Unknown(_) => self.intake.store_failed(),
                StoreError::Contention(_) => self.intake.store_contended(attempt.key),
                StoreError::Refused(_) | StoreError::ClaimLost => return Answer::Refused,
            }
            tries = tries.saturating_add(1);
            if !self.pause(tries).await {
                self.give_up(intent).await;
                return Answer::Stopping;
            }
        }
    }

    /// Waits before a repetition; false when a drain began.
    pub(super) async fn pause(&self, tries: u16) -> bool {
        tokio::select! {
            biased;
            () = self.shutdown.stopping() => false,
            () = time::sleep(REPEAT.delay(tries, rand::random())) => true,
        }
    }

    /// Releases a claim that may have been made although its answer was lost. Best effort: its lease ends by itself.
    async fn give_up(&self, intent: Arc<ClaimIntent>) {
        let outcome = Outcome::Retry {
            counts: false,
            after: None,
            certainty: Certainty::NotRun,
            note: Note::new("claim was not answered before a drain"),
        };
        if let Err(error) = self.store.settle(&ClaimRef::unanswered(intent), &outcome).await {
            tracing::debug!(
                error.kind = error.label(),
                "Unanswered claim could not be released; its lease ends by itself"
            );
        }
    }

    fn intent(&self, attempt: &Attempt, suspect: bool) -> Arc<ClaimIntent> {
        let event = &attempt.event;
        Arc::new(ClaimIntent {
            key: attempt.key,
            event_id: event.id.clone(),
            event_type: event.event_type.clone(),
            fingerprint: event.fingerprint,
            nonce: Nonce::random(),
            strict: attempt.ruling.strict && put_aside(attempt).is_none(),
            budget: attempt.ruling.budget,
            timeout: attempt.ruling.timeout,
            born: event.born(self.report.clock.now()),
            suspect,
            raw: Arc::clone(&event.raw),
        })
    }
}
