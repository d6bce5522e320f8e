//! The `[worker]` section.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The `[worker]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Handlers running at once in this process, 1 to 1,000.
    pub concurrency: usize,
    /// Copies that may wait in the parking lot; 0 = the larger of 16 and `concurrency`.
    pub parking: usize,
    /// From the first signal to the abort of running handlers.
    pub drain_timeout: DrainTimeout,
    /// Allow a drain shorter than the longest handler timeout.
    pub drain_may_cut: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { concurrency: 16, parking: 0, drain_timeout: DrainTimeout::Auto, drain_may_cut: false }
    }
}

impl Config {
    /// The size of the parking lot.
    #[must_use]
    pub fn parking_places(&self) -> usize {
        if self.parking == 0 { self.concurrency.max(16) } else { self.parking }
    }
}

/// How long a drain may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainTimeout {
    /// The longest handler timeout + 5 s.
    Auto,
    /// So long.
    After(Duration),
}

impl DrainTimeout {
    /// The time for handlers of at most `longest`.
    #[must_use]
    pub fn for_handlers(self, longest: Duration) -> Duration {
        match self {
            Self::Auto => longest + Duration::from_secs(5),
            Self::After(time) => time,
        }
    }
}

impl Serialize for DrainTimeout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::After(time) => humantime_serde::serialize(time, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for DrainTimeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "auto" {
            return Ok(Self::Auto);
        }
        humantime::parse_duration(&text)
            .map(Self::After)
            .map_err(|_| de::Error::invalid_value(de::Unexpected::Str(&text), &"\"auto\" or a duration like \"30s\""))
    }
}
