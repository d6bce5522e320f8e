//! The claim store on a real Postgres: races, leases, outages, and what the server keeps.
//!
//! Each test has a database of its own on the server that `BELLHOP_TEST_POSTGRES_URL` names.

use std::{sync::Arc, time::Duration};

use bellhop::{
    claim::{Budget, Claim, ClaimIntent, ClaimRef, Claimed, Key, Lease, Nonce, Wait},
    clock::SystemClock,
    event::{EventId, Fingerprint, RawEvent},
    metrics::Metrics,
    secret::Secret,
    store::{
        ClaimStore,
        postgres::{Config, PostgresStore, migrate},
    },
};
use bytes::Bytes;
use chrono::Utc;
use sqlx::{Connection, PgConnection};
use tokio::time::sleep;
use uuid::Uuid;

mod conformance;
mod lifecycle;
mod outages;
mod races;
mod schema;

/// Waited for in tests; a configured one is never so short.
const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(60);
const DAYS_10: Duration = Duration::from_secs(10 * 86_400);

fn server() -> String {
    std::env::var("BELLHOP_TEST_POSTGRES_URL")
        .expect("BELLHOP_TEST_POSTGRES_URL names a Postgres server whose user may create databases")
}

/// A database of one test.
struct Database {
    url: String,
}

impl Database {
    /// An empty one.
    async fn empty() -> Self {
        let server = server();
        let name = format!("store_{}", Uuid::new_v4().simple());
        let mut admin = PgConnection::connect(&server).await.unwrap();
        execute(&mut admin, &format!("CREATE DATABASE {name}")).await;
        let (address, options) = server.split_once('?').unwrap_or((&server, ""));
        let (address, _) = address.rsplit_once('/').unwrap();
        Self { url: format!("{address}/{name}?{options}") }
    }

    /// One with the schema.
    async fn migrated() -> Self {
        let database = Self::empty().await;
        migrate::up(&Secret::from(database.url.as_str())).await.unwrap();
        database
    }

    /// The store as one process opens it.
    fn store(&self, lease: Duration) -> PostgresStore {
        self.store_with(lease, "")
    }

    /// The same, counting into `metrics`.
    fn store_into(&self, lease: Duration, metrics: &Metrics) -> PostgresStore {
        let config = Config { url: Secret::from(self.url.as_str()), ..Config::default() };
        PostgresStore::open(&config, Lease::new(lease), DAYS_10, Arc::new(SystemClock), metrics).unwrap()
    }

    fn store_with(&self, lease: Duration, options: &str) -> PostgresStore {
        let config = Config { url: Secret::from(format!("{}&{options}", self.url)), ..Config::default() };
        open(&config, lease)
    }

    /// A store that is past its holdoff.
    async fn settled_store(&self, lease: Duration) -> PostgresStore {
        let store = self.store(lease);
        // Connects, so that the server's identity is known before the holdoff ends.
        assert!(matches!(store.claim(&event()).await.unwrap(), Claimed::Mine(_)));
        sleep(lease).await;
        store
    }

    async fn admin(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    async fn execute(&self, sql: &str) {
        execute(&mut self.admin().await, sql).await;
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.admin().await).await.unwrap()
    }

    async fn text(&self, sql: &'static str) -> String {
        sqlx::query_scalar(sql).fetch_one(&mut self.admin().await).await.unwrap()
    }
}

fn open(config: &Config, lease: Duration) -> PostgresStore {
    PostgresStore::open(config, Lease::new(lease), DAYS_10, Arc::new(SystemClock), &Metrics::new().unwrap()).unwrap()
}

async fn execute(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

/// A new event nobody has claimed.
fn event() -> Arc<ClaimIntent> {
    event_with(|_| ())
}

fn strict_event() -> Arc<ClaimIntent> {
    event_with(|intent| intent.strict = true)
}

fn event_with(change: impl FnOnce(&mut ClaimIntent)) -> Arc<ClaimIntent> {
    let key = Uuid::new_v4();
    let mut fingerprint = [7; 17];
    fingerprint[1..].copy_from_slice(key.as_bytes());
    let mut intent = ClaimIntent {
        key: Key::from(key),
        event_id: EventId::new(format!("bh1-ix-{}", key.simple())),
        event_type: "MESSAGE".to_owned(),
        fingerprint: Fingerprint(fingerprint),
        nonce: Nonce::random(),
        strict: false,
        budget: Budget { max_failures: 8, max_lost: 3 },
        timeout: Duration::from_secs(60),
        born: Utc::now(),
        suspect: false,
        raw: Arc::new(RawEvent { data: Bytes::from(key.to_string()), ..RawEvent::default() }),
    };
    change(&mut intent);
    Arc::new(intent)
}

/// Another attempt at the same event.
fn again(intent: &ClaimIntent) -> Arc<ClaimIntent> {
    Arc::new(ClaimIntent { nonce: Nonce::random(), ..intent.clone() })
}

/// Another attempt with the suspect permit.
fn suspect(intent: &ClaimIntent) -> Arc<ClaimIntent> {
    Arc::new(ClaimIntent { nonce: Nonce::random(), suspect: true, ..intent.clone() })
}

async fn mine(store: &PostgresStore, intent: &Arc<ClaimIntent>) -> Claim {
    match store.claim(intent).await.unwrap() {
        Claimed::Mine(claim) => claim,
        other => panic!("expected the claim, got {other:?}"),
    }
}

fn named(intent: &Arc<ClaimIntent>) -> ClaimRef {
    ClaimRef::unanswered(Arc::clone(intent))
}

fn assert_waits(answer: &Claimed, wanted: Wait) {
    match answer {
        Claimed::Wait { why, .. } if *why == wanted => {}
        other => panic!("expected to wait for {wanted:?}, got {other:?}"),
    }
}
