//! One process per database file.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use super::error::OpenError;

/// Held as long as the store lives; the system releases it when the process dies, however it dies. That is the proof
/// that no earlier owner of a claim is alive.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Opens or creates a file that only this user may read: it holds what people wrote.
pub(super) fn private_file(path: &Path) -> Result<File, OpenError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    file.map_err(|cause| OpenError::File { path: path.to_owned(), cause })
}

impl Lock {
    /// Takes the lock, or says who holds it.
    pub(super) fn take(database: &Path) -> Result<Self, OpenError> {
        let path = database.with_added_extension("lock");
        let mut file = private_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.take(32).read_to_string(&mut holder);
                return Err(OpenError::InUse { path: database.to_owned(), holder: holder.trim().parse().ok() });
            }
            Err(TryLockError::Error(cause)) => return Err(OpenError::File { path, cause }),
        }
        // The number is for people; the lock holds without it.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}
