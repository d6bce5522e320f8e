//! Migrations and readiness.

use bellhop::{
    secret::Secret,
    store::{Readiness, Upkeep, postgres::migrate},
};

use super::{Database, LONG};

#[tokio::test]
async fn an_empty_database_is_not_ready_until_it_is_migrated() {
    let database = Database::empty().await;
    let url = Secret::from(database.url.as_str());
    let store = database.store(LONG);

    assert_eq!(store.prepare().await.unwrap(), Readiness::SchemaTooOld { found: 0, needed: 1 });
    let before = migrate::status(&url).await.unwrap();
    assert_eq!((before.found, before.pending.len(), before.is_usable()), (0, 1, false));

    let applied = migrate::up(&url).await.unwrap();

    assert_eq!((applied.found, applied.pending, applied.code), (1, before.pending, 1));
    assert!(migrate::status(&url).await.unwrap().is_usable());
    assert_eq!(store.prepare().await.unwrap(), Readiness::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_may_migrate_at_once() {
    let database = Database::empty().await;
    let url = Secret::from(database.url.as_str());

    let (first, second) = tokio::join!(migrate::up(&url), migrate::up(&url));

    let applied = first.unwrap().pending.len() + second.unwrap().pending.len();
    assert_eq!(applied, 1, "one applied it, the other found nothing to do");
}

#[tokio::test]
async fn a_newer_schema_admits_this_code_until_it_says_otherwise() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    database.execute("UPDATE schema_info SET version = 7, min_code = 1").await;
    assert_eq!(store.prepare().await.unwrap(), Readiness::Ready);

    database.execute("UPDATE schema_info SET version = 8, min_code = 2").await;

    assert_eq!(store.prepare().await.unwrap(), Readiness::CodeTooOld { min_code: 2, mine: 1 });
}
