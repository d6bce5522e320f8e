//! What a killed process had been answered is on disk, and its events are taken over at once.

use std::{
    io::{BufRead, BufReader, Write, stdout},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use bellhop::{
    claim::{Budget, Claim, ClaimIntent, Claimed, Identity, Key, Nonce, Phase},
    claims::{Claims, Tables},
    clock::SystemClock,
    event::{EventId, Fingerprint},
    metrics::Metrics,
    outcome::{Outcome, Reason},
    store::sqlite::SqliteStore,
};
use uuid::Uuid;

use super::{DAYS, Folder, LEASE, open};

/// Where the child finds its database.
const DATABASE: &str = "BELLHOP_TEST_SQLITE_CRASH";

/// Every third event is handled, every other third is strict and begun, the rest is claimed only.
fn event(number: u128) -> Arc<ClaimIntent> {
    Arc::new(ClaimIntent {
        event: Identity {
            key: Key::from(Uuid::from_u128(number)),
            event_id: EventId::new(number.to_string()),
            event_type: "MESSAGE".to_owned(),
            fingerprint: Fingerprint([1; 17]),
        },
        nonce: Nonce::random(),
        strict: number % 3 == 1,
        budget: Budget { max_failures: 8, max_lost: 3 },
        timeout: DAYS,
        born: chrono::Utc::now(),
        suspect: true,
        raw: Arc::default(),
    })
}

fn claims(store: SqliteStore) -> Claims {
    Claims::new(Tables::of(store), LEASE, Arc::new(SystemClock), Metrics::new().unwrap())
}

async fn claimed(claims: &Claims, intent: &Arc<ClaimIntent>) -> Claim {
    match claims.claim(intent).await.unwrap() {
        Claimed::Mine(claim) => claim,
        other => panic!("expected the event to be mine, got {other:?}"),
    }
}

#[tokio::test]
#[ignore = "the process that the test below starts and kills"]
async fn child() {
    let claims = claims(open(Path::new(&std::env::var_os(DATABASE).unwrap())).await.unwrap());
    for number in 0.. {
        let claim = claimed(&claims, &event(number)).await;
        match number % 3 {
            0 => claims.settle(&claim, &Outcome::Done).await.unwrap(),
            1 => claims.start(&claim).await.unwrap(),
            _ => {}
        }
        writeln!(stdout(), "wrote {number}").unwrap();
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_it_was_answered_and_is_replaced_at_once() {
    let folder = Folder::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "integration::sqlite_store::crash::child", "--ignored", "--nocapture"])
        .env(DATABASE, folder.database())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let enough = lines.find(|line| line.ends_with("wrote 60"));
    child.kill().unwrap();
    let last = lines.filter_map(|line| line.strip_prefix("wrote ").and_then(|number| number.parse().ok())).last();
    child.wait().unwrap();
    assert!(enough.is_some(), "the child ended early");

    let claims = claims(folder.open().await.unwrap());

    for number in 0..=last.unwrap_or(60_u128) {
        let answer = claims.claim(&event(number)).await.unwrap();
        match (number % 3, answer) {
            (0, Claimed::Settled) | (1, Claimed::Quarantined { reason: Reason::OwnerLost, fresh: true }) => {}
            (2, Claimed::Mine(claim)) => {
                assert_eq!((claim.epoch, claim.lost, claim.phase), (2, 1, Phase::MayHaveRun), "event {number}");
            }
            (_, other) => panic!("event {number}: {other:?}"),
        }
    }
}
