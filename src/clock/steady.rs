//! Wall time that never steps while the process lives.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Clock, Moment};

/// Reads the wall clock once and moves on with the monotonic one, suspended time included. For stores without a
/// server: what they keep survives a reboot, yet a corrected wall clock neither ends nor prolongs a lease.
#[derive(Debug, Clone)]
pub struct Steady {
    clock: Arc<dyn Clock>,
    wall: DateTime<Utc>,
    since: Moment,
}

impl Steady {
    /// Starts at the wall clock's time now.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { wall: clock.now(), since: clock.moment(), clock }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(self.clock.moment().since(self.since)).unwrap_or(TimeDelta::MAX);
        self.wall.checked_add_signed(passed).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// The monotonic clock, for fences.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.clock.moment()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicI64, Ordering},
        time::Duration,
    };

    use super::*;

    #[derive(Debug, Default)]
    struct Clocks {
        wall_secs: AtomicI64,
        boot_secs: AtomicI64,
    }

    impl Clock for Clocks {
        fn now(&self) -> DateTime<Utc> {
            DateTime::from_timestamp(self.wall_secs.load(Ordering::Relaxed), 0).unwrap()
        }

        fn moment(&self) -> Moment {
            Moment::from_boot(Duration::from_secs(self.boot_secs.load(Ordering::Relaxed).unsigned_abs()))
        }
    }

    #[test]
    fn a_step_of_the_wall_clock_changes_nothing() {
        let clocks = Arc::new(Clocks { wall_secs: 5_000.into(), boot_secs: 7.into() });
        let steady = Steady::new(Arc::<Clocks>::clone(&clocks));

        clocks.wall_secs.store(9_000, Ordering::Relaxed);
        clocks.boot_secs.store(10, Ordering::Relaxed);

        assert_eq!(steady.now().timestamp(), 5_003);
    }
}
