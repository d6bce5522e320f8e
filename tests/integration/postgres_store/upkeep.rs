//! What is counted, what is forgotten, and what columns can hold.

use std::sync::Arc;

use bellhop::{
    claims::Requeued,
    outcome::{Certainty, Note, Outcome, Reason},
};
use bytes::Bytes;

use super::{DAYS_10, Database, LONG, Process, event, event_with, mine, put_aside};

async fn idle(store: &Process) -> (u64, u64) {
    let counts = store.counts().await.unwrap();
    (counts.stale, counts.stranded)
}

/// Rows that were handled in the last half hour, one each 10 ms.
const NEWER: &str = "INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce,
        lease_until, first_seen_at, finished_at)
    SELECT gen_random_uuid(), 'e' || n, 'MESSAGE', '\\x01', 2, 1, false, 1, gen_random_uuid(), now(),
        now() - interval '2 min' - n * interval '10 ms', now()
    FROM generate_series(1, 150000) AS n";

#[tokio::test]
async fn what_is_stranded_is_found_however_many_are_newer() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let [stranded, stale, waiting, done] = [(); 4].map(|()| event());
    for event in [&stranded, &stale] {
        mine(&store, event).await;
    }
    database
        .execute(
            "UPDATE claims SET lease_until = now() - interval '2 hours', first_seen_at = now() - interval '3 hours'",
        )
        .await;
    let later = format!(
        "UPDATE claims SET lease_until = now() - interval '10 min', first_seen_at = now() - interval '15 min'
        WHERE key = '{}'",
        stale.key().as_uuid()
    );
    database.execute(&later).await;
    let claim = mine(&store, &waiting).await;
    let retry = Outcome::Retry { counts: true, after: Some(LONG), certainty: Certainty::Over, note: Note::new("x") };
    store.settled(&claim, &retry).await;
    let claim = mine(&store, &done).await;
    store.settled(&claim, &Outcome::Done).await;
    database.execute("UPDATE claims SET first_seen_at = now() - interval '20 min' WHERE state > 1").await;
    database.execute(NEWER).await;

    assert_eq!(idle(&store).await, (2, 1));

    // What is remembered is read again: it strands, or it ends.
    database.execute("UPDATE claims SET not_before = now() - interval '2 hours' WHERE state = 3").await;
    assert_eq!(idle(&store).await, (2, 2));
    database.execute("UPDATE claims SET state = 2 WHERE state = 1").await;
    assert_eq!(idle(&store).await, (0, 1));
    database.execute("DELETE FROM claims WHERE state = 3").await;
    assert_eq!(idle(&store).await, (0, 0));
}

#[tokio::test]
async fn what_comes_of_age_is_looked_at_and_what_is_young_is_not() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    assert_eq!(idle(&store).await, (0, 0));
    mine(&store, &event()).await;
    database.execute("UPDATE claims SET lease_until = now() - interval '1 hour'").await;

    assert_eq!(idle(&store).await, (0, 0), "a row this young cannot be stale");
    database.execute("UPDATE claims SET first_seen_at = now() - interval '66 s'").await;
    assert_eq!(idle(&store).await, (1, 0), "lease and grace are 65 s");
    database.execute("UPDATE claims SET lease_until = now() - interval '71 min'").await;
    assert_eq!(idle(&store).await, (1, 1));
}

#[tokio::test]
async fn a_requeue_that_nobody_takes_up_is_stranded_however_old_its_row() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let claim = mine(&store, &event()).await;
    store.settled(&claim, &put_aside()).await;
    database.execute("UPDATE claims SET first_seen_at = now() - interval '1 day'").await;
    assert_eq!(idle(&store).await, (0, 0));
    let seq = store.quarantined(1).await.unwrap()[0].seq;

    assert_eq!(store.requeue(seq, "ops").await.unwrap(), Requeued::Yes);

    assert_eq!(idle(&store).await, (0, 0));
    database.execute("UPDATE claims SET not_before = now() - interval '2 hours'").await;
    assert_eq!(idle(&store).await, (0, 1));
    assert!(store.close(seq, "given up").await.unwrap());
    assert_eq!(idle(&store).await, (0, 1), "it is still open");
}

#[tokio::test]
async fn retention_goes_on_in_steps_until_nothing_is_left() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    database.execute(NEWER).await;
    database
        .execute(
            "UPDATE claims SET first_seen_at = now() - interval '11 days'
            WHERE key IN (SELECT key FROM claims ORDER BY first_seen_at LIMIT 4100)",
        )
        .await;

    assert_eq!(store.expire(DAYS_10).await.unwrap(), 4_100);

    assert_eq!(database.number("SELECT count(*) FROM claims").await, 145_900);
}

#[tokio::test]
async fn whatever_an_event_says_is_stored_as_columns_can_hold_it() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event_with(|intent| {
        intent.event.event_type = "addon:\0\u{1b}[31m".repeat(500);
        let mut raw = (*intent.raw).clone();
        raw.data = Bytes::from(vec![0; 10_000_000]);
        raw.message_id = "a\0b".to_owned();
        raw.attributes.insert("k\0".to_owned(), "\u{fffe}\0".to_owned());
        raw.publish_time = Some(chrono::DateTime::<chrono::Utc>::MIN_UTC);
        intent.raw = Arc::new(raw);
        intent.born = chrono::DateTime::<chrono::Utc>::MAX_UTC;
    });
    let claim = mine(&store, &event).await;

    store.settled(&claim, &put_aside()).await;

    let rows = store.quarantined(1).await.unwrap();
    assert_eq!((rows[0].reason, rows[0].event_type.chars().count()), (Reason::Permanent, 300));
    assert_eq!(store.requeue(rows[0].seq, "o\0ps").await.unwrap(), Requeued::Yes);
    let raw = store.replayable(1).await.unwrap()[0].raw.clone().unwrap();
    assert_eq!((&raw.data, &raw.attributes), (&event.raw.data, &event.raw.attributes));
}

#[tokio::test]
async fn a_row_of_earlier_code_that_was_replying_is_read_as_begun() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event();
    let claim = mine(&store, &event).await;
    store.settled(&claim, &Outcome::Done).await;
    database.execute("UPDATE claims SET phase = 2").await;

    assert_eq!(store.row(&event).await.phase, bellhop::claim::Phase::MayHaveRun);
}
