//! Bringing a server's schema up to what this code needs.
//!
//! Needs a connection of its own to the server: behind a transaction pooler neither the lock nor the settings of a
//! session hold. Two replicas may migrate at once; the second finds nothing to do.

use std::{fmt, time::Duration};

use sqlx::{
    ConnectOptions, Connection, PgConnection,
    migrate::{Migrate, MigrateError, Migrator},
};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    connection::connect_options,
    session::MARKER,
    upkeep::{CODE, NEEDED_SCHEMA},
};
use crate::secret::Secret;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Who migrates holds this advisory lock (`bellhop` in ASCII).
const LOCK: i64 = 0x0062_656c_6c68_6f70;
/// How long another migration may take before this one gives up waiting.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(250);

/// Why the schema was not looked at or not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server could not be reached, or refused the connection.
    #[error("database can not be used")]
    Connect(#[source] sqlx::Error),
    /// A transaction pooler answers: give the server's own address in `store.migrate_url`.
    #[error("a connection pooler stands before the database: set store.migrate_url to the server's own address")]
    Pooled,
    /// Another migration holds the lock.
    #[error("another migration has been running for {} s", .0.as_secs())]
    Busy(Duration),
    /// A migration failed; it was rolled back.
    #[error("migration failed")]
    Migrate(#[from] MigrateError),
    /// A statement around the migrations failed.
    #[error("database refused a statement")]
    Statement(#[source] sqlx::Error),
}

/// What the server has and what this code needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The schema's version; 0 = none.
    pub found: i64,
    /// What this code needs.
    pub needed: i64,
    /// The oldest code the schema admits; 0 = none said.
    pub min_code: i64,
    /// What this code is.
    pub code: i64,
    /// Descriptions of the migrations that are not applied yet, in order.
    pub pending: Vec<String>,
    /// Versions of applied migrations that this code does not know, in order: a newer bellhop applied them.
    pub unknown: Vec<i64>,
    /// The user the URL names, for the role line.
    pub role: String,
}

impl Status {
    /// Whether this code can work with the schema as it is.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.found >= self.needed && self.min_code <= self.code
    }

    /// Whether a newer bellhop has migrated the schema.
    #[must_use]
    pub const fn is_newer(&self) -> bool {
        self.found > self.needed || !self.unknown.is_empty()
    }

    /// The statement that bounds what the role waits for on the server. bellhop does not run it: changing a role may
    /// need rights of its own.
    #[must_use]
    pub fn role_line(&self) -> String {
        let role = self.role.replace('"', "\"\"");
        format!("ALTER ROLE \"{role}\" SET statement_timeout = '2s'; ALTER ROLE \"{role}\" SET lock_timeout = '1s';")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema {} (needed: {}), {} pending", self.found, self.needed, self.pending.len())
    }
}

/// Looks, and changes nothing.
///
/// # Errors
/// See [`Error`].
pub async fn status(url: &Secret) -> Result<Status, Error> {
    let mut connection = connect(url).await?;
    read_status(&mut connection).await
}

/// Applies what is pending and tells what the schema is then; `pending` lists what was applied.
///
/// # Errors
/// See [`Error`].
pub async fn up(url: &Secret) -> Result<Status, Error> {
    up_within(url, PATIENCE).await
}

/// The same, waiting so long for another migration to end.
///
/// # Errors
/// See [`Error`].
pub async fn up_within(url: &Secret, patience: Duration) -> Result<Status, Error> {
    let mut connection = connect(url).await?;
    lock(&mut connection, patience).await?;
    let before = read_status(&mut connection).await?;
    apply(&mut connection).await?;
    let after = read_status(&mut connection).await?;
    // Closing the connection gives the lock back.
    connection.close().await.map_err(Error::Statement)?;
    Ok(Status { pending: before.pending, ..after })
}

/// A migration waits for no lock longer than five seconds: behind it every claim would wait too.
async fn apply(connection: &mut PgConnection) -> Result<(), Error> {
    sqlx::raw_sql("SET lock_timeout = '5s'; SET statement_timeout = 0")
        .execute(&mut *connection)
        .await
        .map_err(Error::Statement)?;
    let mut migrations = Migrator::with_migrations(MIGRATIONS.iter().cloned().collect());
    // A newer schema may admit this code; and the lock is held already.
    migrations.set_ignore_missing(true).set_locking(false);
    migrations.run_direct(None, connection, false).await.map_err(Error::Migrate)
}

async fn connect(url: &Secret) -> Result<PgConnection, Error> {
    let options = connect_options(url.expose()).map_err(Error::Connect)?;
    let marker = Uuid::new_v4().simple().to_string();
    let mut connection = match options.options([(MARKER, marker.as_str())]).connect().await {
        Err(sqlx::Error::Database(error)) if super::connection::refuses_marker(&*error) => return Err(Error::Pooled),
        other => other.map_err(Error::Connect)?,
    };
    let seen = sqlx::query_scalar!("SELECT current_setting('bellhop.session', true)")
        .fetch_one(&mut connection)
        .await
        .map_err(Error::Statement)?;
    if seen.as_deref() == Some(marker.as_str()) { Ok(connection) } else { Err(Error::Pooled) }
}

/// Waits without holding a queue place, so that a lock timeout of the role does not end the wait.
async fn lock(connection: &mut PgConnection, patience: Duration) -> Result<(), Error> {
    let until = Instant::now() + patience;
    loop {
        let locked = sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "locked!""#, LOCK)
            .fetch_one(&mut *connection)
            .await
            .map_err(Error::Statement)?;
        match locked {
            true => return Ok(()),
            false if Instant::now() >= until => return Err(Error::Busy(patience)),
            false => sleep(POLL).await,
        }
    }
}

async fn read_status(connection: &mut PgConnection) -> Result<Status, Error> {
    let tables = sqlx::query!(
        r#"SELECT to_regclass('schema_info') IS NOT NULL AS "schema!",
            to_regclass('_sqlx_migrations') IS NOT NULL AS "migrations!", current_user::text AS "role!""#
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(Error::Statement)?;
    let (found, min_code) = if tables.schema {
        let info = sqlx::query!("SELECT version, min_code FROM schema_info")
            .fetch_optional(&mut *connection)
            .await
            .map_err(Error::Statement)?;
        info.map_or((0, 0), |info| (info.version, info.min_code))
    } else {
        (0, 0)
    };
    let applied =
        if tables.migrations { connection.list_applied_migrations(&MIGRATIONS.table_name).await? } else { Vec::new() };
    let pending = MIGRATIONS
        .iter()
        .filter(|known| applied.iter().all(|done| done.version != known.version))
        .map(|pending| pending.description.to_string())
        .collect();
    let is_unknown = |version: &i64| MIGRATIONS.iter().all(|known| known.version != *version);
    let mut unknown: Vec<i64> = applied.iter().map(|done| done.version).filter(is_unknown).collect();
    unknown.sort_unstable();
    Ok(Status { found, needed: NEEDED_SCHEMA, min_code, code: CODE, pending, unknown, role: tables.role })
}
