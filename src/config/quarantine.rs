//! The `[quarantine]` section.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is kept of events that keep failing, and how fast they may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long payloads are kept.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
    /// More than so many in a process: intake pauses.
    pub max_per_minute: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { retention: Duration::from_secs(30 * 86_400), max_per_minute: 60 }
    }
}
