//! Claims in a SQLite file: one host, one process, no server.
//!
//! A lock file beside the database is held for life, so whoever opens it knows that every earlier owner is dead and
//! takes their events over at once. Each call is one immediate transaction, and so one write to the disk, however many
//! items it has; what has been answered is on disk (WAL, synchronous FULL).

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::DateTime;

use super::{ClaimTable, Entered, Entry, Rider, Seen, StoreError, Swap};
use crate::{
    claim::{
        self, ClaimRef, Key, Lease,
        row::{At, SETTLE_TIME, before},
    },
    clock::{Clock, Steady},
};
use database::{Database, Held};
pub use error::OpenError;
use lock::Lock;
use rows::micros;

mod database;
mod error;
mod lock;
mod quarantine;
mod rows;
mod upkeep;

/// The version of the schema, kept in `user_version`.
const VERSION: i64 = 1;

/// The claims of one process, in a file.
#[derive(Debug)]
pub struct SqliteStore {
    database: Database,
    lease: Lease,
    retention: Duration,
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
        let store = Self { database: Database::new(path, Steady::new(clock)), lease, retention, _lock: lock };
        store.migrate(path).await?;
        Ok(store)
    }

    async fn migrate(&self, path: &Path) -> Result<(), StoreError> {
        let mut db = self.database.begin().await?;
        match find_version(&mut db).await? {
            0 => _ = db.write(sqlx::query(include_str!("sqlite/schema.sql"))).await?,
            VERSION => {}
            found => return Err(OpenError::TooNew { path: path.to_owned(), found }.into()),
        }
        // The lock on the file proves that every earlier owner is dead.
        let over = before(db.now, self.lease.grace() + Duration::from_millis(1));
        let end = sqlx::query("UPDATE claims SET lease_until = ?1 WHERE state = 1 AND lease_until > ?1");
        db.write(end.bind(micros(over))).await?;
        db.commit().await
    }
}

async fn find_version(db: &mut Held<'_>) -> Result<i64, StoreError> {
    let row = db.row(sqlx::query("PRAGMA user_version")).await?;
    row.map_or(Ok(0), |row| rows::get(&row, "user_version"))
}

/// No earlier owner lives, and there is no server: nothing holds a take-over off.
async fn find(db: &mut Held<'_>, key: Key) -> Result<Option<Seen>, StoreError> {
    let row = rows::find(db, key).await?;
    Ok(row.map(|row| Seen { row, now: db.now, held_off: None, server: None }))
}

async fn swap_one(db: &mut Held<'_>, swap: &Swap) -> Result<bool, StoreError> {
    let (row, next) = (rows::find(db, swap.event.key).await?, &swap.next);
    if !swap.guard.holds(row.as_ref()) {
        return Ok(false);
    }
    match &swap.rider {
        Some(Rider::Request { seq, by }) if !quarantine::request(db, *seq, by, next.epoch).await? => return Ok(false),
        Some(Rider::Aside(aside)) => {
            quarantine::add(db, aside, next.epoch, next.nonce, next.strict).await?;
        }
        Some(Rider::Request { .. }) | None => {}
    }
    let written = match row {
        Some(row) => row.after(next, db.now),
        None => next.insert(swap.event.clone(), db.now),
    };
    rows::write(db, &written, true).await
}

async fn complete_one(db: &mut Held<'_>, claim: ClaimRef) -> Result<bool, StoreError> {
    for late in [false, true] {
        let done = sqlx::query(
            "UPDATE claims SET state = 2, finished_at = coalesce(finished_at, ?3)
            WHERE key = ?1 AND nonce = ?2 AND (state <> 1) = ?4",
        );
        let done = done.bind(claim.key.as_uuid()).bind(claim.nonce.as_uuid()).bind(micros(db.now)).bind(late);
        if db.write(done).await? == 1 {
            // Only an attempt that ended otherwise has a payload in quarantine.
            if late {
                quarantine::late_success(db, claim).await?;
            }
            return Ok(true);
        }
    }
    Ok(false)
}

#[async_trait]
impl ClaimTable for SqliteStore {
    async fn enter(&self, entries: &[Entry]) -> Result<Vec<Entered>, StoreError> {
        let mut db = self.database.begin().await?;
        let oldest = before(db.now, claim::fence(self.retention));
        let mut entered = Vec::with_capacity(entries.len());
        for Entry { intent, first } in entries {
            // Most events are new: writing is the cheapest way to find out.
            let row = first.insert(intent.event.clone(), db.now);
            let inserted = intent.born >= oldest && rows::write(&mut db, &row, false).await?;
            let found = if inserted { None } else { find(&mut db, intent.key()).await? };
            let otherwise = if inserted { Entered::Inserted } else { Entered::Old };
            entered.push(found.map(Box::new).map_or(otherwise, Entered::Found));
        }
        db.commit().await?;
        Ok(entered)
    }

