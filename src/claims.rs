//! The claim protocol: reads what a store holds, decides, and swaps. The only writer of claims.
//!
//! The decisions are pure ([`crate::claim::decide`], [`crate::claim::row`]); this carries them to the store and back,
//! and says again what a lost race or a lost answer left open. `docs/CLAIMS.md` is its description.

mod batch;
mod operators;
mod owner;

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use self::batch::{Batches, COMPLETE, ENTER, READ, SWAP};
pub use self::{operators::Requeued, owner::Renewed};
use crate::{
    claim::{
        Claim, ClaimIntent, ClaimRef, Claimed, Key, Lease, Phase, Standing, Wait,
        decide::{Ask, Decision, decide},
        row::{Next, Row},
    },
    clock::{Clock, Moment},
    metrics::Metrics,
    outcome::{Detail, Reason},
    store::{
        Aside, ClaimTable, Counts, Entered, Entry, Guard, Quarantine, Readiness, Rider, Seen, StoreError, Swap, Upkeep,
        watch::StoreWatch,
    },
};

/// How often a lost race is tried again before it counts as contention.
const RACES: u32 = 5;

#[derive(Debug, thiserror::Error)]
#[error("lost {RACES} races for one event")]
struct Raced;

/// One store, seen through its three ports.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each is what its trait says")]
pub struct Tables {
    pub claims: Arc<dyn ClaimTable>,
    pub quarantine: Arc<dyn Quarantine>,
    pub upkeep: Arc<dyn Upkeep>,
}

impl Tables {
    /// All of one store.
    pub fn of<S: ClaimTable + Quarantine + Upkeep + 'static>(store: S) -> Self {
        Self::shared(&Arc::new(store))
    }

    /// All of one store that somebody else holds, too.
    pub fn shared<S: ClaimTable + Quarantine + Upkeep + 'static>(store: &Arc<S>) -> Self {
        let (claims, quarantine, upkeep) = (Arc::clone(store), Arc::clone(store), Arc::clone(store));
        Self { claims, quarantine, upkeep }
    }
}

/// The claims of a store, as workers, operators and upkeep use them.
pub struct Claims {
    tables: Tables,
    lease: Lease,
    clock: Arc<dyn Clock>,
    watch: Arc<StoreWatch>,
    metrics: Metrics,
    enters: Batches<Entry, Entered>,
    swaps: Batches<Swap, bool>,
    completions: Batches<ClaimRef, bool>,
    reads: Batches<Key, Option<Seen>>,
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims").field("tables", &self.tables).field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Claims {
    /// The claims in `tables`, leased for `lease`.
    #[must_use]
    pub fn new(tables: Tables, lease: Lease, clock: Arc<dyn Clock>, metrics: Metrics) -> Self {
        let watch = StoreWatch::new(metrics.clone());
        let table = &tables.claims;
        Self {
            enters: Batches::new(ENTER, table, &watch, &metrics),
            swaps: Batches::new(SWAP, table, &watch, &metrics),
            completions: Batches::new(COMPLETE, table, &watch, &metrics),
            reads: Batches::new(READ, table, &watch, &metrics),
            tables,
            lease,
            clock,
            watch,
            metrics,
        }
    }

    /// Whether the store can be used, as its statements and its checks tell.
    #[must_use]
    pub fn watch(&self) -> Arc<StoreWatch> {
        Arc::clone(&self.watch)
    }

