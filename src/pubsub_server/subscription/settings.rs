//! What a subscription does with its messages, read once from the wire form.

use std::time::Duration;

/// Settings the state machine obeys.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::pubsub_server) struct Settings {
    /// For deliveries by Pull; streams name their own.
    pub(in crate::pubsub_server) ack_deadline: Duration,
    pub(in crate::pubsub_server) retry: Option<Backoff>,
    pub(in crate::pubsub_server) dead_letter: Option<DeadLetter>,
    pub(in crate::pubsub_server) exactly_once: bool,
    pub(in crate::pubsub_server) ordered: bool,
    /// Unacked messages older than this are forgotten.
    pub(in crate::pubsub_server) retention: Duration,
}

/// Where messages go that failed too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pubsub_server) struct DeadLetter {
    /// Full topic name.
    pub(in crate::pubsub_server) topic: String,
    /// Deliveries that may fail, 5 to 100.
    pub(in crate::pubsub_server) max_attempts: u32,
}

/// Exponential backoff between the deliveries of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pubsub_server) struct Backoff {
    pub(in crate::pubsub_server) min: Duration,
    pub(in crate::pubsub_server) max: Duration,
}

impl Backoff {
    /// The wait after the `failures`-th failure, counted from one: doubling, no jitter, so that tests can tell.
    pub(super) fn after(self, failures: u32) -> Duration {
        let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(31));
        self.min.saturating_mul(factor).min(self.max)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ack_deadline: Duration::from_secs(10),
            retry: None,
            dead_letter: None,
            exactly_once: false,
            ordered: false,
            retention: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_from_min_to_max() {
        let backoff = Backoff { min: Duration::from_secs(3), max: Duration::from_secs(20) };

        let waits: Vec<u64> = [1, 2, 3, 4, 5, 1000].map(|failures| backoff.after(failures).as_secs()).to_vec();

        assert_eq!(waits, [3, 6, 12, 20, 20, 20]);
    }

    #[test]
    fn no_minimum_means_no_wait() {
        let backoff = Backoff { min: Duration::ZERO, max: Duration::from_secs(600) };

        assert_eq!(backoff.after(9), Duration::ZERO);
    }
}
