//! Whether the store can be used, judged by its statements and by its own checks. The one owner of `store_up`.
//!
//! Everything that sends a statement reports it here, once per statement however many events share it; the intake
//! waits here.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use tracing::{info, warn};

use super::{Readiness, StoreError};
use crate::{claim::Key, metrics::Metrics};

/// Contended statements in a row, over at least two events, that count as an outage.
const CONTENTIONS: usize = 5;

/// What is known of the store.
#[derive(Debug)]
pub struct StoreWatch {
    known: Mutex<Known>,
    usable: watch::Sender<bool>,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct Known {
    /// The last statement was not answered.
    away: bool,
    /// The last check found that it must not be written to.
    unfit: bool,
    /// The last check found a schema this code cannot work with.
    outdated: bool,
    contended: usize,
    contended_events: HashSet<Key>,
}

impl Known {
    fn up(&self) -> i64 {
        i64::from(!self.away && !self.unfit)
    }
}

impl StoreWatch {
    /// A store that nothing is known of: usable until a statement or a check says otherwise.
    #[must_use]
    pub fn new(metrics: Metrics) -> Arc<Self> {
        Arc::new(Self { known: Mutex::default(), usable: watch::Sender::new(true), metrics })
    }

    /// A statement about these events was answered, or failed.
    pub fn statement<T>(&self, events: impl Iterator<Item = Key>, answer: &Result<T, StoreError>) {
        let mut known = self.known();
        match answer {
            Ok(_) | Err(StoreError::ClaimLost) => {
                known.away = false;
                known.contended = 0;
            }
            // The store answered, but what it said is about these events alone.
            Err(StoreError::Refused(_)) => {}
            Err(StoreError::Unknown(_)) => known.away = true,
            Err(StoreError::Contention(_)) => {
                if known.contended == 0 {
                    known.contended_events.clear();
                }
                known.contended += 1;
                known.contended_events.extend(events);
                known.away |= known.contended >= CONTENTIONS && known.contended_events.len() >= 2;
            }
        }
        self.count(answer);
        self.publish(&known);
    }

    /// Counts a failure that says nothing about whether events can be claimed.
    pub fn count<T>(&self, answer: &Result<T, StoreError>) {
        if let Err(error) = answer {
            self.metrics.db_errors.with_label_values(&[error.label()]).inc();
        }
    }

    /// The store was asked whether it can be used.
    pub fn checked(&self, answer: &Result<Readiness, StoreError>) {
        self.count(answer);
        let mut known = self.known();
        match answer {
            Ok(Readiness::Ready) => *known = Known::default(),
            Ok(Readiness::SchemaTooOld { .. } | Readiness::CodeTooOld { .. }) => known.outdated = true,
            Ok(Readiness::Unfit(_)) => known.unfit = true,
            Err(_) => known.away = true,
        }
        self.publish(&known);
        self.metrics.store_up.set(known.up());
    }

    /// Waits until the store is believed to be usable. Cancel-safe.
    pub async fn usable(&self) {
        // The sender lives in `self`, so this cannot fail.
        let _ = self.usable.subscribe().wait_for(|usable| *usable).await;
    }

    /// Waits until the store is believed not to be usable. Cancel-safe.
    pub async fn lost(&self) {
        let _ = self.usable.subscribe().wait_for(|usable| !*usable).await;
    }

    /// Whether the store is believed to be usable.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        *self.usable.borrow()
    }

    /// Tells what changed.
    fn publish(&self, known: &Known) {
        let usable = !known.away && !known.unfit && !known.outdated;
        if !self.usable.send_if_modified(|was| std::mem::replace(was, usable) != usable) {
            return;
        }
        self.metrics.intake_paused.with_label_values(&["store"]).set(i64::from(!usable));
        self.metrics.store_up.set(known.up());
        if usable {
            info!("Store answers again; intake goes on");
        } else {
            warn!("Store cannot be used; intake is paused");
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Cause;

    fn watched() -> (Arc<StoreWatch>, Metrics) {
        let metrics = Metrics::new().unwrap();
        (StoreWatch::new(metrics.clone()), metrics)
    }

    fn event(number: u128) -> std::iter::Once<Key> {
        std::iter::once(Key::from(uuid::Uuid::from_u128(number)))
    }

    fn failed(kind: fn(Cause) -> StoreError) -> Result<(), StoreError> {
        Err(kind(Arc::new(std::io::Error::other("scripted"))))
    }

    #[tokio::test]
    async fn a_statement_without_an_answer_is_an_outage_until_one_is_answered() {
        let (store, metrics) = watched();
        store.checked(&Ok(Readiness::Ready));
        assert_eq!(metrics.store_up.get(), 1);

        store.statement(event(1), &failed(StoreError::Unknown));
        assert!(!store.is_usable());
        store.statement(event(2), &failed(StoreError::Refused));
        store.lost().await;
        assert_eq!((metrics.store_up.get(), metrics.intake_paused.with_label_values(&["store"]).get()), (0, 1));

        store.statement(event(1), &Ok(()));
        store.usable().await;
        assert_eq!((metrics.store_up.get(), metrics.intake_paused.with_label_values(&["store"]).get()), (1, 0));
    }

    #[test]
    fn five_contentions_in_a_row_are_an_outage_if_two_events_met_them() {
        for (events, usable) in [(1, true), (2, false)] {
            let (store, _) = watched();
            for turn in 0..5_u128 {
                store.statement(event(turn % events), &failed(StoreError::Contention));
            }
            assert_eq!(store.is_usable(), usable, "{events} events");
        }
    }

    #[test]
    fn a_batch_that_contends_counts_once() {
        let (store, metrics) = watched();
        let batch = || (0..128).flat_map(event);
        for _ in 0..4 {
            store.statement(batch(), &failed(StoreError::Contention));
        }
        assert!(store.is_usable());
        assert_eq!(metrics.db_errors.with_label_values(&["contention"]).get(), 4);
    }

    #[test]
    fn what_a_check_found_unfit_only_a_check_finds_fit() {
        for found in [Readiness::Unfit("read-only".into()), Readiness::CodeTooOld { min_code: 2, mine: 1 }] {
            let (store, _) = watched();
            store.checked(&Ok(found));
            store.statement(event(1), &Ok(()));
            assert!(!store.is_usable());

            store.checked(&Ok(Readiness::Ready));
            assert!(store.is_usable());
        }
    }
}
