//! When the next attempt is due. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The `[retry]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Times the handler may say no before the event is quarantined, 1 to 1,000.
    pub max_failures: u16,
    /// Times an owner may be lost with the event before it is quarantined, 1 to 1,000.
    pub max_lost: u16,
    /// The delay after the first failure; doubled at each further one.
    #[serde(with = "humantime_serde")]
    pub min_backoff: Duration,
    /// The longest delay.
    #[serde(with = "humantime_serde")]
    pub max_backoff: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_failures: 8,
            max_lost: 3,
            min_backoff: Duration::from_secs(10),
            max_backoff: Duration::from_secs(600),
        }
    }
}

/// The delays between attempts: doubling, equal jitter (half fixed, half random).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    min: Duration,
    max: Duration,
}

impl Backoff {
    /// Delays between `min` and `max`.
    #[must_use]
    pub const fn new(min: Duration, max: Duration) -> Self {
        Self { min, max }
    }

    /// The delay after the `nth` failure (from 1). `luck` in `0.0..=1.0` decides the random half.
    #[must_use]
    pub fn delay(self, nth: u16, luck: f64) -> Duration {
        let doublings = u32::from(nth.saturating_sub(1)).min(31);
        let full = self.min.saturating_mul(1 << doublings).min(self.max);
        full / 2 + (full / 2).mul_f64(luck.clamp(0.0, 1.0))
    }

    /// What the handler asked for, kept between the shortest and the longest delay.
    #[must_use]
    pub fn clamp(self, asked: Duration) -> Duration {
        asked.clamp(self.min, self.max)
    }
}

impl From<&Config> for Backoff {
    fn from(config: &Config) -> Self {
        Self::new(config.min_backoff, config.max_backoff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(600));

    #[test]
    fn delays_double_and_half_of_each_is_fixed() {
        assert_eq!(BACKOFF.delay(1, 0.0), Duration::from_secs(5));
        assert_eq!(BACKOFF.delay(1, 1.0), Duration::from_secs(10));
        assert_eq!(BACKOFF.delay(3, 0.0), Duration::from_secs(20));
        assert_eq!(BACKOFF.delay(3, 0.5), Duration::from_secs(30));
    }

    #[test]
    fn delays_never_pass_the_longest() {
        assert_eq!(BACKOFF.delay(u16::MAX, 1.0), Duration::from_secs(600));
    }

    #[test]
    fn what_the_handler_asks_for_is_clamped() {
        assert_eq!(BACKOFF.clamp(Duration::from_secs(1)), Duration::from_secs(10));
        assert_eq!(BACKOFF.clamp(Duration::from_secs(60)), Duration::from_secs(60));
        assert_eq!(BACKOFF.clamp(Duration::from_secs(86_400)), Duration::from_secs(600));
    }
}
