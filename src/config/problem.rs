//! What is wrong with a configuration, where it came from, and what to do about it.

use std::fmt;

use serde::Serialize;

/// Where a value came from. Later layers win: default, file, environment, flag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Origin {
    /// Built in.
    #[default]
    Default,
    /// The configuration file.
    File(String),
    /// An environment variable.
    Env(String),
    /// A command line flag.
    Flag(String),
    /// The file named by a `*_file` key.
    SecretFile(String),
}

impl Origin {
    /// The layer alone, for machines.
    #[must_use]
    pub const fn layer(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File(_) => "file",
            Self::Env(_) => "environment",
            Self::Flag(_) => "flag",
            Self::SecretFile(_) => "secret_file",
        }
    }

    /// The text a `config::Value` carries through merging.
    pub(super) fn tag(&self) -> String {
        match self {
            Self::Default => "default".to_owned(),
            Self::File(name) | Self::Env(name) | Self::Flag(name) | Self::SecretFile(name) => {
                format!("{}\u{0}{name}", self.layer())
            }
        }
    }

    /// The origin of such a text.
    pub(super) fn of_tag(tag: Option<&str>) -> Self {
        let Some((layer, name)) = tag.and_then(|tag| tag.split_once('\u{0}')) else { return Self::Default };
        let name = name.to_owned();
        match layer {
            "environment" => Self::Env(name),
            "flag" => Self::Flag(name),
            "secret_file" => Self::SecretFile(name),
            _ => Self::File(name),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(name) | Self::Flag(name) => f.write_str(name),
            Self::Env(name) => write!(f, "environment {name}"),
            Self::SecretFile(name) => write!(f, "secret file {name}"),
        }
    }
}

impl Serialize for Origin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One thing that is wrong, or odd, with one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// `section.key`; the file's name when the file as a whole is meant.
    pub key: String,
    /// The value as given; `***` for a secret, `None` when none was given or it may not be shown.
    pub value: Option<String>,
    /// Where the value came from.
    pub origin: Origin,
    /// What is wrong, with what is allowed.
    pub what: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if let Some(value) = &self.value {
            write!(f, " = {value}")?;
        }
        if self.origin != Origin::Default {
            write!(f, " ({})", self.origin)?;
        }
        write!(f, ": {}", self.what)?;
        if !self.fix.is_empty() {
            write!(f, "; {}", self.fix)?;
        }
        Ok(())
    }
}

/// Everything wrong with a configuration, together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Problems {
    /// What must be put right before bellhop starts; never empty when returned as an error.
    pub problems: Vec<Problem>,
    /// What it would have started with all the same.
    pub warnings: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "1 problem in the configuration:")?,
            count => write!(f, "{count} problems in the configuration:")?,
        }
        self.problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_survives_merging() {
        for origin in [
            Origin::Default,
            Origin::File("bellhop.toml".to_owned()),
            Origin::Env("BELLHOP__STORE__URL".to_owned()),
            Origin::Flag("--set store.url".to_owned()),
            Origin::SecretFile("/run/secrets/url".to_owned()),
        ] {
            assert_eq!(Origin::of_tag(Some(&origin.tag())), origin);
        }
    }
}
