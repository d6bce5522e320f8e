//! Many events in one statement.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bellhop::{
    claim::{ClaimIntent, Claimed, row::Next},
    outcome::Outcome,
    secret::Secret,
    store::{Entered, Guard, StoreError, Swap, postgres::migrate},
};
use futures::future::join_all;
use tokio::time::sleep;

use super::{
    super::harness::Postgres, Database, LONG, Process, again, event_with, events, execute, mine, references,
    strict_event,
};

fn copies(events: &[Arc<ClaimIntent>]) -> Vec<Arc<ClaimIntent>> {
    events.iter().map(|event| again(event)).collect()
}

fn started(store: &Process, events: &[Arc<ClaimIntent>]) -> Vec<Swap> {
    let swap = |event: &Arc<ClaimIntent>| Swap {
        event: event.event.clone(),
        guard: Guard::Owner(event.nonce),
        next: Next::first(event, store.lease),
        rider: None,
    };
    events.iter().map(swap).collect()
}

/// Bytes of WAL that `work` writes. The server's own now and then come in between: the least of a few.
async fn wal_of(database: &Database, mut work: impl AsyncFnMut()) -> i64 {
    const WAL: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    let mut least = i64::MAX;
    for _ in 0..5 {
        let before = database.number(WAL).await;
        work().await;
        least = least.min(database.number(WAL).await - before);
    }
    least
}

#[tokio::test]
async fn copies_and_repeated_completions_write_nothing() {
    // WAL is counted for the whole server.
    let (_server, database) = own_server().await;
    let store = database.store(LONG);
    let events = events(0..128);
    store.enter(&events).await;
    let claims = references(&events);
    assert_eq!(store.table().complete(&claims).await.unwrap(), vec![true; 128]);
    database.execute("VACUUM claims").await;

    let copied = wal_of(&database, async || {
        for entered in store.entered(&copies(&events)).await {
            assert!(matches!(entered, Entered::Found(_)), "{entered:?}");
        }
        assert!(matches!(store.entered(&copies(&events[..1])).await[..], [Entered::Found(_)]));
    });
    assert_eq!(copied.await, 0);
    let repeated = wal_of(&database, async || {
        assert_eq!(store.table().complete(&claims).await.unwrap(), vec![true; 128]);
        assert_eq!(store.table().complete(&claims[..1]).await.unwrap(), [true]);
    });
    assert_eq!(repeated.await, 0);
    let refused = wal_of(&database, async || {
        assert_eq!(store.table().swap(&started(&store, &events)).await.unwrap(), vec![false; 128]);
    });
    assert_eq!(refused.await, 0);
}