    async fn swap(&self, swaps: &[Swap]) -> Result<Vec<bool>, StoreError> {
        let mut db = self.database.begin().await?;
        let mut swapped = Vec::with_capacity(swaps.len());
        for swap in swaps {
            swapped.push(swap_one(&mut db, swap).await?);
        }
        db.commit().await?;
        Ok(swapped)
    }

    async fn complete(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let mut db = self.database.begin().await?;
        let mut completed = Vec::with_capacity(claims.len());
        for claim in claims {
            completed.push(complete_one(&mut db, *claim).await?);
        }
        db.commit().await?;
        Ok(completed)
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let mut db = self.database.begin().await?;
        let whole = At::In(self.lease.length()).apply(None, db.now).unwrap_or(db.now);
        let mut renewed = Vec::with_capacity(claims.len());
        for claim in claims {
            let renew = sqlx::query(
                "UPDATE claims SET lease_until = min(?3, coalesce(deadline + ?4, ?3))
                WHERE key = ?1 AND nonce = ?2 AND state = 1",
            );
            let renew = renew.bind(claim.key.as_uuid()).bind(claim.nonce.as_uuid()).bind(micros(whole));
            renewed.push(db.write(renew.bind(micros(DateTime::UNIX_EPOCH + SETTLE_TIME))).await? == 1);
        }
        db.commit().await?;
        Ok(renewed)
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Seen>>, StoreError> {
        let mut db = self.database.hold().await?;
        let mut rows = Vec::with_capacity(keys.len());
        for key in keys {
            rows.push(find(&mut db, *key).await?);
        }
        db.release();
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;
    use crate::{
        claim::{Budget, ClaimIntent, Identity, Nonce, row::Next},
        clock::SystemClock,
        event::{EventId, Fingerprint},
    };

    const LEASE: Lease = Lease::new(Duration::from_secs(60));

    async fn open(folder: &tempfile::TempDir) -> SqliteStore {
        let path = folder.path().join("bellhop.db");
        SqliteStore::open(&path, LEASE, Duration::from_secs(864_000), Arc::new(SystemClock)).await.unwrap()
    }

    fn entry() -> Entry {
        let key = uuid::Uuid::new_v4();
        let intent = Arc::new(ClaimIntent {
            event: Identity {
                key: Key::from(key),
                event_id: EventId::new(key.to_string()),
                event_type: "MESSAGE".to_owned(),
                fingerprint: Fingerprint([1; 17]),
            },
            nonce: Nonce::random(),
            strict: false,
            budget: Budget { max_failures: 8, max_lost: 3 },
            timeout: Duration::from_secs(60),
            born: Utc::now(),
            suspect: false,
            raw: Arc::default(),
        });
        Entry { first: Next::first(&intent, LEASE), intent }
    }

    async fn ask(store: &SqliteStore, question: &'static str) -> String {
        let mut db = store.database.hold().await.unwrap();
        let answer = db.row(sqlx::query(question)).await.unwrap().unwrap();
        db.release();
        sqlx::Row::try_get_unchecked(&answer, 0).unwrap()
    }

    #[tokio::test]
    async fn what_was_answered_is_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;

        let journal = ask(&store, "PRAGMA journal_mode").await;
        let synchronous = ask(&store, "PRAGMA synchronous").await;

        assert_eq!((&*journal, &*synchronous), ("wal", "2"));
    }

    #[tokio::test]
    async fn a_dropped_call_leaves_no_transaction_open() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        let mut dropped = store.database.begin().await.unwrap();
        let first = entry();
        let row = first.first.insert(first.intent.event.clone(), dropped.now);
        assert!(rows::write(&mut dropped, &row, false).await.unwrap());

        drop(dropped);

        assert!(matches!(store.enter(&[first]).await.unwrap()[..], [Entered::Inserted]));
    }

    #[tokio::test]
    async fn after_a_full_disk_is_cleared_everything_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder).await;
        // One megabyte; it lasts as long as the connection.
        assert_eq!(ask(&store, "PRAGMA max_page_count = 250").await, "250");

        let refused = loop {
            let batch: Vec<_> = (0..128).map(|_| entry()).collect();
            if let Err(error) = store.enter(&batch).await {
                assert!(matches!(error, StoreError::Unknown(_)), "{error:?}");
                break batch;
            }
        };

        let entered = store.enter(&refused).await.unwrap();
        assert!(entered.iter().all(|entered| matches!(entered, Entered::Inserted)), "{entered:?}");
        let all: Vec<_> = refused.iter().map(|entry| entry.intent.reference()).collect();
        assert_eq!(store.complete(&all).await.unwrap(), [true; 128]);
    }
}
