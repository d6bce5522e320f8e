//! One event through its states.

use bellhop::{
    claim::{Claimed, Phase, State, Step, StoredReply, Wait},
    metrics::Metrics,
    outcome::{Certainty, Detail, Outcome, Reason},
    store::{ClaimLog, ClaimStore, Requeued, StoreError, Upkeep},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::sleep};

use super::{
    super::harness::{eventually, wait::when},
    DAYS_10, Database, LONG, SHORT, again, assert_waits, event, event_with, execute, mine, named, strict_event,
    suspect,
};

fn quarantine(certainty: Certainty) -> Outcome {
    Outcome::Quarantine { reason: Reason::Permanent, counts: true, certainty, detail: Detail::new(b"no") }
}

#[tokio::test]
async fn the_same_intent_sent_twice_is_one_attempt() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event();

    mine(&store, &event).await;
    let claim = mine(&store, &event).await;

    assert_eq!((claim.epoch, claim.lost, claim.phase), (1, 0, Phase::MayHaveRun));
    assert_waits(&store.claim(&again(&event)).await.unwrap(), Wait::Running);
}

#[tokio::test]
async fn a_dead_owner_is_taken_over_after_lease_and_grace_with_the_suspect_permit() {
    let database = Database::migrated().await;
    let store = database.settled_store(SHORT).await;
    let event = event();
    mine(&store, &event).await;
    let Claimed::Wait { wake_in, why: Wait::Running } = store.claim(&again(&event)).await.unwrap() else {
        panic!("the lease lives");
    };
    assert!(wake_in <= SHORT + SHORT / 12);
    sleep(wake_in + Duration::from_millis(5)).await;

    assert_waits(&store.claim(&again(&event)).await.unwrap(), Wait::Suspect);
    let claim = mine(&store, &suspect(&event)).await;

    assert_eq!((claim.epoch, claim.lost, claim.failures), (2, 1, 0));
    assert!(matches!(store.settle(&named(&event), &quarantine(Certainty::Over)).await, Err(StoreError::ClaimLost)));
    assert!(matches!(store.settle(&named(&event), &Outcome::Done).await, Err(StoreError::ClaimLost)));
}

#[tokio::test]
async fn a_strict_event_is_taken_over_before_its_start_and_quarantined_after() {
    let database = Database::migrated().await;
    let store = database.settled_store(SHORT).await;
    let event = strict_event();
    let first = mine(&store, &event).await;
    assert_eq!(first.phase, Phase::NotBegun);
    sleep(SHORT * 2).await;

    let second = mine(&store, &suspect(&event)).await;
    assert_eq!((second.epoch, second.lost, second.phase), (2, 1, Phase::NotBegun));
    assert!(matches!(store.advance(&first, &Step::Started).await, Err(StoreError::ClaimLost)));
    store.advance(&second, &Step::Started).await.unwrap();
    sleep(SHORT * 2).await;

    let answer = store.claim(&again(&event)).await.unwrap();
    assert!(matches!(answer, Claimed::Quarantined { reason: Reason::OwnerLost, fresh: true }), "{answer:?}");
    let answer = store.claim(&again(&event)).await.unwrap();
    assert!(matches!(answer, Claimed::Quarantined { reason: Reason::OwnerLost, fresh: false }), "{answer:?}");
    assert_eq!(database.text("SELECT encode(payload, 'escape') FROM quarantine").await.as_bytes(), event.raw.data);
}

#[tokio::test]
async fn a_rerun_claimer_does_not_loosen_a_strict_row() {
    let database = Database::migrated().await;
    let store = database.settled_store(SHORT).await;
    let event = strict_event();
    let claim = mine(&store, &event).await;
    store.advance(&claim, &Step::Started).await.unwrap();
    sleep(SHORT * 2).await;

    let mut loose = (*suspect(&event)).clone();
    loose.strict = false;
    let answer = store.claim(&Arc::new(loose)).await.unwrap();

    assert!(matches!(answer, Claimed::Quarantined { reason: Reason::OwnerLost, .. }), "{answer:?}");
}

