//! Many processes at everything at once, audited by the server: no deadlock, no lost update, nobody robbed.
//!
//! `BELLHOP_CONTEST_SECONDS` sets how long; ten minutes is what was promised of a release.

use std::{
    io::Write,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use bellhop::{
    claim::{Budget, Claim, ClaimIntent, Claimed, Identity, Key, Lease, Nonce, Phase},
    claims::{Claims, Tables},
    clock::SystemClock,
    event::{EventId, Fingerprint, RawEvent},
    metrics::Metrics,
    outcome::{Certainty, Detail, Note, Outcome, Reason},
    secret::Secret,
    store::{
        StoreError, Upkeep,
        postgres::{Config, PostgresStore},
    },
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sqlx::Connection;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use uuid::Uuid;

use super::{Database, execute};

const PROCESSES: u64 = 8;
const TASKS: u64 = 24;
const KEYS: u128 = 300;
/// Short, so that owners are replaced all the time; the client's timeout does not go below 800 ms with it.
const LEASE: Duration = Duration::from_millis(600);
const URL: &str = "BELLHOP_CONTEST_URL";
const SECONDS: &str = "BELLHOP_CONTEST_SECONDS";

/// Every change of a claim row, in its order.
const AUDIT: &str = "
    CREATE TABLE audit (n bigserial PRIMARY KEY, at timestamptz, what text, key uuid, was claims, is_now claims);
    CREATE TABLE journal (key uuid, nonce uuid, epoch integer, what text);
    CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
        INSERT INTO audit (at, what, key, was, is_now) VALUES (clock_timestamp(), TG_OP,
            coalesce(NEW.key, OLD.key), OLD, NEW);
        RETURN NULL;
    END$$;
    CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON claims FOR EACH ROW EXECUTE FUNCTION audit();";

/// What must never have happened, each as a count.
const NEVER: &[(&str, &str)] = &[
    ("an epoch went down", "SELECT count(*) FROM audit WHERE what = 'UPDATE' AND (is_now).epoch < (was).epoch"),
    (
        "an owner changed without a new epoch",
        "SELECT count(*) FROM audit WHERE what = 'UPDATE' AND (is_now).nonce <> (was).nonce
            AND (is_now).epoch <> (was).epoch + 1",
    ),
    (
        "a live owner was robbed",
        "SELECT count(*) FROM audit WHERE what = 'UPDATE' AND (was).state = 1 AND (is_now).nonce <> (was).nonce
            AND (was).lease_until + interval '50 milliseconds' > at",
    ),
    (
        "a live owner's event was put aside by another",
        "SELECT count(*) FROM audit WHERE what = 'UPDATE' AND (was).state = 1 AND (is_now).note = 'owner_lost'
            AND (was).lease_until + interval '50 milliseconds' > at",
    ),
    (
        "a handled event came back",
        "SELECT count(*) FROM audit WHERE what = 'UPDATE' AND (was).state = 2
        AND (is_now).state <> 2",
    ),
    (
        "a strict event that may have run was run again",
        "SELECT count(*) FROM audit WHERE what = 'UPDATE' AND (is_now).state = 1 AND (is_now).nonce <> (was).nonce
            AND ((was).strict OR (is_now).strict) AND (was).phase = 1",
    ),
    (
        "strictness was forgotten",
        "SELECT count(*) FROM audit WHERE what = 'UPDATE' AND (was).strict
        AND NOT (is_now).strict",
    ),
    (
        "one epoch had two owners",
        "SELECT count(*) FROM (SELECT 1 FROM audit WHERE what <> 'DELETE' AND (is_now).state = 1
            GROUP BY key, (is_now).epoch, (is_now).first_seen_at HAVING count(DISTINCT (is_now).nonce) > 1) twice",
    ),
    (
        "a change was made to a row that was not the last one",
        "SELECT count(*) FROM (SELECT was, lag(is_now) OVER (PARTITION BY key ORDER BY n) AS before FROM audit) a
            WHERE was IS NOT NULL AND before IS NOT NULL AND was IS DISTINCT FROM before",
    ),
    // A late success may come after a requeue, which is an epoch.
    (
        "what an owner was told was never written",
        "SELECT count(*) FROM journal j WHERE NOT EXISTS (SELECT 1 FROM audit a WHERE a.key = j.key
            AND (a.is_now).nonce = j.nonce AND ((a.is_now).epoch = j.epoch OR j.what = 'done') AND CASE j.what
                WHEN 'mine' THEN (a.is_now).state = 1 WHEN 'started' THEN (a.is_now).phase = 1
                WHEN 'done' THEN (a.is_now).state = 2 WHEN 'retry' THEN (a.is_now).state = 3
                ELSE (a.is_now).state = 4 END)",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_at_everything_lose_no_update() {
    let database = Database::migrated().await;
    database.execute(AUDIT).await;
    let seconds = std::env::var(SECONDS).unwrap_or_else(|_| "15".to_owned());
    let children: Vec<_> = (0..PROCESSES)
        .map(|seed| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "integration::postgres_store::contest::process", "--ignored", "--nocapture"])
                .env(URL, &database.url)
                .env(SECONDS, &seconds)
                .env("BELLHOP_CONTEST_SEED", seed.to_string())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let waiting = children.into_iter().map(|mut child| tokio::task::spawn_blocking(move || child.wait().unwrap()));
    for ended in futures::future::join_all(waiting).await {
        assert!(ended.unwrap().success(), "a process met an error that it must not meet");
    }

    for (what, count) in NEVER {
        assert_eq!(database.number(count).await, 0, "{what}");
    }
    assert_eq!(database.number(DEADLOCKS).await, 0, "deadlocks");
    let took_over = "SELECT count(*) FROM audit WHERE (is_now).lost > (was).lost";
    let requeued = "SELECT count(*) FROM audit WHERE (is_now).note = 'requeued'";
    let told = "SELECT count(*) FROM journal";
    let mut stderr = std::io::stderr();
    for (what, at_least) in [(took_over, 20), (requeued, 5), (told, 1_000)] {
        let seen = database.number(what).await;
        assert!(seen >= at_least, "{what}: {seen}");
        writeln!(stderr, "{seen:>9}  {what}").unwrap();
    }
    let hot = database.number(HOT).await;
    writeln!(stderr, "{hot:>8} % HOT updates").unwrap();
    assert!(hot > 95, "{hot} % of the updates were HOT");
}

