//! Where configuration is read from: file, environment, flags. Nothing else in bellhop reads either of them.

use std::{collections::BTreeMap, path::PathBuf};

use super::problem::Origin;

/// Which checks apply, and which defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// `run`, and `config` about it: everything must be right.
    #[default]
    Run,
    /// `demo`: an embedded server, the echo handler and a SQLite store unless told otherwise, by flags alone.
    Demo,
    /// Commands that only need the store.
    Store,
    /// Commands that only need to know where the endpoints are.
    Probe,
}

/// A value given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// `section.key`.
    pub key: String,
    /// Its value, as text.
    pub value: String,
    /// The flag as the user typed it (`--set worker.concurrency`, `--drain-timeout`).
    pub name: String,
}

impl Flag {
    /// `section.key=value` as given to `--set`.
    ///
    /// # Errors
    /// Without an `=`.
    pub fn from_set(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or_else(|| "expected section.key=value".to_owned())?;
        let key = key.trim().to_owned();
        Ok(Self { name: format!("--set {key}"), key, value: value.to_owned() })
    }

    /// A flag of its own for a key.
    #[must_use]
    pub fn dedicated(name: &str, key: &str, value: impl Into<String>) -> Self {
        Self { key: key.to_owned(), value: value.into(), name: name.to_owned() }
    }
}

/// The environment as text. Values that are not UTF-8 are kept apart: they are refused only where they are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    unreadable: Vec<String>,
}

impl Environment {
    /// What this process was started with.
    #[must_use]
    pub fn of_process() -> Self {
        let mut environment = Self::default();
        for (name, value) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            match value.into_string() {
                Ok(value) => {
                    environment.variables.insert(name, value);
                }
                Err(_) => environment.unreadable.push(name),
            }
        }
        environment
    }

    /// A variable's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// True where Kubernetes runs this process.
    #[must_use]
    pub fn in_kubernetes(&self) -> bool {
        self.get("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn unreadable(&self) -> impl Iterator<Item = &str> {
        self.unreadable.iter().map(String::as_str)
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Environment {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        let variables = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Self { variables, unreadable: Vec::new() }
    }
}

/// All layers above the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// `--config`; without it `BELLHOP_CONFIG`, but not for `demo`; without that no file.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Environment,
    /// Flags, in the order given; later ones win.
    pub flags: Vec<Flag>,
    /// Which checks and defaults.
    pub profile: Profile,
}

impl Sources {
    /// The file to read and how the user named it.
    pub(super) fn file(&self) -> Option<(PathBuf, Origin)> {
        let given = self.file.clone().map(|path| (path, Origin::Flag("--config".to_owned())));
        given.or_else(|| {
            // The file of a real run names real subscriptions and handlers.
            if self.profile == Profile::Demo {
                return None;
            }
            let path = self.environment.get("BELLHOP_CONFIG").filter(|path| !path.is_empty())?;
            Some((PathBuf::from(path), Origin::Env("BELLHOP_CONFIG".to_owned())))
        })
    }
}
