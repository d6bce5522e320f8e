//! What is known about the source: by the probe whether it can be reached, by the supervisors whether it is read.

use tokio::sync::watch;

use super::reason::Reason;
use crate::metrics::Metrics;

/// Failed probes in a row after which the source counts as bad: one may be lost on the way.
const TOLERATED: u32 = 2;

/// Written by probe and supervisors.
#[derive(Debug)]
pub(super) struct Health {
    status: watch::Sender<Status>,
    metrics: Metrics,
}

#[derive(Debug, Clone, Copy, Default)]
struct Status {
    probed: bool,
    failures: u32,
    last: Option<Reason>,
    running: usize,
}

impl Status {
    const fn is_good(&self) -> bool {
        self.probed && self.failures < TOLERATED && self.running > 0
    }
}

impl Health {
    pub(super) fn new(metrics: Metrics) -> Self {
        metrics.source_up.with_label_values(&["pubsub"]).set(0);
        Self { status: watch::Sender::default(), metrics }
    }

    /// A probe succeeded.
    pub(super) fn reached(&self) {
        self.metrics.source_up.with_label_values(&["pubsub"]).set(1);
        self.status.send_modify(|status| *status = Status { probed: true, failures: 0, last: None, ..*status });
    }

    /// A probe failed.
    pub(super) fn missed(&self, reason: Reason) {
        self.metrics.source_up.with_label_values(&["pubsub"]).set(0);
        self.status.send_modify(|status| {
            status.failures = status.failures.saturating_add(1);
            status.last = Some(reason);
        });
    }

    /// A stream is being read from now on, until the guard is dropped.
    pub(super) fn reads(self: &std::sync::Arc<Self>) -> Reading {
        self.status.send_modify(|status| status.running += 1);
        Reading(std::sync::Arc::clone(self))
    }

    /// Failed probes in a row.
    pub(super) fn failures(&self) -> u32 {
        self.status.borrow().failures
    }

    /// The source can be reached and is read.
    pub(super) fn is_good(&self) -> bool {
        self.status.borrow().is_good()
    }

    /// Resolves once what listens at the endpoint can certainly not be streamed from. Cancel-safe.
    pub(super) async fn unusable(&self) {
        let unusable =
            |status: &Status| status.failures >= TOLERATED && status.last.is_some_and(Reason::forbids_streaming);
        // The sender is `self`, so the channel is open.
        let _ = self.status.subscribe().wait_for(unusable).await;
    }
}

/// One stream that is being read.
#[derive(Debug)]
pub(super) struct Reading(std::sync::Arc<Health>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.status.send_modify(|status| status.running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;

    use super::*;

    fn health() -> Arc<Health> {
        Arc::new(Health::new(Metrics::new().unwrap()))
    }

    fn up(health: &Health) -> i64 {
        health.metrics.source_up.with_label_values(&["pubsub"]).get()
    }

    #[test]
    fn a_source_is_good_when_it_is_reached_and_read() {
        let health = health();

        let reading = health.reads();
        assert!(!health.is_good());
        health.reached();
        assert!(health.is_good());
        drop(reading);
        assert!(!health.is_good());
        assert_eq!(up(&health), 1);
    }

    #[test]
    fn one_lost_probe_is_forgiven_but_shown() {
        let health = health();
        let _reading = health.reads();
        health.reached();

        health.missed(Reason::Timeout);
        assert!(health.is_good());
        assert_eq!(up(&health), 0);
        health.missed(Reason::Timeout);
        assert!(!health.is_good());
        health.reached();
        assert!(health.is_good());
    }

    #[test]
    fn only_an_endpoint_that_can_not_be_streamed_from_is_unusable() {
        let health = health();

        for _ in 0..5 {
            health.missed(Reason::PermissionDenied);
        }
        assert!(health.unusable().now_or_never().is_none());
        health.missed(Reason::Unreachable);
        assert!(health.unusable().now_or_never().is_some());
    }
}