const DEADLOCKS: &str = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
const HOT: &str = "SELECT (100 * n_tup_hot_upd / greatest(n_tup_upd, 1))::bigint FROM pg_stat_user_tables
    WHERE relname = 'claims'";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process of the contest, started by it"]
async fn process() {
    let Ok(url) = std::env::var(URL) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let end = Instant::now() + Duration::from_secs(number(SECONDS));
    let seed = number("BELLHOP_CONTEST_SEED") * 1_000;
    let config = Config { url: Secret::from(url.as_str()), ..Config::default() };
    let (lease, metrics) = (Lease::new(LEASE), Metrics::new().unwrap());
    let days = Duration::from_secs(10 * 86_400);
    let store = PostgresStore::open(&config, lease, days, Arc::new(SystemClock), &metrics).unwrap();
    let tables = Tables::of(store);
    let upkeep = Arc::clone(&tables.upkeep);
    let claims = Arc::new(Claims::new(tables, lease, Arc::new(SystemClock), metrics));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(contend(Arc::clone(&claims), StdRng::seed_from_u64(seed + task), end));
    }
    tasks.spawn(operate(Arc::clone(&claims), upkeep, StdRng::seed_from_u64(seed + 999), end));
    let told = tasks.join_all().await.concat();

    let mut journal = sqlx::PgConnection::connect(&url).await.unwrap();
    for told in told.chunks(1_000) {
        let rows: Vec<_> =
            told.iter().map(|told| format!("('{}', '{}', {}, '{}')", told.0, told.1, told.2, told.3)).collect();
        execute(&mut journal, &format!("INSERT INTO journal VALUES {}", rows.join(", "))).await;
    }
}

