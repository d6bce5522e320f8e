//! What operators, and the replay source for them, read and write.

use super::{Claims, RACES, Raced};
use crate::{
    claim::{
        Key, Phase, State,
        row::{At, Next, Row},
    },
    outcome::{Note, Reason},
    store::{Guard, QuarantineRow, Quarantined, Rider, StoreError, Swap},
};

/// What a requeue found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeued {
    /// Claimable now.
    Yes,
    /// No such row, or it is settled already.
    NotFound,
    /// The handler may still be running until the deadline it was given.
    MayStillRun,
    /// The payload is gone, or the row is a mismatch: nothing to deliver.
    NoPayload,
}

impl Claims {
    /// Puts a quarantined event back: its row becomes claimable at once under the next epoch, budgets anew, and the
    /// quarantine row becomes the delivery.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn requeue(&self, seq: i64, by: &str) -> Result<Requeued, StoreError> {
        for _ in 0..RACES {
            let Some(aside) = self.tables.quarantine.find(seq).await? else { return Ok(Requeued::NotFound) };
            if aside.settled {
                return Ok(Requeued::NotFound);
            }
            if !aside.has_payload || aside.reason == Reason::Mismatch {
                return Ok(Requeued::NoPayload);
            }
            let (guard, next) = match self.reads.send(aside.event.key).await? {
                None => (Guard::Absent, forgotten(&aside).requeued()),
                Some(seen) if seen.row.nonce != aside.nonce => return Ok(Requeued::NotFound),
                Some(seen) if seen.row.may_still_run(seen.now) => return Ok(Requeued::MayStillRun),
                Some(seen) if seen.row.state != State::Quarantined => return Ok(Requeued::NotFound),
                Some(seen) => (seen.unchanged(), seen.row.unchanged().requeued()),
            };
            let rider = Some(Rider::Request { seq, by: Note::new(by) });
            if self.swaps.send(Swap { event: aside.event, guard, next, rider }).await? {
                return Ok(Requeued::Yes);
            }
        }
        Err(StoreError::contention(Raced))
    }

    /// Closes a quarantine row: the event stays as it is. False = no such row, or closed already.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn close(&self, seq: i64, resolution: &str) -> Result<bool, StoreError> {
        self.tables.quarantine.close(seq, &Note::new(resolution)).await
    }

    /// The newest open quarantine rows, without payloads.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn quarantined(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        self.tables.quarantine.newest(limit).await
    }

    /// Requeued rows that are due for delivery.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        self.tables.quarantine.replayable(limit).await
    }

    /// One event's claim row.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn show(&self, key: Key) -> Result<Option<Row>, StoreError> {
        Ok(self.reads.send(key).await?.map(|seen| seen.row))
    }
}

/// The claim row of an event that was put aside, where retention has removed it.
fn forgotten(aside: &Quarantined) -> Next {
    Next {
        state: State::Quarantined,
        phase: Phase::NotBegun,
        strict: aside.strict,
        epoch: aside.epoch,
        failures: 0,
        lost: 0,
        nonce: aside.nonce,
        note: String::new(),
        lease_until: At::Keep,
        deadline: At::Clear,
        not_before: At::Clear,
        finished_at: At::Clear,
    }
}
