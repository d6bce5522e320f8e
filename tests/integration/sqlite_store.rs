//! The SQLite store: the conformance suite, and what only a file has.

use std::{
    error::Error,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bellhop::{
    claim::Lease,
    clock::{Clock, SystemClock},
    store::{Quarantine, Readiness, StoreError, Upkeep, sqlite::SqliteStore},
    testing::conformance::{self, Bench, Place, Process, Reach, Settings},
};
use tempfile::TempDir;

mod crash;

const LEASE: Lease = Lease::new(Duration::from_secs(60));
const DAYS: Duration = Duration::from_secs(10 * 86_400);

#[derive(Debug)]
struct Files;

#[derive(Debug)]
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("bellhop.db")
    }

    async fn open(&self) -> Result<SqliteStore, StoreError> {
        open(&self.database()).await
    }
}

async fn open(database: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(database, LEASE, DAYS, Arc::new(SystemClock)).await
}

#[async_trait]
impl Bench for Files {
    fn reach(&self) -> Reach {
        Reach::Successors
    }

    fn short_lease(&self) -> Duration {
        Duration::from_millis(300)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    async fn place(&self) -> Box<dyn Place> {
        Box::new(Folder::new())
    }
}

#[async_trait]
impl Place for Folder {
    async fn process(&self, settings: Settings) -> Process {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (lease, retention) = (settings.lease, settings.retention);
        let store = SqliteStore::open(&self.database(), lease, retention, Arc::clone(&clock)).await.unwrap();
        Process::of(store, settings, clock)
    }

    async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}

#[tokio::test]
async fn the_sqlite_store_conforms() {
    conformance::run(&Files, 8).await;
}

#[tokio::test]
async fn a_second_process_is_told_which_database_is_in_use_and_what_to_do() {
    let folder = Folder::new();
    let first = folder.open().await.unwrap();

    let error = folder.open().await.unwrap_err();

    assert!(matches!(error, StoreError::Refused(_)), "{error:?}");
    let text = error.source().unwrap().to_string();
    assert!(text.contains(&*folder.database().to_string_lossy()), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    assert!(text.contains("stop that one first, or give this one a store.path of its own"), "{text}");
    drop(first);
    assert_eq!(folder.open().await.unwrap().prepare().await.unwrap(), Readiness::Ready);
}

#[tokio::test]
async fn a_missing_directory_is_named() {
    let folder = Folder::new();
    let path = folder.0.path().join("missing").join("bellhop.db");

    let error = open(&path).await;

    let text = error.unwrap_err().source().unwrap().to_string();
    assert!(text.contains("missing"), "{text}");
    assert!(text.contains("its directory must exist"), "{text}");
}

#[tokio::test]
async fn what_people_wrote_is_readable_by_this_user_only() {
    let folder = Folder::new();
    let store = folder.open().await.unwrap();
    store.newest(1).await.unwrap();

    let modes: Vec<_> = std::fs::read_dir(folder.0.path())
        .unwrap()
        .map(|file| file.unwrap())
        .map(|file| (file.file_name(), file.metadata().unwrap().permissions().mode() & 0o777))
        .collect();

    assert!(modes.len() >= 2, "{modes:?}");
    assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    drop(folder.open().await.unwrap());
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.database());
    let mut db = sqlx::ConnectOptions::connect(&options).await.unwrap();
    sqlx::query("PRAGMA user_version = 2").execute(&mut db).await.unwrap();
    sqlx::Connection::close(db).await.unwrap();

    let error = folder.open().await.unwrap_err();

    let text = error.source().unwrap().to_string();
    assert!(text.contains("schema version 2, this bellhop knows 1"), "{text}");
}
