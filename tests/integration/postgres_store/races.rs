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

#[tokio::test(flavor = "multi_thread")]
async fn twelve_claimers_on_stale_keys_take_each_over_once() {
    let database = Database::migrated().await;
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(Arc::new(database.settled_store(Duration::from_millis(700)).await));
    }
    let events: Arc<Vec<_>> = Arc::new((0..50).map(|_| event()).collect());
    for event in events.iter() {
        mine(&stores[0], event).await;
    }
    database.execute("UPDATE claims SET lease_until = now() - interval '1 hour'").await;
    let mut claimers = JoinSet::new();

    for store in stores.iter().cycle().take(12) {
        let (store, events) = (Arc::clone(store), Arc::clone(&events));
        claimers.spawn(async move {
            let mut won = 0;
            for event in events.iter() {
                let answer = answered(&store, &suspect(event)).await;
                won += usize::from(matches!(answer, Claimed::Mine(claim) if claim.epoch == 2 && claim.lost == 1));
            }
            won
        });
    }
    let won: usize = claimers.join_all().await.into_iter().sum();

    assert_eq!(won, 50);
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
    for turn in 0..2 {
        let (other, done) = (database.store(LONG), Arc::clone(&done));
        let mut claims = claims.clone();
        // Whatever order the caller has them in.
        claims.rotate_left(turn * 100);
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
