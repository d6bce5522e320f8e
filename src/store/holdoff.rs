//! When this process may take over from others.
//!
//! After a restart, an outage or a failover every lease looks stale although the owners live. They get the first word:
//! for one lease after this process started, after it saw the store unreachable, and after the server's identity
//! (start time, timeline) changed, nothing is taken over. A swap of a running row compares the identity once more.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::clock::{Clock, Moment};

/// The time during which owners get the first word.
#[derive(Debug)]
pub(crate) struct Holdoff {
    length: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    until: Moment,
    server: Option<String>,
}

impl Holdoff {
    /// Starts running at once: the process has just started.
    pub(crate) fn new(length: Duration, clock: Arc<dyn Clock>) -> Self {
        let state = Mutex::new(State { until: clock.moment() + length, server: None });
        Self { length, clock, state }
    }

    /// How much of it is left; `None` when take-overs are allowed.
    pub(crate) fn left(&self) -> Option<Duration> {
        let left = self.state().until.since(self.clock.moment());
        (!left.is_zero()).then_some(left)
    }

    /// Starts it anew: the store was unreachable.
    pub(crate) fn restart(&self) {
        self.state().until = self.clock.moment() + self.length;
    }

    /// Notes which server answers. One that is not the last one seen starts the holdoff anew, the first one too: it may
    /// have come up this moment.
    pub(crate) fn saw(&self, server: &str) {
        let mut state = self.state();
        if state.server.as_deref() != Some(server) {
            state.until = self.clock.moment() + self.length;
            state.server = Some(server.to_owned());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use tokio::time;

    use super::*;
    use crate::testing::clock::TestClock;

    fn holdoff() -> Holdoff {
        Holdoff::new(Duration::from_secs(60), Arc::new(TestClock::starting_at(DateTime::UNIX_EPOCH)))
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_taken_over_for_one_lease_after_the_start() {
        let holdoff = holdoff();

        time::advance(Duration::from_secs(59)).await;
        assert_eq!(holdoff.left(), Some(Duration::from_secs(1)));

        time::advance(Duration::from_secs(1)).await;
        assert_eq!(holdoff.left(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn another_server_starts_the_holdoff_anew_and_the_same_one_does_not() {
        let holdoff = holdoff();
        time::advance(Duration::from_secs(60)).await;
        holdoff.saw("1/1");
        assert_eq!(holdoff.left(), Some(Duration::from_secs(60)), "the first one may have just come up");
        time::advance(Duration::from_secs(60)).await;

        holdoff.saw("1/1");
        assert_eq!(holdoff.left(), None);

        holdoff.saw("1/2");
        assert_eq!(holdoff.left(), Some(Duration::from_secs(60)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_starts_the_holdoff_anew() {
        let holdoff = holdoff();
        time::advance(Duration::from_secs(60)).await;

        holdoff.restart();

        assert_eq!(holdoff.left(), Some(Duration::from_secs(60)));
    }
}
