//! Asking for an event until the store has answered.

use std::sync::Arc;

use super::{
    answer::End,
    processor::{Attempt, Processor, unhandled},
};
use crate::{
    claim::{Claim, ClaimIntent, Claimed, Identity, Nonce},
    store::StoreError,
};

impl Processor {
    /// The claim, or how the event ended without one. After a lost answer the same intent is sent again.
    pub(super) async fn claim(&self, attempt: &Attempt, suspect: bool) -> Result<Claim, End> {
        let intent = self.intent(attempt, suspect);
        let mut tries = 0_u16;
        loop {
            let error = match self.claims.claim(&intent).await {
                Ok(Claimed::Mine(claim)) => return Ok(claim),
                Ok(Claimed::Settled | Claimed::Quarantined { fresh: false, .. }) => return Err(End::Duplicate),
                Ok(Claimed::Quarantined { reason, fresh: true }) => return Err(End::PutAside(reason)),
                Ok(Claimed::Wait { wake_in, why }) => return Err(End::Waits { wake_in, why }),
                Err(error) => error,
            };
            self.report.store_trouble(&attempt.event, &error);
            if let StoreError::Refused(_) | StoreError::ClaimLost = error {
                return Err(End::Refused);
            }
            tries = tries.saturating_add(1);
            if !self.pause(tries).await {
                self.give_up(&intent).await;
                return Err(End::Stopped);
            }
        }
    }

    /// Releases a claim that may have been made although its answer was lost. Best effort: its lease ends by itself.
    async fn give_up(&self, intent: &Arc<ClaimIntent>) {
        if let Err(error) = self.claims.give_up(intent).await {
            tracing::debug!(
                error.kind = error.label(),
                "Unanswered claim could not be released; its lease ends by itself"
            );
        }
    }

    fn intent(&self, attempt: &Attempt, suspect: bool) -> Arc<ClaimIntent> {
        let event = &attempt.event;
        Arc::new(ClaimIntent {
            event: Identity {
                key: attempt.key,
                event_id: event.id.clone(),
                event_type: event.event_type.clone(),
                fingerprint: event.fingerprint,
            },
            nonce: Nonce::random(),
            strict: attempt.ruling.strict && unhandled(attempt).is_none(),
            budget: attempt.ruling.budget,
            timeout: attempt.ruling.timeout,
            born: event.born(self.report.clock.now()),
            suspect,
            raw: Arc::clone(&event.raw),
        })
    }
}
