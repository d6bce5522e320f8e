//! What each form of a swap compares, and what it writes.

use std::{sync::Arc, time::Duration};

use bellhop::{
    claim::{
        ClaimIntent, Phase, State,
        row::{At, Next, Row},
    },
    outcome::{Detail, Note, Outcome, Reason},
    store::{Aside, Guard, Rider, Swap},
};
use chrono::{DateTime, TimeDelta, Utc};

use super::{Database, LONG, Process, again, event, execute, mine, put_aside, strict_event};

/// The statements that write a row which is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Lone,
    Batch,
    WithPayload,
}

const FORMS: [Form; 3] = [Form::Lone, Form::Batch, Form::WithPayload];

impl Form {
    /// Sends the swap in this form; what goes along must be written, and says so.
    async fn send(self, store: &Process, intent: &Arc<ClaimIntent>, guard: Guard, next: Next) -> bool {
        let swap =
            |event: &Arc<ClaimIntent>, guard, next, rider| Swap { event: event.event.clone(), guard, next, rider };
        let aside = Aside { reason: Reason::Operator, detail: Detail::new(b"aside"), intent: Arc::clone(intent) };
        match self {
            Self::Lone => store.table().swap(&[swap(intent, guard, next, None)]).await.unwrap()[0],
            Self::WithPayload => {
                let rider = Some(Rider::Aside(aside));
                store.table().swap(&[swap(intent, guard, next, rider)]).await.unwrap()[0]
            }
            Self::Batch => {
                let (before, after) = (event(), event());
                store.enter(&[Arc::clone(&before), Arc::clone(&after)]).await;
                let beside = |event| swap(event, Guard::Owner(event.nonce), Next::first(event, store.lease), None);
                let swaps = [beside(&before), swap(intent, guard, next, None), beside(&after)];
                let answers = store.table().swap(&swaps).await.unwrap();
                assert_eq!((answers[0], answers[2], answers.len()), (true, true, 3));
                answers[1]
            }
        }
    }
}

/// A take-over of the row as it was read.
fn take(row: &Row) -> Next {
    Next { epoch: row.epoch + 1, lease_until: At::In(LONG), ..row.unchanged() }
}

/// Whatever happens to the row between read and write.
const CHANGES: [(&str, &str); 6] = [
    ("renewed", "UPDATE claims SET lease_until = lease_until + interval '1 us' WHERE key = $1"),
    ("completed", "UPDATE claims SET state = 2 WHERE key = $1"),
    ("started", "UPDATE claims SET phase = 1 - phase WHERE key = $1"),
    ("requeued", "UPDATE claims SET epoch = epoch + 1 WHERE key = $1"),
    ("deleted and inserted again", "UPDATE claims SET nonce = gen_random_uuid() WHERE key = $1"),
    ("deleted", "DELETE FROM claims WHERE key = $1"),
];

async fn change(database: &Database, sql: &'static str, intent: &ClaimIntent) {
    let changed = sqlx::query(sql).bind(intent.key().as_uuid()).execute(&mut database.admin().await).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
}

#[tokio::test]
async fn a_row_that_changed_in_any_way_since_it_was_read_is_not_written() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    for form in FORMS {
        for (what, sql) in CHANGES {
            let event = strict_event();
            mine(&store, &event).await;
            let seen = store.seen(&event).await;
            change(&database, sql, &event).await;
            let row = store.show(event.key()).await.unwrap();

            assert!(!form.send(&store, &event, seen.unchanged(), take(&seen.row)).await, "{what}, {form:?}");

            assert_eq!(store.show(event.key()).await.unwrap(), row, "{what}, {form:?}");
        }
        let event = strict_event();
        mine(&store, &event).await;
        let seen = store.seen(&event).await;
        assert!(form.send(&store, &event, seen.unchanged(), take(&seen.row)).await, "{form:?}");
    }
    assert_eq!(database.number("SELECT count(*) FROM quarantine").await, 1);
}

#[tokio::test]
async fn a_stale_row_is_written_only_by_the_server_that_was_read() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    for form in FORMS {
        let event = event();
        mine(&store, &event).await;
        let stale = "UPDATE claims SET lease_until = now() - interval '1 hour' WHERE key = $1";
        change(&database, stale, &event).await;
        let seen = store.seen(&event).await;
        let server = database.text("SELECT server_identity()").await;
        assert_eq!(seen.server.as_deref(), Some(server.as_str()));
        let mut admin = database.admin().await;
        execute(&mut admin, "ALTER FUNCTION server_identity() RENAME TO known_identity").await;
        let restarted = "CREATE FUNCTION server_identity() RETURNS text LANGUAGE sql AS $$SELECT 'restarted'$$";
        execute(&mut admin, restarted).await;

        assert!(!form.send(&store, &event, seen.unchanged(), take(&seen.row)).await, "{form:?}");

        assert_eq!(store.row(&event).await, seen.row);
        execute(&mut admin, "DROP FUNCTION server_identity()").await;
        execute(&mut admin, "ALTER FUNCTION known_identity() RENAME TO server_identity").await;
        assert!(form.send(&store, &event, seen.unchanged(), take(&seen.row)).await, "{form:?}");
    }
}

#[tokio::test]
async fn an_owner_compares_state_and_nonce_and_nothing_else() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    for form in FORMS {
        for (what, sql) in CHANGES {
            let event = strict_event();
            let claim = mine(&store, &event).await;
            change(&database, sql, &event).await;

            let written = form.send(&store, &event, Guard::Owner(event.nonce), claim.started(store.lease)).await;

            assert_eq!(written, ["renewed", "started", "requeued"].contains(&what), "{what}, {form:?}");
        }
    }
}

