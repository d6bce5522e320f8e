//! The one connection, and who holds it.

use std::{path::Path, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::{
    ConnectOptions, Sqlite, SqliteConnection,
    query::Query,
    sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous},
};
use tokio::{
    sync::{Mutex, MutexGuard},
    time,
};

use super::error::classify;
use crate::{clock::Steady, store::StoreError};

/// How long a call waits for the connection, and the connection for a backup that holds the file.
const BUSY: Duration = Duration::from_secs(5);

/// A statement with its values.
pub(super) type Statement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// A database file. What a call has committed is on disk.
#[derive(Debug)]
pub(super) struct Database {
    options: SqliteConnectOptions,
    pub(super) clock: Steady,
    /// `None` while a call holds it, and after a call that failed.
    idle: Mutex<Option<SqliteConnection>>,
}

/// The connection, held by one call.
///
/// A call that failed or was dropped does not give it back: its transaction may be open, half done, or rolled back by
/// SQLite itself (a full disk). Such a connection is closed, which ends whatever was left, and the next call opens
/// another.
pub(super) struct Held<'a> {
    /// When the call got it: the time of all it reads and writes.
    pub(super) now: DateTime<Utc>,
    place: MutexGuard<'a, Option<SqliteConnection>>,
    connection: SqliteConnection,
}

impl Database {
    pub(super) fn new(path: &Path, clock: Steady) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY)
            .disable_statement_logging();
        Self { options, clock, idle: Mutex::default() }
    }

    /// Waits for the connection.
    pub(super) async fn hold(&self) -> Result<Held<'_>, StoreError> {
        let mut place = time::timeout(BUSY, self.idle.lock()).await.map_err(StoreError::contention)?;
        let connection = match place.take() {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(classify)?,
        };
        Ok(Held { now: self.clock.now(), place, connection })
    }

    /// Begins a transaction that may write.
    pub(super) async fn begin(&self) -> Result<Held<'_>, StoreError> {
        let mut held = self.hold().await?;
        held.write(sqlx::query("BEGIN IMMEDIATE")).await?;
        // It may have waited for a backup.
        held.now = self.clock.now();
        Ok(held)
    }

    /// One statement of its own; the rows written.
    pub(super) async fn write(&self, statement: Statement<'_>) -> Result<u64, StoreError> {
        let mut held = self.hold().await?;
        let written = held.write(statement).await?;
        held.release();
        Ok(written)
    }

    /// One query of its own.
    pub(super) async fn rows(&self, query: Statement<'_>) -> Result<Vec<SqliteRow>, StoreError> {
        let mut held = self.hold().await?;
        let rows = query.fetch_all(&mut held.connection).await.map_err(classify)?;
        held.release();
        Ok(rows)
    }
}

impl Held<'_> {
    /// The rows written.
    pub(super) async fn write(&mut self, statement: Statement<'_>) -> Result<u64, StoreError> {
        Ok(statement.execute(&mut self.connection).await.map_err(classify)?.rows_affected())
    }

    pub(super) async fn row(&mut self, query: Statement<'_>) -> Result<Option<SqliteRow>, StoreError> {
        query.fetch_optional(&mut self.connection).await.map_err(classify)
    }

    /// Ends the transaction and gives the connection back.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        self.write(sqlx::query("COMMIT")).await?;
        self.release();
        Ok(())
    }

    /// Gives the connection back, outside of a transaction.
    pub(super) fn release(mut self) {
        *self.place = Some(self.connection);
    }
}
