//! The `[log]` section.

use serde::{Deserialize, Serialize};

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// One line per entry, for people or for machines.
    pub format: Format,
    /// `error`, `warn`, `info`, `debug`, `trace`, `off`; also per target: `info,sqlx=warn`.
    pub level: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { format: Format::Text, level: "info".to_owned() }
    }
}

/// The shapes of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
    /// One JSON object with the field names of Google Cloud Logging.
    Gcp,
}

impl Format {
    /// The name used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Gcp => "gcp",
        }
    }
}