/// `time` is the server's at the write.
fn assert_written(row: &Row, before: &Row, next: &Next, earliest: DateTime<Utc>, latest: DateTime<Utc>) {
    let (low, high) = (before.clone().after(next, earliest), before.clone().after(next, latest));
    let times = |row: &Row| [Some(row.lease_until), row.deadline, row.not_before, row.finished_at];
    for ((time, low), high) in times(row).into_iter().zip(times(&low)).zip(times(&high)) {
        assert!(low <= time && time <= high, "{low:?} {time:?} {high:?}");
    }
    let Row { lease_until, deadline, not_before, finished_at, .. } = row.clone();
    assert_eq!(row, &Row { lease_until, deadline, not_before, finished_at, ..low });
}

#[tokio::test]
async fn every_form_writes_every_column_and_times_by_the_servers_clock() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let now = "SELECT clock_timestamp()";
    for form in FORMS {
        let event = strict_event();
        let claim = mine(&store, &event).await;
        let day = At::In(Duration::from_secs(86_400));
        let nonce = again(&event).nonce;
        let all = Next {
            state: State::Retry,
            phase: Phase::MayHaveRun,
            strict: false,
            epoch: u32::from(u16::MAX) + 5,
            failures: 3,
            lost: 2,
            nonce,
            note: "why".to_owned(),
            lease_until: day,
            deadline: day,
            not_before: day,
            finished_at: At::In(Duration::ZERO),
        };
        let kept = Next {
            lease_until: At::Keep,
            deadline: At::Keep,
            not_before: At::Keep,
            finished_at: At::Keep,
            ..all.clone()
        };
        let cleared = Next { deadline: At::Clear, not_before: At::Clear, finished_at: At::Clear, ..kept.clone() };
        let forever = Next { lease_until: At::In(Duration::MAX), ..cleared.clone() };
        let mut guard = Guard::Owner(claim.intent.nonce);
        for next in [all, kept, cleared, forever.clone()] {
            let before = store.row(&event).await;
            let mut admin = database.admin().await;
            let earliest: DateTime<Utc> = sqlx::query_scalar(now).fetch_one(&mut admin).await.unwrap();

            assert!(form.send(&store, &event, guard, next.clone()).await, "{form:?}");

            let latest: DateTime<Utc> = sqlx::query_scalar(now).fetch_one(&mut admin).await.unwrap();
            let row = store.row(&event).await;
            if next == forever {
                assert!(row.lease_until > latest + TimeDelta::days(365_000));
            } else {
                assert_written(&row, &before, &next, earliest, latest);
            }
            guard = store.seen(&event).await.unchanged();
        }
    }
}

#[tokio::test]
async fn a_quarantine_row_goes_along_under_the_written_row() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = strict_event();
    mine(&store, &event).await;
    let next = Next { epoch: 9, nonce: again(&event).nonce, ..store.row(&event).await.unchanged() };
    let fields = "SELECT concat_ws(' ', key, nonce, epoch, strict, reason, detail, convert_from(payload, 'UTF8'))
        FROM quarantine";
    let (key, nonce) = (event.key().as_uuid(), next.nonce.as_uuid());

    assert!(Form::WithPayload.send(&store, &event, Guard::Owner(event.nonce), next).await);

    let expected = format!("{key} {nonce} 9 t operator aside {key}");
    assert_eq!(database.text(fields).await, expected);
}

#[tokio::test]
async fn a_requeue_writes_nothing_once_the_quarantine_row_is_settled() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    for settled in [true, false] {
        let event = event();
        let claim = mine(&store, &event).await;
        store.settled(&claim, &put_aside()).await;
        let seen = store.seen(&event).await;
        let seq = store.quarantined(1).await.unwrap()[0].seq;
        if settled {
            assert!(store.close(seq, "seen").await.unwrap());
        }
        let rider = Some(Rider::Request { seq, by: Note::new("ops") });
        let next = seen.row.unchanged().requeued();

        let swap = Swap { event: event.event.clone(), guard: seen.unchanged(), next, rider };
        assert_eq!(store.table().swap(&[swap]).await.unwrap(), [!settled]);

        let row = store.row(&event).await;
        assert_eq!((row.state, row.epoch), if settled { (State::Quarantined, 1) } else { (State::Retry, 2) });
    }
    let requested = "SELECT string_agg(concat_ws(' ', requested_epoch, requested_by), ',') FROM quarantine
        WHERE requested_at IS NOT NULL";
    assert_eq!(database.text(requested).await, "2 ops");
}

#[tokio::test]
async fn in_a_batch_what_needs_a_statement_of_its_own_is_passed_over() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let (known, absent) = (event(), event());
    let claim = mine(&store, &known).await;
    let rider =
        Some(Rider::Aside(Aside { reason: Reason::Operator, detail: Detail::default(), intent: Arc::clone(&known) }));
    let swaps = [
        Swap { event: known.event.clone(), guard: Guard::Owner(known.nonce), next: claim.done(), rider },
        Swap {
            event: absent.event.clone(),
            guard: Guard::Absent,
            next: Next::first(&absent, store.lease),
            rider: None,
        },
    ];

    assert_eq!(store.table().swap(&swaps).await.unwrap(), [false, false]);

    assert_eq!(store.row(&known).await.state, State::Running);
    assert_eq!(store.show(absent.key()).await.unwrap(), None);
    store.settled(&claim, &Outcome::Done).await;
}
