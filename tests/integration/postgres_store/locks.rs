//! Statements that wait for locks, and connections in use.

use std::{sync::Arc, time::Duration};

use bellhop::{metrics::Metrics, store::StoreError};
use tokio::{task::JoinSet, time::sleep};

use super::{
    super::harness::{eventually, wait::when},
    Database, LONG, Process, SHORT, event, execute, mine,
};

/// Backends of bellhop's that wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'bellhop' AND wait_event_type = 'Lock'";

/// A client timeout of 0.8 s; the server gives up a lock after half of that.
async fn hold_out(database: &Database, stores: &[Arc<Process>]) {
    let mut callers = JoinSet::new();
    for store in stores {
        for _ in 0..20 {
            let store = Arc::clone(store);
            callers.spawn(async move { store.claim(&event()).await });
        }
    }
    eventually("claims to wait for the lock", LONG, async || when(database.number(WAITING).await > 0)).await;
    while let Some(answer) = callers.join_next().await {
        let answer = answer.unwrap();
        assert!(matches!(answer, Err(StoreError::Contention(_))), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_backend_waits_for_a_lock_longer_than_its_client() {
    let database = Database::migrated().await;
    let direct = || Arc::new(database.store(SHORT));
    let pooled = || Arc::new(database.store_with(SHORT, "statement-cache-capacity=0"));
    for stores in [[direct(), direct()], [pooled(), pooled()]] {
        for store in &stores {
            mine(store, &event()).await;
        }
        let mut admin = database.admin().await;
        execute(&mut admin, "BEGIN; LOCK TABLE claims IN ACCESS EXCLUSIVE MODE").await;

        for _ in 0..3 {
            hold_out(&database, &stores).await;
        }

        assert_eq!(database.number(WAITING).await, 0);
        execute(&mut admin, "ROLLBACK").await;
        for store in &stores {
            mine(store, &event()).await;
        }
    }
}

/// What the server was told on a connection of this store.
async fn told(database: &Database, store: &Process) -> String {
    database
        .execute(
            "CREATE OR REPLACE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
                NEW.event_type := concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'),
                    current_setting('client_connection_check_interval'),
                    current_setting('idle_in_transaction_session_timeout'));
                RETURN NEW; END$$;
            CREATE OR REPLACE TRIGGER told BEFORE INSERT ON claims FOR EACH ROW EXECUTE FUNCTION told()",
        )
        .await;
    let event = event();
    mine(store, &event).await;
    store.row(&event).await.event.event_type
}

#[tokio::test]
async fn the_server_is_less_patient_than_its_client() {
    let database = Database::migrated().await;

    let direct = told(&database, &database.store(LONG)).await;
    let pooled = told(&database, &database.store_with(LONG, "statement-cache-capacity=0")).await;

    // The client's own patience is 5 s.
    assert_eq!((direct.as_str(), pooled.as_str()), ("2500ms 3750ms 5s 0", "2500ms 3750ms 0 20s"));
}

#[tokio::test]
async fn a_server_that_refuses_start_up_options_is_used_as_through_a_pooler() {
    let database = Database::migrated().await;
    let store = database.store_with(LONG, "options[no_such_setting]=1");

    let refused = store.claim(&event()).await;

    assert!(matches!(&refused, Err(StoreError::Refused(_))), "the URL's own option stays: {refused:?}");
}

#[tokio::test]
async fn connections_are_shown_by_what_they_are_for_and_whether_they_are_busy() {
    let database = Database::migrated().await;
    let metrics = Metrics::new().unwrap();
    let store = Arc::new(database.store_into(LONG, &metrics));
    let shown = |pool, state| metrics.db_pool_connections.with_label_values(&[pool, state]).get();
    let work = || (shown("work", "max"), shown("work", "in_use"), shown("work", "idle"));
    assert_eq!(work(), (4, 0, 0));
    let held = mine(&store, &event()).await;
    assert_eq!(work(), (4, 0, 1));
    assert_eq!(store.renew(std::slice::from_ref(&held)).await.unwrap().renewed, [held.reference()]);
    assert_eq!((shown("renewal", "max"), shown("renewal", "in_use"), shown("renewal", "idle")), (1, 0, 1));

    let mut locker = database.admin().await;
    execute(&mut locker, "BEGIN; LOCK TABLE claims IN EXCLUSIVE MODE").await;
    let mut waiting = JoinSet::new();
    let claimer = Arc::clone(&store);
    waiting.spawn(async move { claimer.claim(&event()).await.map(drop) });
    eventually("the claim to wait for the lock", LONG, async || when(work() == (4, 1, 0))).await;
    execute(&mut locker, "ROLLBACK").await;

    waiting.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(work(), (4, 0, 1));
    assert!(metrics.db_acquire_duration.with_label_values(&["work"]).get_sample_count() >= 2);
}

#[tokio::test]
async fn a_vanished_client_does_not_keep_its_backend() {
    let database = Database::migrated().await;
    let store = database.store(SHORT);
    mine(&store, &event()).await;
    // Nothing bounds a statement's commit but the client's presence.
    database
        .execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                $$BEGIN PERFORM pg_sleep(60); RETURN NEW; END$$;
            CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON claims DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION slow()",
        )
        .await;

    let cut = store.claim(&event()).await;
    assert!(matches!(cut, Err(StoreError::Unknown(_))), "{cut:?}");

    let busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
        AND application_name = 'bellhop'";
    eventually("the backend to end", Duration::from_secs(20), async || when(database.number(busy).await == 0)).await;
    sleep(SHORT).await;
    assert_eq!(database.number("SELECT count(*) FROM claims").await, 1);
}
