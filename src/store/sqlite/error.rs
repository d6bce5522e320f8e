//! What a failure of SQLite means to the caller.

use std::{io, path::PathBuf};

use super::VERSION;
use crate::store::StoreError;

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process holds it.
    #[error(
        "database {} is in use by another bellhop process{}: stop that one first, or give this one a store.path of its \
         own (several processes need store.backend = \"postgres\")",
        path.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    InUse {
        /// Which database.
        path: PathBuf,
        /// Who holds it, where the lock file tells.
        holder: Option<u32>,
    },
    /// Its file, or the lock file beside it, cannot be used.
    #[error("database {} cannot be opened: its directory must exist and be writable", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// A newer version made it.
    #[error("database {} has schema version {found}, this bellhop knows {VERSION}: use the newer bellhop", path.display())]
    TooNew {
        /// Which database.
        path: PathBuf,
        /// What it has.
        found: i64,
    },
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::refused(error)
    }
}

/// A row that this code cannot have written.
#[derive(Debug, thiserror::Error)]
#[error("stored {column} is not valid")]
pub(super) struct Corrupt {
    pub(super) column: &'static str,
}

/// `map_err` for every statement.
pub(super) fn classify(error: sqlx::Error) -> StoreError {
    use sqlx::Error;
    match &error {
        Error::Database(cause) => match primary_code(cause.code().as_deref()) {
            // busy, locked
            Some(5 | 6) => StoreError::contention(error),
            // error, too big, constraint, mismatch, range
            Some(1 | 18 | 19 | 20 | 25) => StoreError::refused(error),
            _ => StoreError::unknown(error),
        },
        Error::ColumnDecode { .. } | Error::ColumnNotFound(_) | Error::Decode(_) | Error::Encode(_) => {
            StoreError::refused(error)
        }
        _ => StoreError::unknown(error),
    }
}

/// The low byte of SQLite's extended code.
fn primary_code(code: Option<&str>) -> Option<u32> {
    code?.parse::<u32>().ok().map(|code| code & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_codes_keep_their_class() {
        assert_eq!(primary_code(Some("517")), Some(5));
        assert_eq!(primary_code(Some("1555")), Some(19));
        assert_eq!(primary_code(Some("?")), None);
    }
}