#[tokio::test]
async fn a_locked_row_does_not_hold_its_neighbours() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let events = events(0..128);
    store.enter(&events).await;
    let mut admin = database.admin().await;
    let lock = format!("BEGIN; SELECT 1 FROM claims WHERE key = '{}' FOR UPDATE", events[77].key().as_uuid());
    execute(&mut admin, &lock).await;
    let claims = references(&events);
    let all_but_one: Vec<bool> = (0..128).map(|place| place != 77).collect();

    assert_eq!(store.table().swap(&started(&store, &events)).await.unwrap(), all_but_one);
    assert_eq!(store.table().renew(&claims).await.unwrap(), all_but_one);
    assert_eq!(store.table().complete(&claims).await.unwrap(), all_but_one);

    let alone = store.table().complete(&claims[77..78]).await;
    assert!(matches!(alone, Err(StoreError::Contention(_))), "one alone waits for the lock: {alone:?}");
    execute(&mut admin, "COMMIT").await;
    assert_eq!(store.table().complete(&claims[77..78]).await.unwrap(), [true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poisoned_event_fails_alone() {
    let database = Database::migrated().await;
    for code in ["22003", "23514"] {
        let poison = format!(
            "CREATE OR REPLACE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS
                $$BEGIN RAISE EXCEPTION 'poison' USING ERRCODE = '{code}'; END$$;
            CREATE OR REPLACE TRIGGER poison BEFORE INSERT OR UPDATE ON claims FOR EACH ROW
                WHEN (NEW.event_type = 'POISON') EXECUTE FUNCTION poison()"
        );
        database.execute(&poison).await;
        let store = database.store(LONG);
        let mut events = events(0..100);
        events[33] = event_with(|intent| intent.event.event_type = "POISON".to_owned());
        let entry = |event: &Arc<ClaimIntent>| bellhop::store::Entry {
            intent: Arc::clone(event),
            first: Next::first(event, store.lease),
        };
        let refused = store.table().enter(&events.iter().map(entry).collect::<Vec<_>>()).await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
        assert_eq!(store.look(&[events[0].key()]).await.unwrap(), [bellhop::claim::Standing::Absent]);

        let answers = join_all(events.iter().map(|event| store.claim(event))).await;

        for (place, answer) in answers.iter().enumerate() {
            match answer {
                Ok(Claimed::Mine(_)) => assert_ne!(place, 33, "{code}"),
                Err(StoreError::Refused(_)) => assert_eq!(place, 33, "{code}"),
                other => panic!("{place}: {other:?}"),
            }
        }
    }
}

/// A server without neighbours.
async fn own_server() -> (Postgres, Database) {
    let server = Postgres::own().await;
    let database = Database { url: format!("{}?", server.url()) };
    migrate::up(&Secret::from(database.url.as_str())).await.unwrap();
    (server, database)
}

/// Updates of claims so far, and how many of them were HOT, once `expected` of them are known.
async fn hot_share(database: &Database, expected: i64) -> i64 {
    loop {
        let known: (i64, i64) =
            sqlx::query_as("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'claims'")
                .fetch_one(&mut database.admin().await)
                .await
                .unwrap();
        if known.0 >= expected {
            assert_eq!(known.0, expected);
            return 100 * known.1 / known.0;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn claims_and_their_ends_are_hot_updates_one_by_one() {
    // Dead rows are kept for the snapshots of neighbours.
    let (_server, database) = own_server().await;
    let store = database.store(LONG);

    for _ in 0..300 {
        let claim = mine(&store, &strict_event()).await;
        store.start(&claim).await.unwrap();
        assert_eq!(store.renew(std::slice::from_ref(&claim)).await.unwrap().renewed, [claim.reference()]);
        store.settle(&claim, &Outcome::Done).await.unwrap();
    }
    drop(store);

    let share = hot_share(&database, 900).await;
    assert!(share > 95, "{share} % of the updates were HOT");
}

/// What one transaction made dead on a page it cannot use itself: a page needs room for all that change at once. Here
/// that is two of three rows.
#[tokio::test]
async fn claims_and_their_ends_are_hot_updates_in_batches() {
    // Dead rows are kept for the snapshots of neighbours.
    let (_server, database) = own_server().await;
    let store = database.store(LONG);
    let mut running: Vec<Arc<ClaimIntent>> = Vec::new();
    let mut updates = 0;

    for round in 0..50 {
        let fresh = events(0..128);
        store.enter(&fresh).await;
        assert_eq!(store.table().swap(&started(&store, &fresh[..32])).await.unwrap(), [true; 32]);
        running.extend(fresh);
        let stays: HashSet<_> = running.iter().skip(round % 3).step_by(3).map(|event| event.key()).collect();
        let done: Vec<_> = running.extract_if(.., |event| !stays.contains(&event.key())).collect();
        let claims = references(&done);
        assert_eq!(store.table().renew(&claims).await.unwrap(), vec![true; done.len()]);
        assert_eq!(store.table().complete(&claims).await.unwrap(), vec![true; done.len()]);
        updates += 32 + 2 * i64::try_from(done.len()).unwrap();
    }
    drop(store);

    let share = hot_share(&database, updates).await;
    assert!(share > 95, "{share} % of {updates} updates were HOT");
}
