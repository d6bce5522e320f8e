//! Claims in the memory of one process: for development and tests. Gone when the process ends.
//!
//! Bounded: finished events beyond a cap are forgotten, oldest first, and a copy of a forgotten event looks new.
//! Events in flight are never forgotten.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{ClaimStore, StoreError};
use crate::{
    claim::{
        Claim, ClaimIntent, ClaimRef, ClaimView, Claimed, Key, Lease, Phase, Standing, Step, StoredReply, Wait,
        decide::{Ask, Decision, decide},
        row::{Change, Retry, Row, Verdict},
    },
    clock::{Clock, Steady},
    outcome::{Detail, Outcome, Reason},
};
use quarantine::{Entry, Quarantine};

mod operators;
mod quarantine;

/// Finished events remembered unless told otherwise: some 40 MB.
const FINISHED: usize = 100_000;

/// The claims of one process, in its memory.
#[derive(Debug)]
pub struct MemoryStore {
    lease: Lease,
    retention: Duration,
    clock: Steady,
    finished_cap: usize,
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    claims: HashMap<Key, Row>,
    replies: HashMap<Key, Vec<StoredReply>>,
    quarantine: Quarantine,
    /// Rows at which the finished ones are counted again.
    trim_at: usize,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(lease: Lease, retention: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { lease, retention, clock: Steady::new(clock), finished_cap: FINISHED, tables: Mutex::default() }
    }

    /// Remembers so many finished events, and ten per cent more before it forgets the oldest.
    #[must_use]
    pub const fn remembering(mut self, finished: usize) -> Self {
        self.finished_cap = finished;
        self
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, row: &Row, reason: Reason, detail: &Detail, intent: &ClaimIntent) -> Entry {
        Entry::new(row, reason, detail, intent, self.clock.now())
    }
}

impl Tables {
    /// Forgets the oldest finished events beyond the cap. Amortised: the next count waits for a tenth more rows.
    fn trim(&mut self, cap: usize) {
        if self.claims.len() < self.trim_at.max(cap + cap / 10 + 1) {
            return;
        }
        let mut finished: Vec<_> =
            self.claims.values().filter_map(|row| row.finished_at.map(|at| (at, row.key))).collect();
        finished.sort_unstable();
        for (_, key) in finished.iter().take(finished.len().saturating_sub(cap)) {
            self.forget(*key);
        }
        self.trim_at = self.claims.len() + cap / 10 + 1;
    }

    fn forget(&mut self, key: Key) {
        self.claims.remove(&key);
        self.replies.remove(&key);
    }
}

#[async_trait]
impl ClaimStore for MemoryStore {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        let fence_at = self.lease.fence_after(self.clock.moment());
        let mut tables = self.tables();
        let ask = Ask { intent, now: self.clock.now(), lease: self.lease, retention: self.retention };
        Ok(match decide(tables.claims.get(&intent.key), &ask) {
            Decision::Mine(row) => {
                let claim = Claim {
                    intent: Arc::clone(intent),
                    epoch: row.epoch,
                    phase: row.phase,
                    strict: row.strict,
                    failures: row.failures,
                    lost: row.lost,
                    cut_by_drain: Row::was_cut_by_drain(&row.note, row.lost),
                    replies: match row.phase {
                        Phase::ReplyPending => tables.replies.get(&row.key).cloned().unwrap_or_default(),
                        Phase::NotBegun | Phase::MayHaveRun => Vec::new(),
                    },
                    fence_at,
                };
                tables.claims.insert(row.key, row);
                tables.trim(self.finished_cap);
                Claimed::Mine(claim)
            }
            Decision::Quarantine(row, reason) => {
                tables.quarantine.add(self.entry(&row, reason, &Detail::default(), intent));
                tables.claims.insert(row.key, row);
                tables.trim(self.finished_cap);
                Claimed::Quarantined { reason, fresh: true }
            }
            Decision::Mismatch(parked) => {
                let reason = Reason::Mismatch;
                let Tables { claims, quarantine, .. } = &mut *tables;
                let fresh = claims
                    .get(&intent.key)
                    .is_some_and(|row| quarantine.add(self.entry(row, reason, &Detail::default(), intent)));
                parked.map_or(Claimed::Quarantined { reason, fresh }, |wake_in| Claimed::Wait {
                    wake_in,
                    why: Wait::Mismatch,
                })
            }
            Decision::Wait { wake_in, why } => Claimed::Wait { wake_in, why },
            Decision::Settled => Claimed::Settled,
            Decision::Quarantined(reason) => Claimed::Quarantined { reason, fresh: false },
        })
    }

    async fn advance(&self, claim: &Claim, step: &Step) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let Tables { claims, replies, .. } = &mut *tables;
        let intent = &claim.intent;
        let row = claims.get_mut(&intent.key).ok_or(StoreError::ClaimLost)?;
        match step {
            Step::Started => unless_lost(row.start(intent, self.clock.now(), self.lease)),
            Step::ReplyPending(new) => {
                unless_lost(row.reply_pending(intent.nonce, self.clock.now(), self.lease))?;
                let stored = replies.entry(intent.key).or_default();
                for reply in new {
                    if stored.iter().all(|known| known.ordinal != reply.ordinal) {
                        stored.push(reply.clone());
                    }
                }
                stored.sort_by_key(|reply| reply.ordinal);
                Ok(())
            }
        }
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<ClaimRef>, StoreError> {
        let mut tables = self.tables();
        let now = self.clock.now();
        let lost = claims.iter().filter(|claim| {
            tables
                .claims
                .get_mut(&claim.key())
                .is_none_or(|row| row.renew(claim.nonce(), now, self.lease) == Change::Lost)
        });
        Ok(lost.cloned().collect())
    }

    async fn settle(&self, claim: &ClaimRef, outcome: &Outcome) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut tables = self.tables();
        let Tables { claims, replies, quarantine, .. } = &mut *tables;
        match outcome {
            Outcome::Done => {
                let row = claims.entry(claim.key()).or_insert_with(|| Row::recovered(claim.intent(), now, self.lease));
                unless_lost(row.complete(claim.nonce(), now))?;
                replies.remove(&claim.key());
                quarantine.resolve(claim.key(), claim.nonce(), now);
                tables.trim(self.finished_cap);
                Ok(())
            }
            Outcome::Retry { counts, after, certainty, note } => {
                let row = claims.get_mut(&claim.key()).ok_or(StoreError::ClaimLost)?;
                let retry = Retry { counts: *counts, after: *after, certainty: *certainty, note };
                unless_lost(row.retry(claim.nonce(), &retry, now))
            }
            Outcome::Quarantine { reason, counts, certainty, detail } => {
                let row = claims.get_mut(&claim.key()).ok_or(StoreError::ClaimLost)?;
                let verdict = Verdict { reason: *reason, counts: *counts, certainty: *certainty };
                let change = row.quarantine(claim.intent(), &verdict, now);
                if change == Change::Made {
                    quarantine.add(self.entry(row, *reason, detail, claim.intent()));
                }
                unless_lost(change)
            }
        }
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<ClaimView>, StoreError> {
        let tables = self.tables();
        let now = self.clock.now();
        let look = |key: &Key| match tables.claims.get(key) {
            Some(row) => row.view(now, self.lease),
            None => ClaimView { key: *key, standing: Standing::Absent, nonce: None },
        };
        Ok(keys.iter().map(look).collect())
    }
}

