//! Time as an argument: the wall clock for what is stored and shown, a monotonic clock for leases.
//!
//! Leases are measured on a clock that goes on while the machine is suspended: a process that was frozen for longer
//! than its lease must notice it before it calls a handler.

use std::{fmt::Debug, ops::Add, time::Duration};

use chrono::{DateTime, Utc};

pub use steady::Steady;

mod steady;

/// A point on the monotonic clock of this boot, suspended time included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The moment `since_boot` after the machine started.
    #[must_use]
    pub const fn from_boot(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// The time from `earlier` until this moment, zero when `earlier` is the later one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// Where time comes from. Waiting uses `tokio::time`; what is compared or stored comes from here.
pub trait Clock: Debug + Send + Sync {
    /// The wall clock. Display and event age only: lease arithmetic is done in the database.
    fn now(&self) -> DateTime<Utc>;

    /// The monotonic clock, suspended time included.
    fn moment(&self) -> Moment;
}

/// The machine's own clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn moment(&self) -> Moment {
        let at = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Moment(Duration::new(at.tv_sec.unsigned_abs(), u32::try_from(at.tv_nsec).unwrap_or_default()))
    }
}
