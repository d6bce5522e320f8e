//! What the owner of an event writes: start, renewals, how the attempt ended.
//!
//! The living owner knows its claim better than the row does: where the row is gone (a failover to a server that
//! lagged, a restored backup) it is written again, under the claim's own epoch. *Absent* never means that somebody
//! else has the event.

use std::sync::Arc;

use super::{Claims, RACES, Raced};
use crate::{
    claim::{
        Claim, ClaimIntent, ClaimRef,
        row::{At, Next},
    },
    outcome::{Certainty, Note, Outcome},
    store::{Aside, Guard, Rider, StoreError},
};

/// Claims per renewal statement: it holds their row locks until its end.
const RENEWED_AT_ONCE: usize = 100;

/// What came of a renewal. Claims in neither list are still held, but could not be renewed now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// These have a whole lease again, from the moment the renewal was sent.
    pub renewed: Vec<ClaimRef>,
    /// These are somebody else's now.
    pub lost: Vec<ClaimRef>,
}

impl Claims {
    /// The handler is about to be called. Repeating it is harmless.
    ///
    /// # Errors
    /// `ClaimLost`: the attempt is no longer the owner; do not call it.
    pub async fn start(&self, claim: &Claim) -> Result<(), StoreError> {
        self.timed("start", self.write(claim, claim.started(self.lease), None)).await
    }

    /// Writes how an attempt ended. `Done` is accepted from whoever the row names, whatever happened meanwhile; the
    /// others only from the owner. Where the row is gone it is inserted. Repeating it is harmless.
    ///
    /// # Errors
    /// `ClaimLost`: somebody else owns the event now.
    pub async fn settle(&self, claim: &Claim, outcome: &Outcome) -> Result<(), StoreError> {
        let settle = async {
            match outcome {
                Outcome::Done => self.complete(claim).await,
                Outcome::Retry { counts, after, certainty, note } => {
                    self.write(claim, claim.as_row().retry(*counts, *after, *certainty, note), None).await
                }
                Outcome::Quarantine { reason, counts, certainty, detail } => {
                    let next = claim.as_row().quarantined(*counts, *certainty, *reason);
                    let intent = Arc::clone(&claim.intent);
                    let aside = Aside { reason: *reason, detail: detail.clone(), intent };
                    self.write(claim, next, Some(Rider::Aside(aside))).await
                }
            }
        };
        self.timed("settle", settle).await
    }

    /// One write of the owner's: his row, or none, becomes `next`. A row that is neither shows whether this very write
    /// was made before and only its answer was lost.
    async fn write(&self, claim: &Claim, next: Next, rider: Option<Rider>) -> Result<(), StoreError> {
        let (intent, nonce) = (&*claim.intent, claim.intent.nonce);
        for _ in 0..RACES {
            if self.swap(intent, Guard::Owner(nonce), next.clone(), rider.clone()).await? {
                return Ok(());
            }
            match self.reads.send(intent.key()).await?.map(|seen| seen.row) {
                None => {
                    if self.restore(claim, next.clone(), rider.clone()).await? {
                        return Ok(());
                    }
                }
                Some(row) if row.is_owned_by(nonce) => {}
                // The epoch tells it from what an operator made of the row since.
                Some(row) if (row.nonce, row.epoch, row.state) == (nonce, next.epoch, next.state) => return Ok(()),
                Some(_) => return Err(StoreError::ClaimLost),
            }
        }
        Err(StoreError::contention(Raced))
    }

    /// Inserts the row of a claim that has none any more.
    async fn restore(&self, claim: &Claim, next: Next, rider: Option<Rider>) -> Result<bool, StoreError> {
        let left = claim.deadline_at.map_or(At::Clear, |deadline| At::In(deadline.since(self.clock.moment())));
        let deadline = if next.deadline == At::Keep { left } else { next.deadline };
        self.swap(&claim.intent, Guard::Absent, Next { deadline, ..next }, rider).await
    }

    async fn complete(&self, claim: &Claim) -> Result<(), StoreError> {
        for _ in 0..RACES {
            if self.completions.send(claim.reference()).await? || self.restore(claim, claim.done(), None).await? {
                return Ok(());
            }
            match self.reads.send(claim.intent.key()).await? {
                Some(seen) if seen.row.nonce != claim.intent.nonce => return Err(StoreError::ClaimLost),
                Some(_) | None => {}
            }
        }
        Err(StoreError::contention(Raced))
    }

    /// Releases a claim that may have been made although its answer was lost.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    pub async fn give_up(&self, intent: &Arc<ClaimIntent>) -> Result<(), StoreError> {
        let Some(seen) = self.reads.send(intent.key()).await? else { return Ok(()) };
        if seen.row.is_owned_by(intent.nonce) {
            let note = Note::new("claim was not answered before a drain");
            let next = seen.row.unchanged().retry(false, None, Certainty::NotRun, &note);
            self.swap(intent, Guard::Owner(intent.nonce), next, None).await?;
        }
        Ok(())
    }

    /// Renews the leases of running attempts. One whose row is gone gets it back, unless another has appeared.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing is known of any of them then.
    pub async fn renew(&self, claims: &[Claim]) -> Result<Renewed, StoreError> {
        self.timed("renew", self.renew_claims(claims)).await
    }

    async fn renew_claims(&self, claims: &[Claim]) -> Result<Renewed, StoreError> {
        let mut sorted: Vec<&Claim> = claims.iter().collect();
        sorted.sort_unstable_by_key(|claim| claim.reference());
        let mut all = Renewed::default();
        for chunk in sorted.chunks(RENEWED_AT_ONCE) {
            let references: Vec<_> = chunk.iter().map(|claim| claim.reference()).collect();
            let answer = self.tables.claims.renew(&references).await;
            self.watch.statement(references.iter().map(|claim| claim.key), &answer);
            let (renewed, missing): (Vec<_>, Vec<_>) = chunk.iter().zip(answer?).partition(|(_, renewed)| *renewed);
            all.renewed.extend(renewed.into_iter().map(|(claim, _)| claim.reference()));
            self.look_after(missing.into_iter().map(|(claim, _)| *claim).collect(), &mut all).await?;
        }
        Ok(all)
    }

    /// Before a handler is cut its row is looked at: it may be locked, gone, or just settled by its own attempt.
    async fn look_after(&self, missing: Vec<&Claim>, all: &mut Renewed) -> Result<(), StoreError> {
        let seen = self.reads.send_all(missing.iter().map(|claim| claim.intent.key())).await;
        for (claim, seen) in missing.into_iter().zip(seen) {
            match seen?.map(|seen| seen.row) {
                None => {
                    let next = Next { lease_until: At::In(self.lease.length()), ..claim.as_row() };
                    if self.restore(claim, next, None).await? {
                        tracing::warn!(event_id = %claim.intent.event.event_id, "A claim's row was gone; it is back");
                        all.renewed.push(claim.reference());
                    }
                }
                Some(row) if row.is_owned_by(claim.intent.nonce) => {}
                Some(_) => all.lost.push(claim.reference()),
            }
        }
        Ok(())
    }
}
