//! Many processes at one table.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bellhop::{
    claim::{ClaimIntent, Claimed},
    store::{Guard, StoreError, Swap},
};
use tokio::{task::JoinSet, time::sleep};

use super::{Database, LONG, Process, SHORT, again, event, event_with, events, execute, mine, references, suspect};

/// Asks until there is an answer, as the worker does.
async fn answered(store: &Process, intent: &Arc<ClaimIntent>) -> Claimed {
    loop {
        match store.claim(intent).await {
            Err(StoreError::Contention(_) | StoreError::Unknown(_)) => {}
            answer => return answer.unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_claimers_on_a_thousand_keys_win_each_key_once() {
    let database = Database::migrated().await;
    let events = Arc::new(events(0..1_000));
    let mut claimers = JoinSet::new();

    for _ in 0..4 {
        let store = Arc::new(database.store(LONG));
        for _ in 0..4 {
            let (store, events) = (Arc::clone(&store), Arc::clone(&events));
            claimers.spawn(async move {
                let mut won = 0;
                for event in events.iter() {
                    let answer = answered(&store, &again(event)).await;
                    won += usize::from(matches!(answer, Claimed::Mine(_)));
                }
                won
            });
        }
    }
    let won: usize = claimers.join_all().await.into_iter().sum();

    assert_eq!(won, 1_000);
    assert_eq!(database.number("SELECT count(*) FROM claims WHERE epoch = 1 AND state = 1").await, 1_000);
}

/// How many statements wait for a row lock.
const BLOCKED: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

#[tokio::test(flavor = "multi_thread")]
async fn of_four_claimers_that_saw_the_same_stale_row_one_takes_it_over() {
    let database = Database::migrated().await;
    let lease = Duration::from_secs(6);
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(Arc::new(database.store(lease)));
        mine(&stores[stores.len() - 1], &event()).await;
    }
    sleep(lease).await;
    for strict in [false, true] {
        let event = event_with(|intent| intent.strict = strict);
        mine(&stores[0], &event).await;
        database.execute("UPDATE claims SET lease_until = now() - interval '1 hour' WHERE epoch = 1").await;
        let mut admin = database.admin().await;
        execute(&mut admin, "BEGIN; SELECT 1 FROM claims FOR UPDATE").await;
        let mut claimers = JoinSet::new();
        for store in &stores {
            let (store, event) = (Arc::clone(store), suspect(&event));
            claimers.spawn(async move { answered(&store, &event).await });
        }
        // Each has read the stale row.
        while database.number(BLOCKED).await < 4 {
            sleep(Duration::from_millis(5)).await;
        }
        execute(&mut admin, "COMMIT").await;

        let answers = claimers.join_all().await;

        let won: Vec<_> = answers.iter().filter(|answer| matches!(answer, Claimed::Mine(_))).collect();
        assert!(matches!(won[..], [Claimed::Mine(claim)] if (claim.epoch, claim.lost) == (2, 1)), "{answers:?}");
    }
}

/// In one direction or the other, whatever the direction in which rows are named.
#[tokio::test(flavor = "multi_thread")]
async fn batches_over_the_same_rows_do_not_deadlock() {
    let database = Database::migrated().await;
    // The plan that takes the rows in the order in which they are named.
    let nested = "options[enable_hashjoin]=off&options[enable_mergejoin]=off&options[enable_seqscan]=off";
    let store = Arc::new(database.store_with(LONG, nested));
    let events = events(0..300);
    store.enter(&events).await;
    let done = Arc::new(AtomicBool::new(false));
    let mut others = JoinSet::new();
    for reversed in [false, true] {
        let (other, done, mut claims) = (database.store_with(LONG, nested), Arc::clone(&done), references(&events));
        let swap = |event: &Arc<ClaimIntent>| Swap {
            event: event.event.clone(),
            guard: Guard::Owner(event.nonce),
            next: bellhop::claim::row::Next::first(event, other.lease),
            rider: None,
        };
        let mut swaps: Vec<_> = events.iter().map(swap).collect();
        if reversed {
            claims.reverse();
            swaps.reverse();
        }
        others.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                other.table().renew(&claims).await.unwrap();
                other.table().swap(&swaps).await.unwrap();
            }
        });
    }

    let claims = references(&events);
    for claim in claims[..100].iter().rev() {
        assert_eq!(store.table().complete(&[*claim]).await.unwrap(), [true]);
    }
    while database.number("SELECT count(*) FROM claims WHERE state <> 2").await > 0 {
        store.table().complete(&claims).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    while let Some(other) = others.join_next().await {
        other.unwrap();
    }

    assert_eq!(store.table().renew(&claims).await.unwrap(), vec![false; 300]);
    assert_eq!(database.number(DEADLOCKS).await, 0);
}

/// Both wait for rows that the other has inserted and not committed.
#[tokio::test(flavor = "multi_thread")]
async fn entries_of_the_same_events_do_not_deadlock() {
    let database = Database::migrated().await;
    let mut processes = JoinSet::new();
    let events: Arc<Vec<_>> = Arc::new((0..200).map(|_| events(0..128)).collect());
    for reversed in [false, true] {
        let (store, events) = (database.store(LONG), Arc::clone(&events));
        processes.spawn(async move {
            for batch in events.iter() {
                let mut batch: Vec<_> = batch.iter().map(|event| again(event)).collect();
                if reversed {
                    batch.reverse();
                }
                store.entered(&batch).await;
            }
        });
    }

    processes.join_all().await;

    assert_eq!(database.number("SELECT count(*) FROM claims").await, 200 * 128);
    assert_eq!(database.number(DEADLOCKS).await, 0);
}

const DEADLOCKS: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

/// The commit comes when the claimer has long hung up: nothing bounds it on the server.
#[tokio::test]
async fn a_claim_that_the_server_runs_after_the_client_gave_up_is_still_the_same_attempt() {
    let database = Database::migrated().await;
    let store = database.store(SHORT);
    mine(&store, &event()).await;
    database
        .execute(
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
                PERFORM set_config('client_connection_check_interval', '0', true), pg_sleep(2); RETURN NEW; END$$;
            CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON claims DEFERRABLE INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION slow()",
        )
        .await;
    let event = event_with(|intent| intent.strict = true);

    let cut = store.claim(&event).await;
    assert!(matches!(cut, Err(StoreError::Unknown(_))), "{cut:?}");
    assert_eq!(database.number("SELECT count(*) FROM claims").await, 1);
    while database.number("SELECT count(*) FROM claims").await < 2 {
        sleep(Duration::from_millis(5)).await;
    }

    let claim = mine(&store, &event).await;
    assert_eq!((claim.epoch, claim.lost), (1, 0));
}
