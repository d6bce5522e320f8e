//! How small and how large each number may be: enforced, documented and told from this one table.

use std::{fmt, time::Duration};

use bytesize::ByteSize;
use serde_json::Value;

/// What a number, duration or size may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// A whole number.
    Count(u64, u64),
    /// A whole number, or 0 for a computed one.
    CountOrZero(u64, u64),
    /// A duration.
    Time(Duration, Duration),
    /// A duration, or `auto`.
    TimeOrAuto(Duration, Duration),
    /// A size in bytes.
    Size(u64, u64),
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

const fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

const MIB: u64 = 1 << 20;
/// Ten years as `humantime` counts them.
const YEARS: Duration = Duration::from_secs(10 * 31_557_600);

/// Every key that has limits of its own. Limits between keys are in `check`.
pub const RANGES: &[(&str, Range)] = &[
    ("pubsub.streams", Range::Count(1, 64)),
    ("pubsub.max_outstanding_messages", Range::CountOrZero(1, 100_000)),
    ("pubsub.max_outstanding_bytes", Range::Size(64 << 10, 4_095 * MIB)),
    ("pubsub.lease_extension", Range::Time(secs(10), secs(600))),
    ("pubsub.silence", Range::Time(secs(10), hours(1))),
    ("worker.concurrency", Range::Count(1, 1_000)),
    ("worker.parking", Range::CountOrZero(1, 100_000)),
    ("worker.drain_timeout", Range::TimeOrAuto(secs(1), days(1))),
    ("store.max_connections", Range::Count(2, 200)),
    ("store.replicas", Range::Count(1, 1_000)),
    ("claims.lease", Range::Time(secs(5), secs(600))),
    // The shortest retention a subscription can have is 10 minutes; a claim must outlive the copies by 3 days.
    ("claims.retention", Range::Time(secs(3 * 86_400 + 600), YEARS)),
    ("retry.max_failures", Range::Count(1, 1_000)),
    ("retry.max_lost", Range::Count(1, 1_000)),
    ("retry.min_backoff", Range::Time(ms(100), hours(1))),
    ("retry.max_backoff", Range::Time(ms(100), hours(24))),
    ("handler.connect_timeout", Range::Time(ms(100), secs(30))),
    ("handler.timeout", Range::Time(ms(100), hours(6))),
    ("rule[].timeout", Range::Time(ms(100), hours(6))),
    ("rule[].max_failures", Range::Count(1, 1_000)),
    ("quarantine.retention", Range::Time(hours(1), YEARS)),
    ("quarantine.max_per_minute", Range::Count(1, 100_000)),
];

/// The limits of a key, list elements written `rule[]`.
#[must_use]
pub fn range(pattern: &str) -> Option<Range> {
    RANGES.iter().find(|(key, _)| *key == pattern).map(|(_, range)| *range)
}

impl Range {
    /// True when a value, as the configuration writes it, lies inside.
    #[must_use]
    pub fn admits(self, value: &Value) -> bool {
        let count = value.as_u64();
        let time = || value.as_str().and_then(|text| humantime::parse_duration(text).ok());
        match self {
            Self::Count(min, max) => count.is_some_and(|count| (min..=max).contains(&count)),
            Self::CountOrZero(min, max) => count.is_some_and(|count| count == 0 || (min..=max).contains(&count)),
            Self::TimeOrAuto(..) if value == "auto" => true,
            Self::Time(min, max) | Self::TimeOrAuto(min, max) => time().is_some_and(|time| (min..=max).contains(&time)),
            Self::Size(min, max) => {
                let size = value.as_str().and_then(|text| text.parse::<ByteSize>().ok());
                size.is_some_and(|size| (min..=max).contains(&size.as_u64()))
            }
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = humantime::format_duration;
        let size = |bytes| if bytes >= MIB { format!("{}MiB", bytes / MIB) } else { format!("{}KiB", bytes >> 10) };
        match *self {
            Self::Count(min, max) => write!(f, "a whole number from {min} to {max}"),
            Self::CountOrZero(min, max) => write!(f, "0 (computed) or a whole number from {min} to {max}"),
            Self::Time(min, max) => write!(f, "a duration from \"{}\" to \"{}\"", time(min), time(max)),
            Self::TimeOrAuto(min, max) => {
                write!(f, "\"auto\" or a duration from \"{}\" to \"{}\"", time(min), time(max))
            }
            Self::Size(min, max) => write!(f, "a size from \"{}\" to \"{}\"", size(min), size(max)),
        }
    }
}
