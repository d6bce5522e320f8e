//! The claim store on a real Postgres: guards, batches, locks, outages, and what the server keeps.
//!
//! Each test has a database of its own on the server that `BELLHOP_TEST_POSTGRES_URL` names. What holds for every store
//! is in the conformance suite.

use std::{
    ops::{Deref, Range},
    sync::Arc,
    time::Duration,
};

use bellhop::{
    claim::{
        Budget, Claim, ClaimIntent, ClaimRef, Claimed, Identity, Key, Lease, Nonce, Wait,
        row::{Next, Row},
    },
    claims::{Claims, Tables},
    clock::SystemClock,
    event::{EventId, Fingerprint, RawEvent},
    metrics::Metrics,
    outcome::{Certainty, Detail, Outcome, Reason},
    secret::Secret,
    store::{
        ClaimTable, Entered, Entry, Seen,
        postgres::{Config, PostgresStore, migrate},
    },
};
use bytes::Bytes;
use chrono::Utc;
use sqlx::{Connection, PgConnection};
use tokio::time::sleep;
use uuid::Uuid;

mod batches;
mod conformance;
mod contest;
mod guards;
mod locks;
mod outages;
mod races;
mod schema;
mod upkeep;

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

/// One process's store, seen as claims; its ports beside them.
struct Process {
    claims: Claims,
    tables: Tables,
    lease: Lease,
}

impl Deref for Process {
    type Target = Claims;

    fn deref(&self) -> &Claims {
        &self.claims
    }
}

impl Process {
    fn table(&self) -> &dyn ClaimTable {
        &*self.tables.claims
    }

    /// Enters events that nobody has claimed.
    async fn enter(&self, intents: &[Arc<ClaimIntent>]) {
        for entered in self.entered(intents).await {
            assert!(matches!(entered, Entered::Inserted), "{entered:?}");
        }
    }

    /// Enters, in one statement.
    async fn entered(&self, intents: &[Arc<ClaimIntent>]) -> Vec<Entered> {
        let entry =
            |intent: &Arc<ClaimIntent>| Entry { intent: Arc::clone(intent), first: Next::first(intent, self.lease) };
        self.table().enter(&intents.iter().map(entry).collect::<Vec<_>>()).await.unwrap()
    }

    /// The event's row as an entry finds it.
    async fn seen(&self, intent: &ClaimIntent) -> Seen {
        match self.entered(&[again(intent)]).await.remove(0) {
            Entered::Found(seen) => *seen,
            other => panic!("expected the row, got {other:?}"),
        }
    }

    async fn row(&self, intent: &ClaimIntent) -> Row {
        self.show(intent.key()).await.unwrap().expect("the event has a row")
    }

    /// Settles an event that was claimed for the first time.
    async fn settled(&self, claim: &Claim, outcome: &Outcome) {
        self.settle(claim, outcome).await.unwrap();
    }
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
    fn store(&self, lease: Duration) -> Process {
        self.store_with(lease, "")
    }

    /// The same, counting into `metrics`.
    fn store_into(&self, lease: Duration, metrics: &Metrics) -> Process {
        let config = Config { url: Secret::from(self.url.as_str()), ..Config::default() };
        open_into(&config, lease, metrics)
    }

    fn store_with(&self, lease: Duration, options: &str) -> Process {
        let config = Config { url: Secret::from(format!("{}&{options}", self.url)), ..Config::default() };
        open(&config, lease)
    }

    /// A store that is past its holdoff.
    async fn settled_store(&self, lease: Duration) -> Process {
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

fn open(config: &Config, lease: Duration) -> Process {
    open_into(config, lease, &Metrics::new().unwrap())
}

fn open_into(config: &Config, lease: Duration, metrics: &Metrics) -> Process {
    let (lease, clock) = (Lease::new(lease), Arc::new(SystemClock));
    let store = PostgresStore::open(config, lease, DAYS_10, clock.clone(), metrics).unwrap();
    let tables = Tables::of(store);
    Process { claims: Claims::new(tables.clone(), lease, clock, metrics.clone()), tables, lease }
}

async fn execute(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(connection).await.unwrap();
}

/// A new event nobody has claimed.
fn event() -> Arc<ClaimIntent> {
    event_with(|_| ())
}

/// New events nobody has claimed.
fn events(numbers: Range<usize>) -> Vec<Arc<ClaimIntent>> {
    numbers.map(|_| event()).collect()
}

fn strict_event() -> Arc<ClaimIntent> {
    event_with(|intent| intent.strict = true)
}

fn event_with(change: impl FnOnce(&mut ClaimIntent)) -> Arc<ClaimIntent> {
    let key = Uuid::new_v4();
    let mut fingerprint = [7; 17];
    fingerprint[1..].copy_from_slice(key.as_bytes());
    let mut intent = ClaimIntent {
        event: Identity {
            key: Key::from(key),
            event_id: EventId::new(format!("bh1-ix-{}", key.simple())),
            event_type: "MESSAGE".to_owned(),
            fingerprint: Fingerprint(fingerprint),
        },
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

async fn mine(store: &Process, intent: &Arc<ClaimIntent>) -> Claim {
    match store.claim(intent).await.unwrap() {
        Claimed::Mine(claim) => claim,
        other => panic!("expected the claim, got {other:?}"),
    }
}

fn references(intents: &[Arc<ClaimIntent>]) -> Vec<ClaimRef> {
    intents.iter().map(|intent| intent.reference()).collect()
}

fn put_aside() -> Outcome {
    let detail = Detail::new(b"no");
    Outcome::Quarantine { reason: Reason::Permanent, counts: true, certainty: Certainty::Over, detail }
}

fn assert_waits(answer: &Claimed, wanted: Wait) {
    match answer {
        Claimed::Wait { why, .. } if *why == wanted => {}
        other => panic!("expected to wait for {wanted:?}, got {other:?}"),
    }
}
