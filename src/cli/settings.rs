//! Flags that every command has: which configuration, and values over it.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Config, Environment, Flag, Loaded, Problems, Profile, Sources, log::Format};

/// Where the configuration comes from. Environment variables `BELLHOP__SECTION__KEY` lie between file and flags.
#[derive(Debug, Clone, Default, Args)]
pub struct Settings {
    /// Configuration file, TOML or YAML by its ending; BELLHOP_CONFIG names it too
    #[arg(long, short, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set one key, such as worker.concurrency=4; may be repeated
    #[arg(long, global = true, value_name = "SECTION.KEY=VALUE", value_parser = Flag::from_set)]
    pub set: Vec<Flag>,
    /// Shape of log lines (log.format)
    #[arg(long, global = true, value_name = "FORMAT")]
    pub log_format: Option<Format>,
    /// What is logged, such as info or info,sqlx=warn (log.level)
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<String>,
}

impl Settings {
    /// Adds a command's own flag for a key.
    #[must_use]
    pub fn with(mut self, name: &str, key: &str, value: Option<String>) -> Self {
        self.set.extend(value.map(|value| Flag::dedicated(name, key, value)));
        self
    }

    /// All layers, for the commands of a profile.
    #[must_use]
    pub fn sources(self, profile: Profile) -> Sources {
        let format = self.log_format.map(|format| format.as_str().to_owned());
        let level = self.log_level.clone();
        let settings = self.with("--log-format", "log.format", format).with("--log-level", "log.level", level);
        let Self { config, set, .. } = settings;
        Sources { file: config, environment: Environment::of_process(), flags: set, profile }
    }

    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(self, profile: Profile) -> Result<Loaded, Problems> {
        Config::load(&self.sources(profile))
    }
}
