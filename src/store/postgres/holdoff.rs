//! When this process may take over from others.
//!
//! After a restart, an outage or a failover every lease looks stale although the owners live. They get the first word:
//! for one lease after this process started, after it saw the store unreachable, and after the server's identity
//! (start time, timeline) changed, nothing is taken over. The claim statement checks the identity once more itself.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::clock::{Clock, Moment};

/// The time during which owners get the first word.
#[derive(Debug)]
pub(super) struct Holdoff {
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
    pub(super) fn new(length: Duration, clock: Arc<dyn Clock>) -> Self {
        let state = Mutex::new(State { until: clock.moment() + length, server: None });
        Self { length, clock, state }
    }

    /// How much of it is left; `None` when take-overs are allowed.
    pub(super) fn left(&self) -> Option<Duration> {
        let left = self.state().until.since(self.clock.moment());
        (!left.is_zero()).then_some(left)
    }

    /// Starts it anew: the store was unreachable.
    pub(super) fn restart(&self) {
        self.state().until = self.clock.moment() + self.length;
    }

    /// Notes which server answers. One that is not the last one seen starts the holdoff anew, the first one too: it may
    /// have come up this moment.
    pub(super) fn saw(&self, server: String) {
        let mut state = self.state();
        if state.server.as_ref() != Some(&server) {
            state.until = self.clock.moment() + self.length;
            state.server = Some(server);
        }
    }

    /// The server last seen; empty when none was, which no server is.
    pub(super) fn server(&self) -> String {
        self.state().server.clone().unwrap_or_default()
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
        holdoff.saw("1/1".to_owned());
        assert_eq!(holdoff.left(), Some(Duration::from_secs(60)), "the first one may have just come up");
        time::advance(Duration::from_secs(60)).await;

        holdoff.saw("1/1".to_owned());
        assert_eq!(holdoff.left(), None);

        holdoff.saw("1/2".to_owned());
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
