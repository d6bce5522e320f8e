//! The design before this one in a file: a transaction for each claim and one for each completion.

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use bellhop::{
    claim::{ClaimIntent, row::Next},
    clock::SystemClock,
    store::sqlite::SqliteStore,
};
use chrono::{DateTime, Utc};
use sqlx::{
    SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{
    before::reference,
    event::{Claimer, Held, LEASE, RETENTION},
};

const FIND: &str = "SELECT * FROM claims WHERE key = ?1";

const WRITE: &str = "INSERT INTO claims
        (key, event_id, event_type, fingerprint, state, phase, strict, epoch, failures, lost, nonce, lease_until,
         deadline, not_before, first_seen_at, finished_at, note)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
    ON CONFLICT (key) DO UPDATE SET state = ?5, phase = ?6, strict = ?7, epoch = ?8, failures = ?9, lost = ?10,
        nonce = ?11, lease_until = ?12, deadline = ?13, not_before = ?14, finished_at = ?16, note = ?17";

const DONE: &str = "UPDATE claims SET state = 2, finished_at = ?3 WHERE key = ?1 AND nonce = ?2";

const FORGET_REPLIES: &str = "DELETE FROM replies WHERE key = ?1";

const RESOLVE: &str = "UPDATE quarantine SET resolution = 'late_success', settled_at = ?3
    WHERE key = ?1 AND nonce = ?2 AND settled_at IS NULL AND reason <> 'mismatch'";

/// A file, one connection, and a transaction for each claim and each completion.
struct OneByOneInFile(SqlitePool);

pub(crate) async fn in_sqlite(path: &Path) -> anyhow::Result<Arc<dyn Claimer>> {
    // It has the same tables.
    drop(SqliteStore::open(path, LEASE, RETENTION, Arc::new(SystemClock)).await?);
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(5));
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_with(options)
        .await?;
    Ok(Arc::new(OneByOneInFile(pool)))
}

#[async_trait]
impl Claimer for OneByOneInFile {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> anyhow::Result<Option<Held>> {
        let mut tx = self.0.begin_with("BEGIN IMMEDIATE").await?;
        let found = sqlx::query(FIND).bind(intent.key().as_uuid()).fetch_optional(&mut *tx).await?;
        if found.is_some() {
            return Ok(None);
        }
        let row = Next::first(intent, LEASE).insert(intent.event.clone(), Utc::now());
        let at = |time: DateTime<Utc>| time.timestamp_micros();
        sqlx::query(WRITE)
            .bind(row.event.key.as_uuid())
            .bind(row.event.event_id.as_str())
            .bind(&row.event.event_type)
            .bind(&row.event.fingerprint.0[..])
            .bind(row.state.code())
            .bind(row.phase.code())
            .bind(row.strict)
            .bind(row.epoch)
            .bind(row.failures)
            .bind(row.lost)
            .bind(row.nonce.as_uuid())
            .bind(at(row.lease_until))
            .bind(row.deadline.map(at))
            .bind(row.not_before.map(at))
            .bind(at(row.first_seen_at))
            .bind(row.finished_at.map(at))
            .bind(&row.note)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(Some(Held::Reference(intent.reference())))
    }

    /// It wrote the whole row again; this is a little cheaper.
    async fn complete(&self, held: Held) -> anyhow::Result<()> {
        let claim = reference(&held)?;
        let (key, nonce) = (claim.key.as_uuid(), claim.nonce.as_uuid());
        let now = Utc::now().timestamp_micros();
        let mut tx = self.0.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query(FIND).bind(key).fetch_one(&mut *tx).await?;
        sqlx::query(DONE).bind(key).bind(nonce).bind(now).execute(&mut *tx).await?;
        sqlx::query(FORGET_REPLIES).bind(key).execute(&mut *tx).await?;
        sqlx::query(RESOLVE).bind(key).bind(nonce).bind(now).execute(&mut *tx).await?;
        Ok(tx.commit().await?)
    }
}