const fn unless_lost(change: Change) -> Result<(), StoreError> {
    match change {
        Change::Made | Change::Repeated => Ok(()),
        Change::Lost => Err(StoreError::ClaimLost),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use crate::{
        claim::{Budget, Nonce},
        clock::SystemClock,
        event::{EventId, Fingerprint},
        testing::{
            clock::TestClock,
            conformance::{self, Bench, Place, Process, Reach, Settings},
        },
    };

    #[derive(Debug)]
    struct InMemory(Arc<dyn Clock>);

    #[async_trait]
    impl Bench for InMemory {
        fn reach(&self) -> Reach {
            Reach::OneProcess
        }

        fn short_lease(&self) -> Duration {
            Duration::from_secs(60)
        }

        fn clock(&self) -> Arc<dyn Clock> {
            Arc::clone(&self.0)
        }

        async fn place(&self) -> Box<dyn Place> {
            Box::new(Self(Arc::clone(&self.0)))
        }
    }

    #[async_trait]
    impl Place for InMemory {
        async fn process(&self, settings: Settings) -> Process {
            Process::of(MemoryStore::new(settings.lease, settings.retention, Arc::clone(&self.0)))
        }

        async fn pass(&self, span: Duration) {
            tokio::time::advance(span).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_memory_store_conforms() {
        let clock = TestClock::starting_at(DateTime::<Utc>::UNIX_EPOCH + Duration::from_secs(1_800_000_000));

        conformance::run(&InMemory(Arc::new(clock)), 1).await;
    }
    fn intent() -> Arc<ClaimIntent> {
        let key = uuid::Uuid::new_v4();
        Arc::new(ClaimIntent {
            key: Key::from(key),
            event_id: EventId::new(key.to_string()),
            event_type: "MESSAGE".to_owned(),
            fingerprint: Fingerprint([1; 17]),
            nonce: Nonce::random(),
            strict: false,
            budget: Budget { max_failures: 8, max_lost: 3 },
            timeout: Duration::from_secs(60),
            born: Utc::now(),
            suspect: false,
            raw: Arc::default(),
        })
    }

    #[tokio::test]
    async fn the_oldest_finished_events_are_forgotten_and_those_in_flight_never() {
        let days = Duration::from_secs(10 * 86_400);
        let store = MemoryStore::new(Lease::new(Duration::from_secs(60)), days, Arc::new(SystemClock)).remembering(100);
        let mut in_flight = Vec::new();
        let mut finished = Vec::new();

        for _ in 0..500 {
            let (running, done) = (intent(), intent());
            for event in [&running, &done] {
                assert!(matches!(store.claim(event).await, Ok(Claimed::Mine(_))));
            }
            store.settle(&ClaimRef::unanswered(Arc::clone(&done)), &Outcome::Done).await.unwrap();
            in_flight.push(running.key);
            finished.push(done.key);
        }

        let known = async |keys: &[Key]| {
            let views = store.look(keys).await.unwrap();
            views.iter().filter(|view| view.standing != Standing::Absent).count()
        };
        assert_eq!(known(&in_flight).await, 500);
        assert_eq!(known(&finished[400..]).await, 100);
        assert!(known(&finished).await <= 200);
    }
}
