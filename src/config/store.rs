//! The `[store]` section.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{secret::Secret, store::postgres};

/// Where claims are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which store.
    pub backend: Backend,
    /// The database; `DATABASE_URL` is read too.
    pub url: Secret,
    /// For `migrate` alone, where `url` goes through a pooler; empty = `url`.
    pub migrate_url: Secret,
    /// The SQLite file.
    pub path: PathBuf,
    /// Database connections of this process, 2 to 200.
    pub max_connections: u32,
    /// Processes sharing the work, surge included, 1 to 1,000.
    pub replicas: u32,
    /// Under Kubernetes: a store of one process is meant.
    pub single_process: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backend: Backend::Auto,
            url: Secret::default(),
            migrate_url: Secret::default(),
            path: PathBuf::from("bellhop.db"),
            max_connections: postgres::Config::default().max_connections,
            replicas: 1,
            single_process: false,
        }
    }
}

impl Config {
    /// The store to open. Without a URL `auto` is SQLite; `run` refuses that, `demo` means it.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.backend {
            Backend::Auto if self.url.is_empty() => Backend::Sqlite,
            Backend::Auto => Backend::Postgres,
            given => given,
        }
    }

    /// What the PostgreSQL store needs of the section.
    #[must_use]
    pub fn postgres(&self) -> postgres::Config {
        postgres::Config { url: self.url.clone(), max_connections: self.max_connections }
    }

    /// The database to migrate.
    #[must_use]
    pub fn url_for_migrations(&self) -> &Secret {
        if self.migrate_url.is_empty() { &self.url } else { &self.migrate_url }
    }
}

/// The stores there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// By the URL.
    #[default]
    Auto,
    /// Shared by any number of processes.
    Postgres,
    /// One file, one process.
    Sqlite,
    /// Gone when the process ends.
    Memory,
}

impl Backend {
    /// The name used in the configuration, metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
        }
    }
}
