//! The PostgreSQL server, and databases on it.

use std::{
    env,
    sync::{Mutex, PoisonError},
};

use anyhow::Context;
use bellhop::{claim::Identity, secret::Secret, store::postgres::migrate};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use super::contest::say;

/// Servers that wait for the disk, as those of operators do.
const DURABLE: &str = "ALTER SYSTEM SET fsync = on; ALTER SYSTEM SET full_page_writes = on";
const AS_BEFORE: &str = "ALTER SYSTEM RESET fsync; ALTER SYSTEM RESET full_page_writes";

/// Events of earlier days, all handled: so much for the planner, which would rather read a table of a few pages than
/// look up keys in it.
const PAST: &str = "INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce,
        lease_until, finished_at)
    SELECT (lpad(to_hex(1780000000000 + n), 12, '0') || left(md5(n::text), 20))::uuid,
        'spaces/AAQAb3nchmk/messages/' || left(md5(n::text), 16) || '.' || left(md5(n::text), 16), 'MESSAGE',
        decode('01' || md5(n::text), 'hex'), 2, 1, false, 1, gen_random_uuid(), clock_timestamp(), clock_timestamp()
    FROM generate_series(1, 100000) AS n";

pub(crate) struct Server {
    url: String,
    /// It was started for this run alone.
    is_ours: bool,
    databases: Mutex<Vec<String>>,
}

/// A database with bellhop's tables.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) url: String,
}

impl Server {
    pub(crate) async fn reach() -> anyhow::Result<Self> {
        let url = env::var("BELLHOP_TEST_POSTGRES_URL").context("needs a server: tests/run.sh cargo bench ...")?;
        let server = Self { url, is_ours: env::var_os("BELLHOP_TEST_RUN").is_some(), databases: Mutex::default() };
        if server.is_ours {
            server.set(DURABLE).await?;
        }
        let mut db = PgConnection::connect(&server.url).await?;
        let settings: String = sqlx::query_scalar(
            "SELECT 'PostgreSQL ' || current_setting('server_version') || ', fsync ' || current_setting('fsync')
                || ', full_page_writes ' || current_setting('full_page_writes')
                || ', synchronous_commit ' || current_setting('synchronous_commit')",
        )
        .fetch_one(&mut db)
        .await?;
        say(&settings);
        Ok(server)
    }

    async fn set(&self, settings: &'static str) -> anyhow::Result<()> {
        let mut db = PgConnection::connect(&self.url).await?;
        for statement in settings.split(';') {
            sqlx::raw_sql(statement).execute(&mut db).await?;
        }
        sqlx::raw_sql("SELECT pg_reload_conf(), pg_sleep(1)").execute(&mut db).await?;
        Ok(())
    }

    /// A database as `bellhop migrate up` leaves it.
    pub(crate) async fn database(&self) -> anyhow::Result<Database> {
        self.database_with("").await
    }

    /// A database as it was before events were written in batches.
    pub(crate) async fn old_database(&self) -> anyhow::Result<Database> {
        self.database_with("ALTER TABLE claims SET (fillfactor = 70)").await
    }

    async fn database_with(&self, settings: &'static str) -> anyhow::Result<Database> {
        let name = format!("bench_{}", Uuid::new_v4().simple());
        self.run(format!("CREATE DATABASE {name}")).await?;
        let (base, _) = self.url.rsplit_once('/').context("the server's URL names no database")?;
        let url = format!("{base}/{name}");
        self.databases.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        migrate::up(&Secret::from(url.as_str())).await?;
        let database = Database { url };
        database.run(settings).await?;
        database.run(PAST).await?;
        Ok(database)
    }

    /// Leaves nothing behind.
    pub(crate) async fn leave(&self) -> anyhow::Result<()> {
        let names = std::mem::take(&mut *self.databases.lock().unwrap_or_else(PoisonError::into_inner));
        for name in names {
            self.run(format!("DROP DATABASE {name} WITH (FORCE)")).await?;
        }
        if self.is_ours { self.set(AS_BEFORE).await } else { Ok(()) }
    }

    async fn run(&self, statement: String) -> anyhow::Result<()> {
        let mut db = PgConnection::connect(&self.url).await?;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut db).await?;
        Ok(())
    }
}

impl Database {
    pub(crate) async fn connect(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::connect(&self.url).await?)
    }

    async fn run(&self, statement: &'static str) -> anyhow::Result<()> {
        sqlx::raw_sql(statement).execute(&mut self.connect().await?).await?;
        Ok(())
    }

    /// Every turn begins with fresh statistics, and with all that the last one wrote on the disk.
    pub(crate) async fn rest(&self) -> anyhow::Result<()> {
        self.run("VACUUM ANALYZE claims").await?;
        self.run("CHECKPOINT").await
    }

    /// Leaves these events behind as claimed by an owner that fell silent a minute ago.
    pub(crate) async fn abandon(&self, events: &[Identity]) -> anyhow::Result<()> {
        let mut db = self.connect().await?;
        sqlx::query(
            "INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce, lease_until,
                deadline)
            SELECT m.key, m.event_id, 'MESSAGE', m.fingerprint, 1, 1, false, 1, gen_random_uuid(),
                clock_timestamp() - interval '60 s', clock_timestamp() + interval '5 s'
            FROM unnest($1::uuid[], $2::text[], $3::bytea[]) AS m(key, event_id, fingerprint)",
        )
        .bind(events.iter().map(|event| event.key.as_uuid()).collect::<Vec<_>>())
        .bind(events.iter().map(|event| event.event_id.as_str()).collect::<Vec<_>>())
        .bind(events.iter().map(|event| &event.fingerprint.0[..]).collect::<Vec<_>>())
        .execute(&mut db)
        .await?;
        self.rest().await
    }
}
