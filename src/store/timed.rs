//! Measures a store from outside: how long each operation took, and how it failed. The one place that counts either.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::time::Instant;

use super::{ClaimStore, Counts, Readiness, StoreError, Upkeep};
use crate::{
    claim::{Claim, ClaimIntent, ClaimRef, ClaimView, Claimed, Key, Step},
    metrics::Metrics,
    outcome::Outcome,
};

/// Stands in front of a store, seen through both its ports.
#[derive(Debug)]
pub struct TimedStore {
    claims: Arc<dyn ClaimStore>,
    upkeep: Arc<dyn Upkeep>,
    metrics: Metrics,
}

impl TimedStore {
    /// Measures `store` into `metrics`.
    #[must_use]
    pub fn new<S: ClaimStore + Upkeep + 'static>(store: S, metrics: Metrics) -> Self {
        let store = Arc::new(store);
        Self { claims: Arc::clone(&store) as _, upkeep: store, metrics }
    }

    /// An operation whose caller went away says nothing: how long it would have taken is not known.
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
        if let Err(error) = &answer {
            self.metrics.db_errors.with_label_values(&[error.label()]).inc();
        }
        answer
    }
}

#[async_trait]
impl ClaimStore for TimedStore {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        self.timed("claim", self.claims.claim(intent)).await
    }

    async fn advance(&self, claim: &Claim, step: &Step) -> Result<(), StoreError> {
        let query = match step {
            Step::Started => "start",
            Step::ReplyPending(_) => "keep_reply",
        };
        self.timed(query, self.claims.advance(claim, step)).await
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<ClaimRef>, StoreError> {
        self.timed("renew", self.claims.renew(claims)).await
    }

    async fn settle(&self, claim: &ClaimRef, outcome: &Outcome) -> Result<(), StoreError> {
        self.timed("settle", self.claims.settle(claim, outcome)).await
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<ClaimView>, StoreError> {
        self.timed("look", self.claims.look(keys)).await
    }
}

#[async_trait]
impl Upkeep for TimedStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        self.timed("prepare", self.upkeep.prepare()).await
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        self.timed("expire", self.upkeep.expire(quarantine_retention)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.timed("counts", self.upkeep.counts()).await
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::{
        claim::{Lease, Nonce, Standing},
        clock::SystemClock,
        event::{RawEvent, decode},
        metrics::{labels::STORE_ERRORS, tests::undeclared},
        source::BoxError,
        store::memory::MemoryStore,
        testing::faults::{Fault, FaultStore},
    };

    const RETENTION: Duration = Duration::from_secs(864_000);

    fn count(metrics: &Metrics, query: &str, outcome: &str) -> u64 {
        metrics.db_query_duration.with_label_values(&[query, outcome]).get_sample_count()
    }

    fn intent() -> Arc<ClaimIntent> {
        let raw = Arc::new(RawEvent { data: "{}".into(), ..RawEvent::default() });
        let event = decode(&raw);
        Arc::new(ClaimIntent {
            key: Key::derive("scope", &event),
            event_id: event.id.clone(),
            event_type: event.event_type.clone(),
            fingerprint: event.fingerprint,
            nonce: Nonce::random(),
            strict: true,
            budget: crate::claim::Budget { max_failures: 3, max_lost: 3 },
            timeout: Duration::from_secs(60),
            born: DateTime::from(std::time::SystemTime::now()),
            suspect: false,
            raw,
        })
    }

    fn store(faults: fn(FaultStore) -> FaultStore) -> (TimedStore, Metrics) {
        let metrics = Metrics::new().unwrap();
        let memory = Arc::new(MemoryStore::new(Lease::new(Duration::from_secs(60)), RETENTION, Arc::new(SystemClock)));
        (TimedStore::new(faults(FaultStore::new(memory)), metrics.clone()), metrics)
    }

    #[tokio::test]
    async fn every_operation_is_measured_under_its_own_name() {
        let (store, metrics) = store(|store| store);

        let Ok(Claimed::Mine(claim)) = store.claim(&intent()).await else { panic!("the event is new") };
        store.advance(&claim, &Step::Started).await.unwrap();
        assert!(store.renew(&[claim.reference()]).await.unwrap().is_empty());
        store.settle(&claim.reference(), &Outcome::Done).await.unwrap();
        let views = store.look(&[claim.intent.key]).await.unwrap();
        store.prepare().await.unwrap();
        store.expire(RETENTION).await.unwrap();
        store.counts().await.unwrap();

        assert_eq!(views[0].standing, Standing::Settled);
        for query in ["claim", "start", "renew", "settle", "look", "prepare", "expire", "counts"] {
            assert_eq!(count(&metrics, query, "ok"), 1, "{query}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_operation_that_fails_is_measured_and_counted_once_by_its_class() {
        let (store, metrics) = store(|store| store.on_claim(Fault::BeforeWrite));

        assert!(store.claim(&intent()).await.is_err());

        assert_eq!(count(&metrics, "claim", "unknown"), 1);
        assert_eq!(metrics.db_errors.with_label_values(&["unknown"]).get(), 1);
    }

    #[test]
    fn every_class_of_error_is_a_declared_label() {
        let cause = || BoxError::from("scripted");
        let classes = [
            StoreError::ClaimLost,
            StoreError::Contention(cause()),
            StoreError::Refused(cause()),
            StoreError::Unknown(cause()),
        ];

        let mut labels = classes.map(|error| error.label());
        labels.sort_unstable();
        let mut declared = STORE_ERRORS;
        declared.sort_unstable();
        assert_eq!(labels, declared);
        assert!(undeclared(&Metrics::new().unwrap()).is_empty());
    }
}
