//! The `[pubsub]` section.

use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

/// Where events come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The project of the subscription; not needed when `subscription` is a full name.
    pub project: String,
    /// Short id or full name.
    pub subscription: String,
    /// Empty = Google's. `http://` means an emulator: anonymous credentials.
    pub endpoint: String,
    /// Allow an emulator under Kubernetes.
    pub allow_emulator: bool,
    /// Streams pulled at once, 1 to 32; one carries 10 MB/s.
    pub streams: usize,
    /// Deliveries held at once by this process; 0 = worker.concurrency + worker.parking.
    pub max_outstanding_messages: usize,
    /// Their payload bytes. At least 10 MiB: one message may be 10 MB.
    #[serde(with = "super::bytes")]
    pub max_outstanding_bytes: ByteSize,
    /// How long the server waits for the next sign of life of a delivery, 10 s to 600 s.
    #[serde(with = "humantime_serde")]
    pub lease_extension: Duration,
    /// A stream silent for so long is probed and opened anew.
    #[serde(with = "humantime_serde")]
    pub silence: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            project: String::new(),
            subscription: String::new(),
            endpoint: String::new(),
            allow_emulator: false,
            streams: 1,
            max_outstanding_messages: 0,
            max_outstanding_bytes: ByteSize::mib(64),
            lease_extension: Duration::from_secs(60),
            silence: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// `projects/P/subscriptions/S`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.subscription.contains('/') {
            self.subscription.clone()
        } else {
            format!("projects/{}/subscriptions/{}", self.project, self.subscription)
        }
    }

    /// True when the endpoint is an emulator: not encrypted, so no credentials may go there.
    #[must_use]
    pub fn is_emulator(&self) -> bool {
        self.endpoint.starts_with("http://")
    }
}