/// Key, nonce, epoch and what the owner was told.
type Told = (Uuid, Uuid, u32, &'static str);

fn told(claim: &Claim, what: &'static str) -> Told {
    (claim.intent.key().as_uuid(), claim.intent.nonce.as_uuid(), claim.epoch, what)
}

/// What the server may always answer instead: another was in the way, or the answer did not come.
fn acceptable(error: &StoreError) -> bool {
    matches!(error, StoreError::Contention(_) | StoreError::Unknown(_) | StoreError::ClaimLost)
}

/// Claims and does what owners do, good ones and bad ones.
async fn contend(claims: Arc<Claims>, mut rng: StdRng, end: Instant) -> Vec<Told> {
    let mut journal = Vec::new();
    while Instant::now() < end {
        let intent = Arc::new(intent(&mut rng));
        let mut claim = match claims.claim(&intent).await {
            Ok(Claimed::Mine(claim)) => claim,
            Ok(_) => continue,
            Err(error) => {
                assert!(acceptable(&error), "{error:?}: {}", error.cause().as_str());
                continue;
            }
        };
        journal.push(told(&claim, "mine"));
        if claim.phase == Phase::NotBegun && rng.random_bool(0.8) {
            claim.phase = Phase::MayHaveRun;
            match claims.start(&claim).await {
                Ok(()) => journal.push(told(&claim, "started")),
                Err(error) => assert!(acceptable(&error), "{error:?}"),
            }
        }
        if rng.random_bool(0.2) {
            sleep(Duration::from_millis(rng.random_range(0..2_000))).await;
        }
        if rng.random_bool(0.4) {
            drop(claims.renew(std::slice::from_ref(&claim)).await);
        }
        // One in six dies.
        let Some((what, outcome)) = outcome(&mut rng) else { continue };
        match claims.settle(&claim, &outcome).await {
            Ok(()) => journal.push(told(&claim, what)),
            Err(error) => assert!(acceptable(&error), "{error:?}"),
        }
    }
    journal
}

/// Puts back what is in quarantine and forgets what is done: the keys begin new lives.
async fn operate(claims: Arc<Claims>, upkeep: Arc<dyn Upkeep>, mut rng: StdRng, end: Instant) -> Vec<Told> {
    while Instant::now() < end {
        if let Ok(rows) = claims.quarantined(20).await
            && let Some(row) = rows.choose(&mut rng)
        {
            drop(claims.requeue(row.seq, "operator").await);
        }
        drop(upkeep.prepare().await);
        sleep(Duration::from_millis(rng.random_range(0..50))).await;
    }
    Vec::new()
}

fn intent(rng: &mut StdRng) -> ClaimIntent {
    // Keys of now and then new ones: what is done stays done.
    let life = u128::from(std::process::id() % 3) * u128::from(rng.random_range(0..40_u32));
    let key = Uuid::from_u128((life << 64) | rng.random_range(0..KEYS));
    ClaimIntent {
        event: Identity {
            key: Key::from(key),
            event_id: EventId::new(format!("bh1-ix-{}", key.simple())),
            event_type: "MESSAGE".to_owned(),
            fingerprint: Fingerprint([1; 17]),
        },
        nonce: Nonce::random(),
        strict: key.as_u128().is_multiple_of(4) || rng.random_bool(0.02),
        budget: Budget { max_failures: 100, max_lost: 100 },
        timeout: Duration::from_millis(300),
        born: chrono::Utc::now(),
        suspect: rng.random_bool(0.7),
        raw: Arc::new(RawEvent { data: key.to_string().into(), ..RawEvent::default() }),
    }
}

fn outcome(rng: &mut StdRng) -> Option<(&'static str, Outcome)> {
    let certainty = *[Certainty::NotRun, Certainty::Over, Certainty::Open].choose(rng)?;
    Some(match rng.random_range(0..12) {
        0 => ("done", Outcome::Done),
        1..=8 => {
            let counts = rng.random_bool(0.5);
            ("retry", Outcome::Retry { counts, after: None, certainty, note: Note::new("failed") })
        }
        9 => {
            let detail = Detail::new(b"no");
            ("quarantined", Outcome::Quarantine { reason: Reason::Permanent, counts: true, certainty, detail })
        }
        _ => return None,
    })
}
