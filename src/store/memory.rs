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
use chrono::{DateTime, Utc};

use super::{
    Aside, ClaimTable, Counts, Entered, Entry, Quarantine, QuarantineRow, Quarantined, Readiness, Rider, Seen,
    StoreError, Swap, Upkeep,
};
use crate::{
    claim::{
        self, ClaimRef, Key, Lease, Nonce, Standing, State,
        row::{Row, before},
    },
    clock::{Clock, Steady},
    outcome::Note,
};
use quarantine::Rows;

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
    quarantine: Rows,
    /// Rows at which the finished ones are counted again.
    trim_at: usize,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(lease: Lease, retention: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { lease, retention, clock: Steady::new(clock), finished_cap: FINISHED, tables: Mutex::default() }
    }

    /// Remembers this many finished events, and ten per cent more before it forgets the oldest.
    #[must_use]
    pub const fn remembering(mut self, finished: usize) -> Self {
        self.finished_cap = finished;
        self
    }

    /// Loses the row of an event, as a failover to a server that lagged does.
    #[cfg(feature = "testing")]
    pub fn lose(&self, key: Key) {
        self.open().1.claims.remove(&key);
    }

    fn open(&self) -> (DateTime<Utc>, MutexGuard<'_, Tables>) {
        (self.clock.now(), self.tables.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tables {
    fn see(&self, key: Key, now: DateTime<Utc>) -> Option<Seen> {
        self.claims.get(&key).map(|row| Seen { row: row.clone(), now, held_off: None, server: None })
    }

    fn swap(&mut self, swap: &Swap, now: DateTime<Utc>) -> bool {
        let row = self.claims.get(&swap.event.key);
        if !swap.guard.holds(row) {
            return false;
        }
        let written = match row {
            Some(row) => row.clone().after(&swap.next, now),
            None => swap.next.insert(swap.event.clone(), now),
        };
        match &swap.rider {
            Some(Rider::Request { seq, .. }) if !self.quarantine.request(*seq) => return false,
            Some(Rider::Aside(aside)) => {
                _ = self.quarantine.add(aside, (written.epoch, written.nonce, written.strict), now)
            }
            Some(Rider::Request { .. }) | None => {}
        }
        self.claims.insert(swap.event.key, written);
        true
    }

    fn complete(&mut self, claim: ClaimRef, now: DateTime<Utc>) -> bool {
        let Some(row) = self.claims.get_mut(&claim.key).filter(|row| row.nonce == claim.nonce) else { return false };
        if row.state != State::Running {
            self.quarantine.late_success(claim);
        }
        row.state = State::Done;
        row.finished_at.get_or_insert(now);
        true
    }

    fn renew(&mut self, claim: ClaimRef, lease: Lease, now: DateTime<Utc>) -> bool {
        let owned = self.claims.get_mut(&claim.key).filter(|row| row.is_owned_by(claim.nonce));
        owned.map(|row| row.lease_until = row.renewed_until(now, lease)).is_some()
    }

    /// Forgets the oldest finished events beyond the cap. Amortised: the next count waits for a tenth more rows.
    fn trim(&mut self, cap: usize) {
        if self.claims.len() < self.trim_at.max(cap + cap / 10 + 1) {
            return;
        }
        let finished = self.claims.values().filter_map(|row| row.finished_at.map(|at| (at, row.event.key)));
        let mut finished: Vec<_> = finished.collect();
        finished.sort_unstable();
        for (_, key) in finished.iter().take(finished.len().saturating_sub(cap)) {
            self.claims.remove(key);
        }
        self.trim_at = self.claims.len() + cap / 10 + 1;
    }
}

#[async_trait]
impl ClaimTable for MemoryStore {
    async fn enter(&self, entries: &[Entry]) -> Result<Vec<Entered>, StoreError> {
        let (now, mut tables) = self.open();
        tables.trim(self.finished_cap);
        let enter = |Entry { intent, first }: &Entry| match tables.see(intent.key(), now) {
            Some(seen) => Entered::Found(Box::new(seen)),
            None if intent.born < before(now, claim::fence(self.retention)) => Entered::Old,
            None => {
                tables.claims.insert(intent.key(), first.insert(intent.event.clone(), now));
                Entered::Inserted
            }
        };
        Ok(entries.iter().map(enter).collect())
    }

    async fn swap(&self, swaps: &[Swap]) -> Result<Vec<bool>, StoreError> {
        let (now, mut tables) = self.open();
        Ok(swaps.iter().map(|swap| tables.swap(swap, now)).collect())
    }

    async fn complete(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let (now, mut tables) = self.open();
        Ok(claims.iter().map(|claim| tables.complete(*claim, now)).collect())
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let (now, mut tables) = self.open();
        Ok(claims.iter().map(|claim| tables.renew(*claim, self.lease, now)).collect())
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Seen>>, StoreError> {
        let (now, tables) = self.open();
        Ok(keys.iter().map(|key| tables.see(*key, now)).collect())
    }
}

#[async_trait]
impl Quarantine for MemoryStore {
    async fn put_aside(&self, aside: &Aside, epoch: u32, nonce: Nonce) -> Result<bool, StoreError> {
        let (now, mut tables) = self.open();
        Ok(tables.quarantine.add(aside, (epoch, nonce, aside.intent.strict), now))
    }

    async fn find(&self, seq: i64) -> Result<Option<Quarantined>, StoreError> {
        Ok(self.open().1.quarantine.find(seq))
    }

    async fn close(&self, seq: i64, _resolution: &Note) -> Result<bool, StoreError> {
        Ok(self.open().1.quarantine.close(seq))
    }

    async fn newest(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        Ok(self.open().1.quarantine.newest(limit))
    }

    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError> {
        let (now, tables) = self.open();
        let waits = |row: &Row| matches!(row.standing(now, self.lease, None), Standing::Wait(_));
        Ok(tables.quarantine.requested(limit, |key| !tables.claims.get(key).is_some_and(waits)))
    }
}

#[async_trait]
impl Upkeep for MemoryStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        Ok(Readiness::Ready)
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        let (now, mut tables) = self.open();
        let (known, limit) = (tables.claims.len(), before(now, self.retention));
        tables.claims.retain(|_, row| row.finished_at.is_none() || row.first_seen_at >= limit);
        let claims = known - tables.claims.len();
        let rows = tables.quarantine.expire(before(now, quarantine_retention));
        Ok(u64::try_from(claims + rows).unwrap_or(u64::MAX))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let (now, tables) = self.open();
        let mut counts = tables.quarantine.counts();
        for row in tables.claims.values() {
            counts.stale += u64::from(row.is_stale(now, self.lease));
            counts.stranded += u64::from(row.is_stranded(now));
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use crate::{
        claim::{Budget, Claim, ClaimIntent, Claimed, Identity},
        claims::{Claims, Tables as Ports},
        clock::SystemClock,
        event::{EventId, Fingerprint},
        metrics::Metrics,
        outcome::Outcome,
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
            let store = MemoryStore::new(settings.lease, settings.retention, Arc::clone(&self.0));
            Process::of(store, settings, Arc::clone(&self.0))
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
            event: Identity {
                key: Key::from(key),
                event_id: EventId::new(key.to_string()),
                event_type: "MESSAGE".to_owned(),
                fingerprint: Fingerprint([1; 17]),
            },
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
        let (lease, days) = (Lease::new(Duration::from_secs(60)), Duration::from_secs(10 * 86_400));
        let store = MemoryStore::new(lease, days, Arc::new(SystemClock)).remembering(100);
        let claims = Claims::new(Ports::of(store), lease, Arc::new(SystemClock), Metrics::new().unwrap());
        let mine = async |event: &Arc<ClaimIntent>| -> Claim {
            let Ok(Claimed::Mine(claim)) = claims.claim(event).await else { panic!("the event is new") };
            claim
        };
        let mut in_flight = Vec::new();
        let mut finished = Vec::new();

        for _ in 0..500 {
            let (running, done) = (intent(), intent());
            mine(&running).await;
            claims.settle(&mine(&done).await, &Outcome::Done).await.unwrap();
            in_flight.push(running.key());
            finished.push(done.key());
        }

        let known = async |keys: &[Key]| {
            let standings = claims.look(keys).await.unwrap();
            standings.iter().filter(|standing| **standing != Standing::Absent).count()
        };
        assert_eq!(known(&in_flight).await, 500);
        assert_eq!(known(&finished[400..]).await, 100);
        assert!(known(&finished).await <= 200);
    }
}
