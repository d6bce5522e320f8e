//! Migrations and readiness.

use bellhop::{
    secret::Secret,
    store::{Readiness, postgres::migrate},
};

use super::{Database, LONG};

#[tokio::test]
async fn an_empty_database_is_not_ready_until_it_is_migrated() {
    let database = Database::empty().await;
    let url = Secret::from(database.url.as_str());
    let store = database.store(LONG);

    assert_eq!(store.prepare().await.unwrap(), Readiness::SchemaTooOld { found: 0, needed: 2 });
    let before = migrate::status(&url).await.unwrap();
    assert_eq!((before.found, before.pending.len(), before.is_usable()), (0, 2, false));

    let applied = migrate::up(&url).await.unwrap();

    assert_eq!((applied.found, applied.pending, applied.min_code, applied.code), (2, before.pending, 1, 1));
    assert!(migrate::status(&url).await.unwrap().is_usable());
    assert_eq!(store.prepare().await.unwrap(), Readiness::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_may_migrate_at_once() {
    let database = Database::empty().await;
    let url = Secret::from(database.url.as_str());

    let (first, second) = tokio::join!(migrate::up(&url), migrate::up(&url));

    let applied = first.unwrap().pending.len() + second.unwrap().pending.len();
    assert_eq!(applied, 2, "one applied both, the other found nothing to do");
}

#[tokio::test]
async fn the_schema_before_this_one_is_too_old() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    database.execute("UPDATE schema_info SET version = 1").await;

    assert_eq!(store.prepare().await.unwrap(), Readiness::SchemaTooOld { found: 1, needed: 2 });
}

#[tokio::test]
async fn pages_of_claims_are_filled_by_half() {
    let database = Database::migrated().await;

    let options = database.text("SELECT array_to_string(reloptions, ',') FROM pg_class WHERE relname = 'claims'").await;

    assert!(options.split(',').any(|option| option == "fillfactor=50"), "{options}");
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
