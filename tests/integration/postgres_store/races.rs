//! Many processes at one table.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bellhop::{
    claim::{Claimed, Step},
    outcome::Outcome,
    store::{ClaimStore, StoreError},
};
use tokio::{task::JoinSet, time::sleep};

use super::{Database, LONG, SHORT, again, event, event_with, mine, named, suspect};

/// Asks until there is an answer, as the worker does.
async fn answered(
    store: &bellhop::store::postgres::PostgresStore,
    intent: &Arc<bellhop::claim::ClaimIntent>,
) -> Claimed {
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
    let events: Arc<Vec<_>> = Arc::new((0..1_000).map(|_| event()).collect());
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
    let lease = Duration::from_secs(2);
    let store = Arc::new(database.settled_store(lease).await);
    for strict in [false, true] {
        let event = event_with(|intent| intent.strict = strict);
        mine(&store, &event).await;
        database.execute("UPDATE claims SET lease_until = now() - interval '1 hour' WHERE epoch = 1").await;
        let mut admin = database.admin().await;
        super::execute(&mut admin, "BEGIN; SELECT 1 FROM claims FOR UPDATE").await;
        let mut claimers = JoinSet::new();
        for _ in 0..4 {
            let (store, event) = (Arc::clone(&store), suspect(&event));
            claimers.spawn(async move { answered(&store, &event).await });
        }
        // Each has its snapshot, in which the row is stale.
        while database.number(BLOCKED).await < 4 {
            sleep(Duration::from_millis(5)).await;
        }
        super::execute(&mut admin, "COMMIT").await;

        let answers = claimers.join_all().await;

        let won: Vec<_> = answers.iter().filter(|answer| matches!(answer, Claimed::Mine(_))).collect();
        assert!(matches!(won[..], [Claimed::Mine(claim)] if (claim.epoch, claim.lost) == (2, 1)), "{answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_and_completions_of_the_same_claims_do_not_deadlock() {
    let database = Database::migrated().await;
    let store = Arc::new(database.store(LONG));
    let mut claims = Vec::new();
    for _ in 0..300 {
        claims.push(mine(&store, &event()).await.reference());
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut renewers = JoinSet::new();
    // The plan that takes the rows in the order in which they are named.
    let nested = "options[enable_hashjoin]=off&options[enable_mergejoin]=off&options[enable_seqscan]=off";
    for reversed in [false, true] {
        let (other, done) = (database.store_with(LONG, nested), Arc::clone(&done));
        let mut claims = claims.clone();
        if reversed {
            claims.reverse();
        }
        renewers.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                other.renew(&claims).await.unwrap();
            }
        });
    }

    for claim in claims.iter().rev() {
        store.settle(claim, &Outcome::Done).await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    while let Some(renewer) = renewers.join_next().await {
        renewer.unwrap();
    }

    assert_eq!(store.renew(&claims).await.unwrap().len(), 300);
}

#[tokio::test]
async fn a_claim_that_the_server_runs_after_the_client_gave_up_is_still_the_same_attempt() {
    let database = Database::migrated().await;
    let store = database.store(SHORT);
    mine(&store, &event()).await;
    let mut admin = database.admin().await;
    super::execute(&mut admin, "BEGIN; LOCK TABLE claims IN SHARE MODE").await;
    let event = event_with(|intent| intent.strict = true);

    let cut = store.claim(&event).await;
    assert!(matches!(cut, Err(StoreError::Unknown(_))), "{cut:?}");
    super::execute(&mut admin, "COMMIT").await;
    while database.number("SELECT count(*) FROM claims").await < 2 {
        sleep(Duration::from_millis(5)).await;
    }

    let claim = mine(&store, &event).await;
    assert_eq!((claim.epoch, claim.lost), (1, 0));
}

#[tokio::test]
async fn claims_and_their_ends_are_hot_updates() {
    let database = Database::migrated().await;
    let store = database.store(LONG);

    for _ in 0..300 {
        let event = event_with(|intent| intent.strict = true);
        let claim = mine(&store, &event).await;
        store.advance(&claim, &Step::Started).await.unwrap();
        assert!(store.renew(&[claim.reference()]).await.unwrap().is_empty());
        store.settle(&named(&event), &Outcome::Done).await.unwrap();
    }
    drop(store);

    let share = "SELECT (100 * n_tup_hot_upd / greatest(n_tup_upd, 1))::bigint FROM pg_stat_user_tables
        WHERE relname = 'claims' AND n_tup_upd >= 900";
    let share = loop {
        let known: Option<i64> = sqlx::query_scalar(share).fetch_optional(&mut database.admin().await).await.unwrap();
        match known {
            Some(share) => break share,
            None => sleep(Duration::from_millis(50)).await,
        }
    };
    assert!(share >= 93, "{share} % of the updates were HOT");
}