#[tokio::test]
async fn a_late_success_is_recorded_over_owner_lost_and_settles_its_row() {
    let database = Database::migrated().await;
    let store = database.settled_store(SHORT).await;
    let event = strict_event();
    let claim = mine(&store, &event).await;
    store.advance(&claim, &Step::Started).await.unwrap();
    sleep(SHORT * 2).await;
    assert!(matches!(store.claim(&again(&event)).await.unwrap(), Claimed::Quarantined { .. }));

    store.settle(&named(&event), &Outcome::Done).await.unwrap();

    assert_eq!(store.show(event.key).await.unwrap().unwrap().state, State::Done);
    assert_eq!(database.text("SELECT resolution FROM quarantine WHERE settled_at IS NOT NULL").await, "late_success");
}

#[tokio::test]
async fn the_completion_of_an_event_does_not_settle_the_mismatches_under_its_nonce() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event();
    mine(&store, &event).await;
    for forged in ["a", "b", "a"] {
        let mut intent = (*again(&event)).clone();
        intent.fingerprint.0[3] ^= 1;
        intent.raw = Arc::new(bellhop::event::RawEvent { data: Bytes::from(forged), ..Default::default() });
        assert_waits(&store.claim(&Arc::new(intent)).await.unwrap(), Wait::Mismatch);
    }

    store.settle(&named(&event), &Outcome::Done).await.unwrap();

    assert_eq!(database.number("SELECT count(*) FROM quarantine WHERE settled_at IS NULL").await, 2);
}

#[tokio::test]
async fn a_reply_is_posted_by_the_next_owner_without_the_handler() {
    let database = Database::migrated().await;
    let store = database.settled_store(SHORT).await;
    let event = strict_event();
    let claim = mine(&store, &event).await;
    store.advance(&claim, &Step::Started).await.unwrap();
    let reply = StoredReply { ordinal: 0, body: Bytes::from_static(b"{\"text\":\"a\\u0000b\"}\0") };
    store.advance(&claim, &Step::ReplyPending(vec![reply.clone()])).await.unwrap();
    sleep(SHORT * 2).await;

    // No suspect permit is needed: the handler is not called.
    let next = mine(&store, &again(&event)).await;

    assert_eq!((next.epoch, next.lost, next.phase), (2, 0, Phase::ReplyPending));
    assert_eq!(next.replies, [reply]);
    assert_eq!(store.look(&[event.key]).await.unwrap()[0].nonce, Some(next.intent.nonce));
}

#[tokio::test]
async fn an_event_older_than_retention_is_put_aside_once_and_can_be_put_back() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event_with(|intent| intent.born -= DAYS_10);

    let first = store.claim(&event).await.unwrap();
    let repeated = store.claim(&event).await.unwrap();
    let copy = store.claim(&again(&event)).await.unwrap();

    assert!(matches!(first, Claimed::Quarantined { reason: Reason::TooOld, fresh: true }), "{first:?}");
    for answer in [repeated, copy] {
        assert!(matches!(answer, Claimed::Quarantined { reason: Reason::TooOld, fresh: false }), "{answer:?}");
    }
    let rows = store.quarantined(10).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(store.requeue(rows[0].seq, "ops").await.unwrap(), Requeued::Yes);
    assert_eq!(mine(&store, &again(&event)).await.epoch, 3);
}

