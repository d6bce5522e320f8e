//! `bellhop migrate` on a real server.

use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{bellhop, error_of, run};
use crate::integration::harness::{Postgres, ports};

async fn migrate(url: &str, arguments: &'static [&'static str]) -> (i32, String, String) {
    let url = url.to_owned();
    spawn_blocking(move || run(bellhop(&["migrate"]).args(arguments).env("DATABASE_URL", url))).await.unwrap()
}

#[tokio::test]
async fn status_is_exit_1_until_up_has_run() {
    let database = Postgres::fresh().await;

    let (code, stdout, stderr) = migrate(database.url(), &[]).await;
    assert_eq!((code, stderr.as_str()), (1, ""), "{stdout}");
    assert!(stdout.contains("\npending: ") && stdout.contains("bellhop migrate up"), "{stdout}");

    let (code, stdout, stderr) = migrate(database.url(), &["up"]).await;
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\napplied: ") && stdout.contains("ALTER ROLE"), "{stdout}");

    let (code, stdout, _) = migrate(database.url(), &["status", "-o", "json"]).await;
    let status: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &status["pending"], &status["usable"]), (0, &json!([]), &json!(true)));
    assert_eq!((&status["newer"], &status["unknown"]), (&json!(false), &json!([])));
    assert_eq!(status["schema"], status["needed"]);

    let (code, stdout, _) = migrate(database.url(), &["up", "-o", "json"]).await;
    let again: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &again["applied"]), (0, &json!([])));
}

#[tokio::test]
async fn a_newer_schema_is_called_newer_and_what_this_means_is_said() {
    let database = Postgres::fresh().await;
    migrate(database.url(), &["up"]).await;
    let mut other = database.connect().await;
    let applied = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (20991231000001, 'later', true, '\\x00', 1)";
    sqlx::query(applied).execute(&mut other).await.unwrap();
    sqlx::query("UPDATE schema_info SET version = 7").execute(&mut other).await.unwrap();

    let (code, stdout, _) = migrate(database.url(), &["status"]).await;
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.starts_with("schema 7, needed 2\nnothing pending\n"), "{stdout}");
    assert!(stdout.contains("newer than this bellhop knows, by migrations 20991231000001\n"), "{stdout}");
    assert!(stdout.contains("this bellhop runs on it all the same: "), "{stdout}");

    sqlx::query("UPDATE schema_info SET min_code = 2").execute(&mut other).await.unwrap();
    let (code, stdout, _) = migrate(database.url(), &["status"]).await;
    assert_eq!(code, 1, "{stdout}");
    assert!(
        stdout.contains("this bellhop does not run on it: it is code 1, the schema admits 2 and later"),
        "{stdout}"
    );

    let (code, stdout, _) = migrate(database.url(), &["status", "-o", "json"]).await;
    let status: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &status["newer"], &status["usable"]), (1, &json!(true), &json!(false)));
    assert_eq!(status["unknown"], json!([20_991_231_000_001_i64]));
}

#[tokio::test]
async fn a_migration_that_is_in_the_way_is_waited_for_and_no_longer() {
    let database = Postgres::fresh().await;
    let mut other = database.connect().await;
    sqlx::query("SELECT pg_advisory_lock(x'62656c6c686f70'::bigint)").execute(&mut other).await.unwrap();

    let (code, stdout, stderr) = migrate(database.url(), &["up", "--lock-timeout", "1s", "-o", "json"]).await;

    assert_eq!((code, stdout.as_str()), (5, ""));
    let error = error_of(&stderr);
    assert_eq!(
        (&error["code"], &error["message"]),
        (&"refused".into(), &"another migration has been running for 1 s".into())
    );
}

#[tokio::test]
async fn no_database_is_exit_6_without_its_password() {
    let url = format!("postgres://bellhop:hunter2@127.0.0.1:{}/bellhop", ports::free());

    let (code, stdout, stderr) = migrate(&url, &["status"]).await;

    assert_eq!((code, stdout.as_str()), (6, ""));
    assert!(
        stderr.starts_with("error: database can not be used: ") && stderr.contains("hint: check store.url"),
        "{stderr}"
    );
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

#[test]
fn the_other_stores_migrate_themselves() {
    for backend in ["sqlite", "memory"] {
        let set = format!("store.backend={backend}");

        let answer = run(&mut bellhop(&["migrate", "up", "--set", &set]));

        assert_eq!(answer, (0, format!("{backend} migrates itself; nothing to do\n"), String::new()));
    }
}

#[test]
fn a_store_that_nobody_named_is_exit_2() {
    let (code, stdout, stderr) = run(&mut bellhop(&["migrate", "status"]));

    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("store.backend = \"auto\" (default): needs a URL"), "{stderr}");
}
