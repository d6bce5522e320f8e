//! What follows from the configuration.

use std::time::Duration;

use serde::Serialize;

use super::Config;
use crate::{claim::Lease, worker::longest_hold};

/// Values nobody sets: each follows from others, so that they can not contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Computed {
    /// The store `auto` stands for.
    pub store_backend: &'static str,
    /// What claims belong to.
    pub scope: String,
    /// The subscription's full name.
    pub subscription: String,
    /// Deliveries this process holds at once.
    pub max_outstanding_messages: usize,
    /// Of them, copies that may wait: so many that `worker.concurrency` places are left for those that do not.
    pub parking: usize,
    /// The longest any handler may take.
    #[serde(rename = "longest_handler_timeout_seconds", serialize_with = "seconds")]
    pub longest_handler_timeout: Duration,
    /// From the first signal to the abort of running handlers.
    #[serde(rename = "drain_timeout_seconds", serialize_with = "seconds")]
    pub drain_timeout: Duration,
    /// How long the client keeps one delivery: 2 × the longest handler timeout + the claim lease + 10 min.
    #[serde(rename = "client_max_lease_seconds", serialize_with = "seconds")]
    pub client_max_lease: Duration,
    /// How often claims are renewed.
    #[serde(rename = "claim_renewal_seconds", serialize_with = "seconds")]
    pub claim_renewal: Duration,
    /// How long after the lease another process takes over.
    #[serde(rename = "claim_grace_seconds", serialize_with = "seconds")]
    pub claim_grace: Duration,
    /// How long the store may take to answer.
    #[serde(rename = "store_client_timeout_seconds", serialize_with = "seconds")]
    pub store_client_timeout: Duration,
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

impl Computed {
    pub(super) fn of(config: &Config) -> Self {
        let lease = Lease::new(config.claims.lease);
        let longest = config.rules().longest_timeout();
        let (concurrency, parking) = (config.worker.concurrency, config.worker.parking_places());
        let asked = config.pubsub.max_outstanding_messages;
        let outstanding = if asked == 0 { concurrency + parking } else { asked }.max(2 * config.pubsub.streams);
        let subscription = config.pubsub.subscription_name().unwrap_or_default();
        let scope = if config.claims.scope.is_empty() { subscription.clone() } else { config.claims.scope.clone() };
        Self {
            store_backend: config.store.backend().as_str(),
            scope,
            subscription,
            max_outstanding_messages: outstanding,
            parking: parking.min(outstanding.saturating_sub(concurrency)).max(1),
            longest_handler_timeout: longest,
            drain_timeout: config.worker.drain_timeout.for_handlers(longest),
            client_max_lease: longest_hold(longest, lease),
            claim_renewal: lease.renew_every(),
            claim_grace: lease.grace(),
            store_client_timeout: lease.client_timeout(),
        }
    }
}