#[tokio::test]
async fn a_requeued_row_is_the_delivery_until_it_is_closed() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event();
    mine(&store, &event).await;
    store.settle(&named(&event), &quarantine(Certainty::Open)).await.unwrap();
    let seq = store.quarantined(1).await.unwrap()[0].seq;

    // Its handler may run until the deadline it was promised.
    assert_eq!(store.requeue(seq, "ops").await.unwrap(), Requeued::MayStillRun);
    database.execute("UPDATE claims SET deadline = now() - interval '1 s'").await;
    assert_eq!(store.requeue(seq, "ops").await.unwrap(), Requeued::Yes);

    let due = store.replayable(10).await.unwrap();
    assert_eq!((due.len(), due[0].requests, due[0].seq), (1, 1, seq));
    assert_eq!(due[0].raw.as_ref().unwrap().data, event.raw.data);
    let replay = again(&event);
    // The requeue is an epoch, and so is the attempt.
    assert_eq!(mine(&store, &replay).await.epoch, 3);
    assert!(store.replayable(10).await.unwrap().is_empty(), "somebody is at it");
    store.settle(&named(&replay), &Outcome::Done).await.unwrap();
    assert_eq!(store.replayable(10).await.unwrap().len(), 1, "final, but not yet answered");
    assert!(store.close(seq, "replayed").await.unwrap());
    assert!(store.replayable(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_quarantined_event_is_put_back_after_its_claim_was_forgotten() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event();
    mine(&store, &event).await;
    store.settle(&named(&event), &quarantine(Certainty::Over)).await.unwrap();
    database.execute("UPDATE claims SET first_seen_at = now() - interval '11 days'").await;
    assert_eq!(store.expire(DAYS_10).await.unwrap(), 1);
    let seq = store.quarantined(1).await.unwrap()[0].seq;

    assert_eq!(store.requeue(seq, "ops").await.unwrap(), Requeued::Yes);

    // However old the event is by now.
    let old = event_with(|intent| {
        *intent = (*again(&event)).clone();
        intent.born -= DAYS_10;
    });
    assert_eq!(mine(&store, &old).await.epoch, 3);
}

#[tokio::test]
async fn retention_forgets_what_is_finished_and_settled_and_nothing_else() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let [done, running, resting, open, closed, requeued] = [(); 6].map(|()| event());
    for event in [&done, &running, &resting, &open, &closed, &requeued] {
        mine(&store, event).await;
    }
    store.settle(&named(&done), &Outcome::Done).await.unwrap();
    let retry = Outcome::Retry {
        counts: true,
        after: None,
        certainty: Certainty::Over,
        note: bellhop::outcome::Note::new("x"),
    };
    store.settle(&named(&resting), &retry).await.unwrap();
    let mut seqs = Vec::new();
    for event in [&open, &closed, &requeued] {
        store.settle(&named(event), &quarantine(Certainty::Over)).await.unwrap();
        seqs.push(store.quarantined(1).await.unwrap()[0].seq);
    }
    assert!(store.close(seqs[1], "seen").await.unwrap());
    assert_eq!(store.requeue(seqs[2], "ops").await.unwrap(), Requeued::Yes);
    database
        .execute("UPDATE claims SET first_seen_at = now() - interval '1 year', lease_until = now() - interval '1 year'")
        .await;
    database.execute("UPDATE quarantine SET quarantined_at = now() - interval '1 year'").await;

    // Three claims (done, open, closed) and one quarantine row (closed).
    assert_eq!(store.expire(DAYS_10).await.unwrap(), 4);

    for (event, kept) in [(&done, false), (&running, true), (&resting, true), (&open, false), (&requeued, true)] {
        assert_eq!(store.show(event.key).await.unwrap().is_some(), kept);
    }
    assert_eq!(database.number("SELECT count(*) FROM quarantine WHERE payload IS NOT NULL").await, 2);
    let counts = store.counts().await.unwrap();
    assert_eq!(counts.quarantined, [(Reason::Permanent, 2)]);
    assert_eq!((counts.stale, counts.stranded), (1, 1));
}

#[tokio::test]
async fn hostile_text_in_an_event_does_not_stop_its_settling() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event_with(|intent| {
        intent.event_type = "addon:\0\u{1b}[31m".repeat(500);
        let mut raw = (*intent.raw).clone();
        raw.data = Bytes::from(vec![0; 10_000_000]);
        raw.message_id = "a\0b".to_owned();
        raw.attributes.insert("k\0".to_owned(), "\u{fffe}\0".to_owned());
        intent.raw = Arc::new(raw);
        intent.born = chrono::DateTime::<chrono::Utc>::MAX_UTC;
    });
    mine(&store, &event).await;

    store.settle(&named(&event), &quarantine(Certainty::Over)).await.unwrap();

    let seq = store.quarantined(1).await.unwrap()[0].seq;
    assert_eq!(store.requeue(seq, "o\0ps").await.unwrap(), Requeued::Yes);
    let raw = store.replayable(1).await.unwrap()[0].raw.clone().unwrap();
    assert_eq!((&raw.data, &raw.attributes), (&event.raw.data, &event.raw.attributes));
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
    assert!(store.renew(&[held.reference()]).await.unwrap().is_empty());
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
