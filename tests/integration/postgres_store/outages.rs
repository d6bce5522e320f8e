//! What the store makes of a server that fails, changes or lies.

use std::time::Duration;

use bellhop::{
    claim::{Claimed, Wait},
    outcome::Outcome,
    secret::Secret,
    store::{Readiness, StoreError, postgres::Config},
};
use tokio::time::sleep;

use super::{Database, LONG, Process, SHORT, again, assert_waits, event, mine, open, suspect};

async fn claim_error(store: &Process) -> StoreError {
    store.claim(&event()).await.expect_err("the server fails it")
}

/// Makes every claim fail as the server would with this code.
async fn failing_with(database: &Database, code: &str) {
    let sql = format!(
        "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION 'secret text' USING ERRCODE = '{code}', DETAIL = 'secret detail'; END$$;
        CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON claims FOR EACH ROW EXECUTE FUNCTION fail()"
    );
    database.execute(&sql).await;
}

#[tokio::test]
async fn server_errors_are_told_apart_by_what_the_caller_does_next() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    mine(&store, &event()).await;
    let classes = [
        ("contention", vec!["40001", "40P01", "55P03", "57014"]),
        ("refused", vec!["22021", "23505", "42P01"]),
        ("unknown", vec!["25006", "57P01", "57P03", "53300", "XX000"]),
    ];

    for (label, codes) in classes {
        for code in codes {
            failing_with(&database, code).await;

            let error = claim_error(&store).await;

            assert_eq!(error.label(), label, "{code}");
            assert!(!format!("{error:?}").contains("secret detail"), "details quote values");
        }
    }
}

#[tokio::test]
async fn a_connection_with_an_unclear_answer_is_not_used_again() {
    let database = Database::migrated().await;
    let config = Config { url: Secret::from(database.url.as_str()), max_connections: 2 };
    let store = open(&config, LONG);
    mine(&store, &event()).await;
    let pid = "SELECT pid::bigint FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'bellhop' ORDER BY backend_start DESC LIMIT 1";
    let first = database.number(pid).await;
    failing_with(&database, "40001").await;
    claim_error(&store).await;
    look(&store).await;
    assert_eq!(database.number(pid).await, first, "contention says nothing about the connection");

    failing_with(&database, "25006").await;
    claim_error(&store).await;
    look(&store).await;

    assert_ne!(database.number(pid).await, first, "a read-only server's connection is dropped");
}

/// Any statement that works.
async fn look(store: &Process) {
    store.look(&[event().key()]).await.unwrap();
}

#[tokio::test]
async fn an_unfit_server_is_not_written_to() {
    let database = Database::migrated().await;
    for (setting, word) in [
        ("default_transaction_read_only]=on", "read_only"),
        ("default_transaction_isolation]=serializable", "isolation"),
        ("synchronous_commit]=off", "synchronous_commit"),
        ("synchronous_commit]=local", "synchronous_commit"),
    ] {
        let store = database.store_with(LONG, &format!("options[{setting}"));

        let Readiness::Unfit(why) = store.prepare().await.unwrap() else { panic!("{setting} is unfit") };

        assert!(why.contains(word), "{why}");
        assert_eq!(claim_error(&store).await.label(), "unknown");
    }
    assert_eq!(database.number("SELECT count(*) FROM claims").await, 0);
}

#[tokio::test]
async fn a_server_that_is_down_is_unknown_at_once() {
    let store = open(&Config { url: Secret::from("postgres://nobody@127.0.0.1:1/none"), ..Config::default() }, LONG);

    let error = tokio::time::timeout(Duration::from_secs(1), claim_error(&store)).await.expect("not after a timeout");

    assert_eq!(error.label(), "unknown");
}

