//! Whether new events may be claimed now: not while the store is away, the target in trouble, or the brake on.
//!
//! While intake is paused, deliveries are held (their budget bounds memory); nothing is lost, nothing counted.

use std::{sync::Arc, time::Duration};

use tracing::{error, info};

use super::breaker::{Breaker, Change, Pass, Policy};
use crate::{claim::Key, metrics::Metrics, store::watch::StoreWatch};

/// The gate in front of every claim.
#[derive(Debug)]
pub struct Intake {
    store: Arc<StoreWatch>,
    target: Arc<Breaker>,
    brake: Arc<Breaker>,
}

/// Leave to claim one event.
#[derive(Debug)]
#[must_use = "a pass must report"]
pub(super) struct Admission {
    target: Pass,
    brake: Pass,
}

impl Intake {
    pub(super) fn new(store: Arc<StoreWatch>, max_quarantined_per_minute: u32, metrics: &Metrics) -> Arc<Self> {
        let paused = |reason| metrics.intake_paused.with_label_values(&[reason]);
        let policy = Policy {
            trips_at: 5,
            within: None,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            closes_after: 1,
            events: 2,
        };
        let target = Breaker::new(policy, paused("breaker"));
        let minute = Duration::from_secs(60);
        let policy = Policy {
            trips_at: usize::try_from(max_quarantined_per_minute).unwrap_or(usize::MAX).saturating_add(1),
            within: Some(minute),
            first_wait: minute,
            longest_wait: minute,
            closes_after: 3,
            events: 1,
        };
        Arc::new(Self { store, target, brake: Breaker::new(policy, paused("brake")) })
    }

    /// Waits until an event may be claimed. Cancel-safe.
    pub(super) async fn admit(&self) -> Admission {
        loop {
            self.store.usable().await;
            let (target, brake) = (self.target.pass().await, self.brake.pass().await);
            if self.store.is_usable() {
                return Admission { target, brake };
            }
        }
    }

    /// Whether the handler's target can be reached, as far as the last calls tell.
    #[must_use]
    pub fn target_good(&self) -> bool {
        !self.target.is_open()
    }
}

impl Admission {
    /// How the attempt ended: whether the target was in trouble, and whether the event went to quarantine; `None` =
    /// the attempt says nothing about it.
    pub(super) fn report(self, key: Key, target_trouble: Option<bool>, quarantined: Option<bool>) {
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
    }
}
