//! Claims in a SQLite file: one host, one process, no server.
//!
//! A lock file beside the database is held for life, so whoever opens it knows that every earlier owner is dead and
//! takes their events over at once. Each call is one immediate transaction: it reads the row, lets it change by the
//! rules of [`crate::claim::row`], and writes it back; what has been answered is on disk (WAL, synchronous FULL).

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{
    Sqlite, SqlitePool, Transaction,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use super::{ClaimStore, StoreError};
use crate::{
    claim::{
        Claim, ClaimIntent, ClaimRef, ClaimView, Claimed, Key, Lease, Phase, Standing, Step, Wait,
        decide::{Ask, Decision, decide},
        row::{Change, Retry, Row, Verdict, before},
    },
    clock::{Clock, Steady},
    outcome::{Detail, Outcome, Reason},
};
pub use error::OpenError;
use error::classify;
use lock::Lock;
use rows::micros;

mod error;
mod lock;
mod quarantine;
mod rows;
mod statements;
mod upkeep;

/// How long a call waits for the one connection, and the connection for a backup that holds the file.
const BUSY: Duration = Duration::from_secs(5);

/// The claims of one process, in a file.
#[derive(Debug)]
pub struct SqliteStore {
    pool: SqlitePool,
    lease: Lease,
    retention: Duration,
    clock: Steady,
    _lock: Lock,
}

impl SqliteStore {
    /// Locks, opens and migrates the database at `path`; creates it, readable by this user only.
    ///
    /// # Errors
    /// `Refused` with an [`OpenError`] when the file is in use, not usable or too new; else see [`StoreError`].
    pub async fn open(
        path: &Path,
        lease: Lease,
        retention: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let lock = Lock::take(path)?;
        lock::private_file(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(BUSY)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(options);
        let store = Self { pool, lease, retention, clock: Steady::new(clock), _lock: lock };
        store.migrate(path).await?;
        Ok(store)
    }

    async fn migrate(&self, path: &Path) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        let found: i64 = sqlx::query_scalar(statements::FIND_VERSION).fetch_one(&mut *tx).await.map_err(classify)?;
        match found {
            0 => {
                for statement in statements::SCHEMA {
                    sqlx::query(statement).execute(&mut *tx).await.map_err(classify)?;
                }
            }
            statements::VERSION => {}
            _ => return Err(OpenError::TooNew { path: path.to_owned(), found, known: statements::VERSION }.into()),
        }
        let over = before(self.clock.now(), self.lease.grace() + Duration::from_millis(1));
        sqlx::query(statements::END_LEASES).bind(micros(over)).execute(&mut *tx).await.map_err(classify)?;
        tx.commit().await.map_err(classify)
    }

    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.pool.begin_with(statements::BEGIN).await.map_err(classify)
    }

    async fn answer(
        &self,
        tx: &mut Transaction<'static, Sqlite>,
        intent: &Arc<ClaimIntent>,
    ) -> Result<Claimed, StoreError> {
        let fence_at = self.lease.fence_after(self.clock.moment());
        let stored = rows::find(tx, intent.key).await?;
        let ask = Ask { intent, now: self.clock.now(), lease: self.lease, retention: self.retention };
        Ok(match decide(stored.as_ref(), &ask) {
            Decision::Mine(row) => {
                rows::write(tx, &row).await?;
                let replies = match row.phase {
                    Phase::ReplyPending => rows::find_replies(tx, row.key).await?,
                    Phase::NotBegun | Phase::MayHaveRun => Vec::new(),
                };
                Claimed::Mine(Claim {
                    intent: Arc::clone(intent),
                    epoch: row.epoch,
                    phase: row.phase,
                    strict: row.strict,
                    failures: row.failures,
                    lost: row.lost,
                    cut_by_drain: Row::was_cut_by_drain(&row.note, row.lost),
                    replies,
                    fence_at,
                })
            }
            Decision::Quarantine(row, reason) => {
                rows::write(tx, &row).await?;
                self.put_aside(tx, &row, (reason, &Detail::default()), intent).await?;
                Claimed::Quarantined { reason, fresh: true }
            }
            Decision::Mismatch(parked) => {
                let reason = Reason::Mismatch;
                let fresh = match &stored {
                    Some(row) => self.put_aside(tx, row, (reason, &Detail::default()), intent).await?,
                    None => false,
                };
                parked.map_or(Claimed::Quarantined { reason, fresh }, |wake_in| Claimed::Wait {
                    wake_in,
                    why: Wait::Mismatch,
                })
            }
            Decision::Wait { wake_in, why } => Claimed::Wait { wake_in, why },
            Decision::Settled => Claimed::Settled,
            Decision::Quarantined(reason) => Claimed::Quarantined { reason, fresh: false },
        })
    }

    async fn put_aside(
        &self,
        tx: &mut Transaction<'static, Sqlite>,
        row: &Row,
        verdict: (Reason, &Detail),
        intent: &ClaimIntent,
    ) -> Result<bool, StoreError> {
        quarantine::put_aside(tx, &self.clock, row, verdict, intent).await
    }
}