#[tokio::test]
async fn cut_connections_are_replaced() {
    let database = Database::migrated().await;
    let store = database.store(LONG);
    let event = event();
    mine(&store, &event).await;
    database
        .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'bellhop'")
        .await;

    assert_eq!(claim_error(&store).await.label(), "unknown");

    let claim = mine(&store, &event).await;
    assert_eq!(claim.epoch, 1);
    store.settle(&claim, &Outcome::Done).await.unwrap();
}

#[tokio::test]
async fn a_fresh_process_takes_nothing_over_for_one_lease() {
    let database = Database::migrated().await;
    let event = event();
    mine(&database.store(SHORT), &event).await;
    sleep(SHORT * 2).await;
    let store = database.store(SHORT);

    assert_waits(&store.claim(&suspect(&event)).await.unwrap(), Wait::Running);
    let Claimed::Wait { wake_in, .. } = store.claim(&suspect(&event)).await.unwrap() else { panic!("held off") };
    assert!(wake_in <= SHORT);
    sleep(wake_in + Duration::from_millis(5)).await;

    assert_eq!(mine(&store, &suspect(&event)).await.epoch, 2);
}

#[tokio::test]
async fn nothing_is_taken_over_for_one_lease_after_an_outage() {
    let database = Database::migrated().await;
    let store = database.settled_store(SHORT).await;
    let stale = event();
    mine(&store, &stale).await;
    sleep(SHORT * 2).await;
    failing_with(&database, "57P01").await;
    claim_error(&store).await;

    assert_waits(&store.claim(&suspect(&stale)).await.unwrap(), Wait::Running);
    sleep(SHORT + Duration::from_millis(5)).await;

    assert_eq!(mine(&store, &suspect(&stale)).await.epoch, 2);
}

#[tokio::test]
async fn nothing_is_taken_over_for_one_lease_after_the_server_became_another() {
    let database = Database::migrated().await;
    let store = database.settled_store(SHORT).await;
    let stale = event();
    mine(&store, &stale).await;
    sleep(SHORT * 2).await;
    // As after a promotion, without the connection being cut.
    database
        .execute("CREATE OR REPLACE FUNCTION server_identity() RETURNS text LANGUAGE sql AS $$SELECT 'promoted/2'$$")
        .await;

    for _ in 0..2 {
        assert_waits(&store.claim(&suspect(&stale)).await.unwrap(), Wait::Running);
    }
    let strict = event_strict_copy(&stale);
    assert_waits(&store.claim(&strict).await.unwrap(), Wait::Running);
    sleep(SHORT + Duration::from_millis(5)).await;

    assert_eq!(mine(&store, &suspect(&stale)).await.epoch, 2);
}

fn event_strict_copy(event: &bellhop::claim::ClaimIntent) -> std::sync::Arc<bellhop::claim::ClaimIntent> {
    let mut copy = (*again(event)).clone();
    copy.strict = true;
    std::sync::Arc::new(copy)
}

#[tokio::test]
async fn through_a_pooler_each_statement_is_unnamed_and_in_a_transaction() {
    let database = Database::migrated().await;
    let store = database.store_with(LONG, "statement-cache-capacity=0");
    let event = event();
    let claim = mine(&store, &event).await;
    assert_eq!(store.renew(std::slice::from_ref(&claim)).await.unwrap().renewed, [claim.reference()]);
    store.settle(&claim, &Outcome::Done).await.unwrap();
    assert!(matches!(store.claim(&again(&event)).await.unwrap(), Claimed::Settled));
    // Whatever was prepared on the store's connections would be in the way of others.
    database
        .execute(
            "CREATE FUNCTION prepared() RETURNS trigger LANGUAGE plpgsql AS
                $$BEGIN NEW.note := (SELECT count(*) FROM pg_prepared_statements)::text; RETURN NEW; END$$;
            CREATE TRIGGER prepared BEFORE INSERT ON claims FOR EACH ROW EXECUTE FUNCTION prepared()",
        )
        .await;

    mine(&store, &super::event()).await;

    assert_eq!(database.text("SELECT note FROM claims ORDER BY first_seen_at DESC LIMIT 1").await, "0");
}
