//! Whether new events may be claimed now: not while the store is away, the target in trouble, or the brake on.
//!
//! While intake is paused, deliveries are held (their budget bounds memory); nothing is lost, nothing counted.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;
use tracing::{error, info, warn};

use super::breaker::{Breaker, Change, Pass, Policy};
use crate::{claim::Key, metrics::Metrics};

/// Contentions in a row, over at least two events, that pause intake.
const CONTENTIONS: usize = 5;

/// The gate in front of every claim.
#[derive(Debug)]
pub struct Intake {
    store_up: watch::Sender<bool>,
    contended: Mutex<(usize, HashSet<Key>)>,
    target: Arc<Breaker>,
    brake: Arc<Breaker>,
    metrics: Metrics,
}

/// Leave to claim one event.
#[derive(Debug)]
#[must_use = "a pass must report"]
pub(super) struct Admission {
    target: Pass,
    brake: Pass,
}

impl Intake {
    pub(super) fn new(max_quarantined_per_minute: u32, metrics: Metrics) -> Arc<Self> {
        let target = Breaker::new(Policy {
            trips_at: 5,
            within: None,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            closes_after: 1,
            events: 2,
        });
        let minute = Duration::from_secs(60);
        let brake = Breaker::new(Policy {
            trips_at: usize::try_from(max_quarantined_per_minute).unwrap_or(usize::MAX).saturating_add(1),
            within: Some(minute),
            first_wait: minute,
            longest_wait: minute,
            closes_after: 3,
            events: 1,
        });
        Arc::new(Self { store_up: watch::Sender::new(true), contended: Mutex::default(), target, brake, metrics })
    }

    /// Waits until an event may be claimed. Cancel-safe.
    pub(super) async fn admit(&self) -> Admission {
        let mut store_up = self.store_up.subscribe();
        loop {
            // The sender lives in `self`, so this can not fail.
            let _ = store_up.wait_for(|up| *up).await;
            let admission = Admission { target: self.target.pass().await, brake: self.brake.pass().await };
            if *self.store_up.borrow() {
                return admission;
            }
        }
    }

    /// The store did not answer: nothing is claimed until it does.
    pub(super) fn store_failed(&self) {
        if self.store_up.send_replace(false) {
            warn!("Store does not answer; intake is paused");
        }
        self.publish();
    }

    /// The store answered.
    pub(super) fn store_answered(&self) {
        if !*self.store_up.borrow() && !self.store_up.send_replace(true) {
            info!("Store answers again; intake goes on");
        }
        self.contended.lock().unwrap_or_else(PoisonError::into_inner).0 = 0;
        self.publish();
    }

    /// Another writer was in the way of this event; many in a row over several events mean the store is in trouble.
    pub(super) fn store_contended(&self, key: Key) {
        let mut contended = self.contended.lock().unwrap_or_else(PoisonError::into_inner);
        if contended.0 == 0 {
            contended.1.clear();
        }
        contended.0 += 1;
        contended.1.insert(key);
        let in_trouble = contended.0 >= CONTENTIONS && contended.1.len() >= 2;
        drop(contended);
        if in_trouble {
            self.store_failed();
        }
    }

    /// Waits until the store is believed to be away. Cancel-safe.
    pub(super) async fn store_lost(&self) {
        let _ = self.store_up.subscribe().wait_for(|up| !*up).await;
    }

    /// Whether the handler's target can be reached, as far as the last calls tell.
    #[must_use]
    pub fn target_good(&self) -> bool {
        !self.target.is_open()
    }

    /// Brings the gauges up to date.
    pub(super) fn publish(&self) {
        let gauge = |reason: &str, paused: bool| {
            self.metrics.intake_paused.with_label_values(&[reason]).set(i64::from(paused));
        };
        let store_up = *self.store_up.borrow();
        gauge("store", !store_up);
        gauge("breaker", self.target.is_open());
        gauge("brake", self.brake.is_open());
        self.metrics.store_up.set(i64::from(store_up));
    }
}

impl Admission {
    /// How the attempt ended: whether the target was in trouble, and whether the event went to quarantine; `None` =
    /// the attempt says nothing about it.
    pub(super) fn report(self, key: Key, target_trouble: Option<bool>, quarantined: Option<bool>, intake: &Intake) {
        if let Some(trouble) = target_trouble {
            match self.target.report(key, trouble) {
                Change::Opened => error!("Handler's target is in trouble; only probes are sent until it answers"),
                Change::Closed => info!("Handler's target answers again"),
                Change::None => {}
            }
        }
        if let Some(quarantined) = quarantined {
            match self.brake.report(key, quarantined) {
                Change::Opened => {
                    error!("Too many events go to quarantine; intake is paused, one probe event a minute")
                }
                Change::Closed => info!("Events are handled again; the quarantine brake is lifted"),
                Change::None => {}
            }
        }
        intake.publish();
    }
}