/// Writes a changed row back.
async fn save(tx: &mut Transaction<'static, Sqlite>, row: &Row, change: Change) -> Result<(), StoreError> {
    match change {
        Change::Made => rows::write(tx, row).await,
        Change::Repeated => Ok(()),
        Change::Lost => Err(StoreError::ClaimLost),
    }
}

async fn owned(tx: &mut Transaction<'static, Sqlite>, key: Key) -> Result<Row, StoreError> {
    rows::find(tx, key).await?.ok_or(StoreError::ClaimLost)
}

#[async_trait]
impl ClaimStore for SqliteStore {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        let mut tx = self.begin().await?;
        let answer = self.answer(&mut tx, intent).await?;
        tx.commit().await.map_err(classify)?;
        Ok(answer)
    }

    async fn advance(&self, claim: &Claim, step: &Step) -> Result<(), StoreError> {
        let intent = &claim.intent;
        let mut tx = self.begin().await?;
        let mut row = owned(&mut tx, intent.key).await?;
        let now = self.clock.now();
        match step {
            Step::Started => {
                let change = row.start(intent, now, self.lease);
                save(&mut tx, &row, change).await?;
            }
            Step::ReplyPending(replies) => {
                let change = row.reply_pending(intent.nonce, now, self.lease);
                save(&mut tx, &row, change).await?;
                for reply in replies {
                    rows::keep_reply(&mut tx, intent.key, reply).await?;
                }
            }
        }
        tx.commit().await.map_err(classify)
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<ClaimRef>, StoreError> {
        let mut lost = Vec::new();
        let mut tx = self.begin().await?;
        let now = self.clock.now();
        for claim in claims {
            let mut row = rows::find(&mut tx, claim.key()).await?;
            match row.as_mut().map_or(Change::Lost, |row| row.renew(claim.nonce(), now, self.lease)) {
                Change::Lost => lost.push(claim.clone()),
                change => {
                    if let Some(row) = &row {
                        save(&mut tx, row, change).await?;
                    }
                }
            }
        }
        tx.commit().await.map_err(classify)?;
        Ok(lost)
    }

    async fn settle(&self, claim: &ClaimRef, outcome: &Outcome) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        let now = self.clock.now();
        match outcome {
            Outcome::Done => match rows::find(&mut tx, claim.key()).await? {
                None => rows::write(&mut tx, &Row::recovered(claim.intent(), now, self.lease)).await?,
                Some(mut row) => {
                    let change = row.complete(claim.nonce(), now);
                    save(&mut tx, &row, change).await?;
                    rows::forget_replies(&mut tx, claim.key()).await?;
                    quarantine::resolve(&mut tx, &self.clock, claim.intent()).await?;
                }
            },
            Outcome::Retry { counts, after, certainty, note } => {
                let mut row = owned(&mut tx, claim.key()).await?;
                let retry = Retry { counts: *counts, after: *after, certainty: *certainty, note };
                let change = row.retry(claim.nonce(), &retry, now);
                save(&mut tx, &row, change).await?;
            }
            Outcome::Quarantine { reason, counts, certainty, detail } => {
                let mut row = owned(&mut tx, claim.key()).await?;
                let verdict = Verdict { reason: *reason, counts: *counts, certainty: *certainty };
                let change = row.quarantine(claim.intent(), &verdict, now);
                save(&mut tx, &row, change).await?;
                if change == Change::Made {
                    self.put_aside(&mut tx, &row, (*reason, detail), claim.intent()).await?;
                }
            }
        }
        tx.commit().await.map_err(classify)
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<ClaimView>, StoreError> {
        let mut db = self.pool.acquire().await.map_err(classify)?;
        let now = self.clock.now();
        let mut views = Vec::with_capacity(keys.len());
        for key in keys {
            views.push(match rows::find(&mut db, *key).await? {
                Some(row) => row.view(now, self.lease),
                None => ClaimView { key: *key, standing: Standing::Absent, nonce: None },
            });
        }
        Ok(views)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Executor, SqlSafeStr};

    use super::*;
    use crate::clock::SystemClock;

    async fn open(folder: &tempfile::TempDir) -> SqliteStore {
        let lease = Lease::new(Duration::from_secs(60));
        let path = folder.path().join("bellhop.db");
        SqliteStore::open(&path, lease, Duration::from_secs(864_000), Arc::new(SystemClock)).await.unwrap()
    }

    #[tokio::test]
    async fn every_statement_can_be_prepared() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let mut db = store.pool.acquire().await.unwrap();

        for statement in statements::ALL {
            let prepared = db.prepare(statement.into_sql_str()).await;
            assert!(prepared.is_ok(), "{statement}: {prepared:?}");
        }
    }

    #[tokio::test]
    async fn what_was_answered_is_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;

        let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&store.pool).await.unwrap();
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&store.pool).await.unwrap();

        assert_eq!((journal.as_str(), synchronous), ("wal", 2));
    }

    #[tokio::test]
    async fn a_dropped_call_leaves_no_transaction_open() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;

        drop(store.begin().await.unwrap());

        drop(store.begin().await.unwrap());
    }
}
