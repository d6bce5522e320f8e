//! Parked copies are looked at again: when they are due, and when the suspect permit is free.

use std::{sync::Arc, time::Duration};

use super::{Worker, answer::End, parking::Parked};
use crate::claim::{Standing, Wait};

/// When to look again at copies whose look-up was not answered.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Worker {
    /// Wakes parked copies when they are due: one look serves all of them.
    pub(super) async fn wake_parked(self: Arc<Self>) {
        loop {
            let due = self.lot.due().await;
            let keys: Vec<_> = due.iter().map(|one| one.attempt.key).collect();
            // Without an answer nothing is known of any of them.
            let standings = self.claims.look(&keys).await.unwrap_or_default();
            let standings = standings.into_iter().chain(std::iter::repeat(Standing::Wait(LOOK_AGAIN)));
            for (one, standing) in due.into_iter().zip(standings) {
                self.wake(one, standing).await;
            }
        }
    }

    async fn wake(self: &Arc<Self>, Parked { attempt, why, .. }: Parked, standing: Standing) {
        let expired = attempt.received_at.elapsed() > self.longest_stay;
        match standing {
            Standing::Settled | Standing::Quarantined => self.finish(attempt, End::Duplicate).await,
            Standing::Wait(_) if expired => self.finish(attempt, End::Expired).await,
            Standing::Wait(wake_in) => self.park_again(attempt, wake_in, why),
            // Whoever waits for the suspect permit is started by whoever has it.
            Standing::Claimable if why == Wait::Suspect && expired => self.finish(attempt, End::Expired).await,
            Standing::Claimable if why == Wait::Suspect => {
                self.park_again(attempt, self.processor.lease.length(), why);
            }
            Standing::Absent | Standing::Claimable => self.start(attempt, None),
        }
    }

    /// As a task of its own: what is over the lot's size is held a moment.
    fn park_again(self: &Arc<Self>, attempt: super::Attempt, wake_in: Duration, why: Wait) {
        let worker = Arc::clone(self);
        self.tasks.spawn(async move { worker.park(attempt, wake_in, why).await });
    }

    /// Starts one suspect after the other, each with the permit.
    pub(super) async fn admit_suspects(self: Arc<Self>) {
        // The semaphore is never closed.
        while let Ok(permit) = Arc::clone(&self.suspects).acquire_owned().await {
            let suspect = self.lot.suspect().await;
            self.start(suspect, Some(permit));
        }
        std::future::pending().await
    }
}
