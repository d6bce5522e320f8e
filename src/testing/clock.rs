//! A clock that follows tokio's, so that paused time moves it.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use crate::clock::{Clock, Moment};

/// Starts at a fixed wall-clock time and moves with `tokio::time`.
#[derive(Debug, Clone, Copy)]
pub struct TestClock {
    started: Instant,
    wall: DateTime<Utc>,
}

impl TestClock {
    /// A clock whose wall time is `wall` now.
    #[must_use]
    pub fn starting_at(wall: DateTime<Utc>) -> Self {
        Self { started: Instant::now(), wall }
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<Utc> {
        self.wall + TimeDelta::from_std(self.started.elapsed()).unwrap_or(TimeDelta::MAX)
    }

    fn moment(&self) -> Moment {
        Moment::from_boot(Duration::from_secs(1_000) + self.started.elapsed())
    }
}