    /// Claims an event, takes it over, recognises its own lost answer, or says why not. After `Unknown` or `Contention`
    /// send the same intent again.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    pub async fn claim(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        self.timed("claim", self.claim_event(intent)).await
    }

    async fn claim_event(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        for _ in 0..RACES {
            let sent_at = self.clock.moment();
            let first = Next::first(intent, self.lease);
            let entry = Entry { intent: Arc::clone(intent), first: first.clone() };
            match self.enters.send(entry).await? {
                Entered::Inserted => return Ok(Claimed::Mine(self.mine(intent, &first, sent_at))),
                Entered::Found(seen) => {
                    if let Some(answer) = self.found(intent, &seen).await? {
                        return Ok(answer);
                    }
                }
                Entered::Old => {
                    let next = Next::too_old(intent, self.lease);
                    if self.put_aside(intent, Guard::Absent, next, Reason::TooOld).await? {
                        return Ok(Claimed::Quarantined { reason: Reason::TooOld, fresh: true });
                    }
                }
                Entered::Raced => {}
            }
        }
        Err(StoreError::contention(Raced))
    }

    /// What follows from a row that is there; `None` when it changed before it was written.
    async fn found(&self, intent: &Arc<ClaimIntent>, seen: &Seen) -> Result<Option<Claimed>, StoreError> {
        let ask = Ask { intent, now: seen.now, lease: self.lease, held_off: seen.held_off };
        let (guard, next) = match decide(&seen.row, &ask) {
            Decision::Resume(next) => (Guard::Owner(intent.nonce), next),
            Decision::Take(next) => (seen.unchanged(), next),
            Decision::PutAside(next, reason) => {
                let written = self.put_aside(intent, seen.unchanged(), next, reason).await?;
                return Ok(written.then_some(Claimed::Quarantined { reason, fresh: true }));
            }
            Decision::Mismatch(parked) => return self.mismatch(intent, &seen.row, parked).await.map(Some),
            Decision::Wait { wake_in, why } => return Ok(Some(Claimed::Wait { wake_in, why })),
            Decision::Settled => return Ok(Some(Claimed::Settled)),
            Decision::Quarantined(reason) => return Ok(Some(Claimed::Quarantined { reason, fresh: false })),
        };
        let sent_at = self.clock.moment();
        let written = self.swap(intent, guard, next.clone(), None).await?;
        Ok(written.then(|| Claimed::Mine(self.mine(intent, &next, sent_at))))
    }

    /// The claim that was written; its times count from when the write was sent.
    fn mine(&self, intent: &Arc<ClaimIntent>, written: &Next, sent_at: Moment) -> Claim {
        Claim {
            intent: Arc::clone(intent),
            epoch: written.epoch,
            phase: written.phase,
            strict: written.strict,
            failures: written.failures,
            lost: written.lost,
            note: written.note.clone(),
            fence_at: self.lease.fence_after(sent_at),
            deadline_at: self.promised(written, intent, sent_at),
        }
    }

    /// Until when the handler of this attempt may run. Where a resumed row keeps its deadline, the promise is counted
    /// anew: it may only grow.
    fn promised(&self, written: &Next, intent: &ClaimIntent, sent_at: Moment) -> Option<Moment> {
        let begun = written.phase == Phase::MayHaveRun;
        begun.then(|| sent_at + self.lease.promise(intent.timeout))
    }

    async fn put_aside(
        &self,
        intent: &Arc<ClaimIntent>,
        guard: Guard,
        next: Next,
        reason: Reason,
    ) -> Result<bool, StoreError> {
        let aside = Aside { reason, detail: Detail::default(), intent: Arc::clone(intent) };
        self.swap(intent, guard, next, Some(Rider::Aside(aside))).await
    }

    async fn mismatch(
        &self,
        intent: &Arc<ClaimIntent>,
        row: &Row,
        parked: Option<Duration>,
    ) -> Result<Claimed, StoreError> {
        let reason = Reason::Mismatch;
        let aside = Aside { reason, detail: Detail::default(), intent: Arc::clone(intent) };
        let fresh = self.tables.quarantine.put_aside(&aside, row.epoch, row.nonce).await;
        self.watch.statement(std::iter::once(intent.key()), &fresh);
        let fresh = fresh?;
        Ok(parked
            .map_or(Claimed::Quarantined { reason, fresh }, |wake_in| Claimed::Wait { wake_in, why: Wait::Mismatch }))
    }

    async fn swap(
        &self,
        intent: &ClaimIntent,
        guard: Guard,
        next: Next,
        rider: Option<Rider>,
    ) -> Result<bool, StoreError> {
        self.swaps.send(Swap { event: intent.event.clone(), guard, next, rider }).await
    }

    /// How the events of parked copies stand, in the order of `keys`.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing is known of any of them then.
    pub async fn look(&self, keys: &[Key]) -> Result<Vec<Standing>, StoreError> {
        let look = async {
            let seen = self.reads.send_all(keys.iter().copied()).await;
            let standing = |seen: Option<Seen>| match seen {
                Some(seen) => seen.row.standing(seen.now, self.lease, seen.held_off),
                None => Standing::Absent,
            };
            seen.into_iter().map(|seen| seen.map(standing)).collect()
        };
        self.timed("look", look).await
    }

    /// Whether the store can be used now. Cheap; also the outage probe.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn prepare(&self) -> Result<Readiness, StoreError> {
        let answer = self.timed("prepare", self.tables.upkeep.prepare()).await;
        self.watch.checked(&answer);
        answer
    }

    /// Forgets what is past retention, in small steps; returns the rows deleted.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        let answer = self.timed("expire", self.tables.upkeep.expire(quarantine_retention)).await;
        self.watch.count(&answer);
        answer
    }

    /// Rows by kind, for gauges.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        let answer = self.timed("counts", self.tables.upkeep.counts()).await;
        self.watch.count(&answer);
        answer
    }

    /// Measures an operation. One whose caller went away says nothing: how long it would have taken is not known.
    async fn timed<T>(
        &self,
        query: &str,
        operation: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let answer = operation.await;
        let outcome = answer.as_ref().map_or_else(StoreError::label, |_| "ok");
        let took = began.elapsed().as_secs_f64();
        self.metrics.db_query_duration.with_label_values(&[query, outcome]).observe(took);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        claim::{Budget, Identity, Nonce},
        clock::SystemClock,
        event::{RawEvent, decode},
        metrics::{labels::STORE_ERRORS, tests::undeclared},
        outcome::Outcome,
        store::memory::MemoryStore,
        testing::faults::{Fault, FaultStore, Method},
    };

    const LEASE: Lease = Lease::new(Duration::from_secs(60));
    const RETENTION: Duration = Duration::from_secs(864_000);

    fn claims(faults: fn(FaultStore) -> FaultStore) -> (Claims, Metrics) {
        let metrics = Metrics::new().unwrap();
        let memory = MemoryStore::new(LEASE, RETENTION, Arc::new(SystemClock));
        let store = Arc::new(faults(FaultStore::new(Tables::of(memory))));
        (Claims::new(store.tables(), LEASE, Arc::new(SystemClock), metrics.clone()), metrics)
    }

    fn intent() -> Arc<ClaimIntent> {
        let raw = Arc::new(RawEvent { data: "{}".into(), ..RawEvent::default() });
        let event = decode(&raw);
        Arc::new(ClaimIntent {
            event: Identity {
                key: Key::derive("scope", &event),
                event_id: event.id.clone(),
                event_type: event.event_type.clone(),
                fingerprint: event.fingerprint,
            },
            nonce: Nonce::random(),
            strict: true,
            budget: Budget { max_failures: 3, max_lost: 3 },
            timeout: Duration::from_secs(60),
            born: SystemClock.now(),
            suspect: false,
            raw,
        })
    }

    fn count(metrics: &Metrics, query: &str, outcome: &str) -> u64 {
        metrics.db_query_duration.with_label_values(&[query, outcome]).get_sample_count()
    }

    #[tokio::test]
    async fn every_operation_is_measured_under_its_own_name() {
        let (claims, metrics) = claims(|store| store);

        let Ok(Claimed::Mine(claim)) = claims.claim(&intent()).await else { panic!("the event is new") };
        claims.start(&claim).await.unwrap();
        assert!(claims.renew(std::slice::from_ref(&claim)).await.unwrap().lost.is_empty());
        claims.settle(&claim, &Outcome::Done).await.unwrap();
        let standings = claims.look(&[claim.intent.key()]).await.unwrap();
        claims.prepare().await.unwrap();
        claims.expire(RETENTION).await.unwrap();
        claims.counts().await.unwrap();

        assert_eq!(standings, [Standing::Settled]);
        for query in ["claim", "start", "renew", "settle", "look", "prepare", "expire", "counts"] {
            assert_eq!(count(&metrics, query, "ok"), 1, "{query}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_that_fails_is_measured_and_counted_once_by_its_class() {
        let (claims, metrics) = claims(|store| store.on(Method::Enter, Fault::BeforeWrite));

        assert!(claims.claim(&intent()).await.is_err());

        assert_eq!(count(&metrics, "claim", "unknown"), 1);
        assert_eq!(metrics.db_errors.with_label_values(&["unknown"]).get(), 1);
    }

    #[tokio::test]
    async fn upkeep_that_fails_is_counted_too() {
        let metrics = Metrics::new().unwrap();
        let memory = MemoryStore::new(LEASE, RETENTION, Arc::new(SystemClock));
        let store = Arc::new(FaultStore::new(Tables::of(memory)));
        let claims = Claims::new(store.tables(), LEASE, Arc::new(SystemClock), metrics.clone());
        store.set_down(true);

        assert!(claims.prepare().await.is_err() && claims.expire(RETENTION).await.is_err());
        assert!(claims.counts().await.is_err());

        assert_eq!(metrics.db_errors.with_label_values(&["unknown"]).get(), 3);
    }

    /// That somebody else has the event is an answer: no statement fails with it.
    #[test]
    fn every_class_in_which_a_statement_fails_is_a_declared_label() {
        let classes = [StoreError::contention(Raced), StoreError::refused(Raced), StoreError::unknown(Raced)];

        let mut labels = classes.map(|error| error.label());
        labels.sort_unstable();
        let mut declared = STORE_ERRORS;
        declared.sort_unstable();
        assert_eq!(labels, declared);
        assert!(undeclared(&Metrics::new().unwrap()).is_empty());
    }
}
