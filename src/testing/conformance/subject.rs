//! The store under test as a case sees it, and short ways to say what a case does.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use chrono::SubsecRound;
use uuid::Uuid;

use super::{Place, Process, Settings};
use crate::{
    claim::{
        Budget, Claim, ClaimIntent, Claimed, Identity, Key, Lease, Nonce, Phase, Standing, Wait,
        row::{Next, Row},
    },
    claims::Renewed,
    clock::Clock,
    event::{EventId, Fingerprint, RawEvent},
    outcome::{Certainty, Detail, Note, Outcome, Reason},
    store::{QuarantineRow, Seen, StoreError},
};

/// Rows looked through for those of a case: more than all cases together write.
const LISTED: u32 = 50_000;

/// How often a call is repeated that the store did not answer.
const RESENDS: usize = 200;

/// One case's store, with the place it lives in.
pub struct Subject {
    /// The first process, or its latest successor.
    pub process: Process,
    /// Its lease.
    pub lease: Lease,
    /// The clock it was given.
    pub clock: Arc<dyn Clock>,
    place: Box<dyn Place>,
    settings: Settings,
    /// What the owners know of their claims.
    claims: Mutex<HashMap<Nonce, Claim>>,
}

impl Subject {
    pub(super) async fn open(place: Box<dyn Place>, settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self {
            process: place.process(settings).await,
            lease: settings.lease,
            clock,
            place,
            settings,
            claims: Mutex::default(),
        }
    }

    /// The process dies, another one takes its place.
    pub async fn restart(mut self) -> Self {
        drop(self.process);
        self.process = self.place.process(self.settings).await;
        self
    }

    /// Another process beside the first.
    pub async fn second(&self) -> Process {
        self.place.process(self.settings).await
    }

    /// Goes on as another process; returns the one until now.
    pub fn go_on_as(mut self, other: Process) -> (Self, Process) {
        let former = std::mem::replace(&mut self.process, other);
        (self, former)
    }

    /// Lets time pass.
    pub async fn pass(&self, span: Duration) {
        self.place.pass(span).await;
    }

    /// Lets every lease granted so far run out, grace included.
    pub async fn outlive_leases(&self) {
        self.pass(self.lease.length() + self.lease.grace() + Duration::from_millis(20)).await;
    }

    /// A new event nobody has claimed: rerun, generous budgets, no suspect permit.
    pub fn event(&self) -> Arc<ClaimIntent> {
        self.event_with(|_| ())
    }

    /// A new event, with changes.
    pub fn event_with(&self, change: impl FnOnce(&mut ClaimIntent)) -> Arc<ClaimIntent> {
        let key = Uuid::new_v4();
        let mut fingerprint = [7; 17];
        fingerprint[1..].copy_from_slice(key.as_bytes());
        let now = self.clock.now();
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
            timeout: Duration::from_secs(3_600),
            born: now,
            suspect: false,
            raw: Arc::new(RawEvent {
                data: Bytes::from(format!(r#"{{"key":"{key}"}}"#)),
                attributes: [("origin".to_owned(), "conformance".to_owned())].into(),
                message_id: format!("m-{}", key.simple()),
                publish_time: Some(now.trunc_subsecs(3)),
                ..RawEvent::default()
            }),
        };
        change(&mut intent);
        Arc::new(intent)
    }

    /// A new strict event.
    pub fn strict_event(&self) -> Arc<ClaimIntent> {
        self.event_with(|intent| intent.strict = true)
    }

    /// Claims; sends the same again until there is an answer, as the protocol asks.
    pub async fn claim(&self, intent: &Arc<ClaimIntent>) -> Claimed {
        let answer = claim(&self.process, intent).await;
        if let Claimed::Mine(claim) = &answer {
            self.claims.lock().unwrap().insert(intent.nonce, claim.clone());
        }
        answer
    }

    /// What the owner of this attempt knows; of an attempt that was never answered, what it would know of a first claim.
    pub fn known(&self, intent: &Arc<ClaimIntent>) -> Claim {
        let first = || {
            let first = Next::first(intent, self.lease);
            Claim {
                intent: Arc::clone(intent),
                epoch: first.epoch,
                phase: first.phase,
                strict: first.strict,
                failures: 0,
                lost: 0,
                note: String::new(),
                fence_at: self.clock.moment(),
                deadline_at: None,
            }
        };
        self.claims.lock().unwrap().get(&intent.nonce).cloned().unwrap_or_else(first)
    }

    /// Claims; anything but `Mine` fails the case.
    pub async fn mine(&self, intent: &Arc<ClaimIntent>) -> Claim {
        mine(self.claim(intent).await)
    }

    /// Claims what a dead owner left, as a parked copy would: waits out whatever holds the take-over off.
    pub async fn take_over(&self, intent: &Arc<ClaimIntent>) -> Claimed {
        for _ in 0..20 {
            match self.claim(intent).await {
                Claimed::Wait { wake_in, why: Wait::Running } => self.pass(wake_in + Duration::from_millis(20)).await,
                answer => return answer,
            }
        }
        panic!("the take-over was held off for twenty waits");
    }

    /// The handler is about to be called.
    pub async fn try_start(&self, claim: &Claim) -> Result<(), StoreError> {
        if let Some(known) = self.claims.lock().unwrap().get_mut(&claim.intent.nonce) {
            known.phase = Phase::MayHaveRun;
        }
        resent(async || self.process.claims.start(claim).await).await
    }

    /// The handler is about to be called; failing fails the case.
    pub async fn start(&self, claim: &Claim) {
        self.try_start(claim).await.expect("the owner may start");
    }

    /// Writes how an attempt ended.
    pub async fn settle(&self, intent: &Arc<ClaimIntent>, outcome: &Outcome) -> Result<(), StoreError> {
        let claim = self.known(intent);
        resent(async || self.process.claims.settle(&claim, outcome).await).await
    }

    /// Writes how an attempt ended; failing fails the case.
    pub async fn settled(&self, intent: &Arc<ClaimIntent>, outcome: &Outcome) {
        self.settle(intent, outcome).await.expect("the owner may settle");
    }

    /// Renews; returns the nonces of those that are lost.
    pub async fn renew(&self, claims: &[&Claim]) -> Vec<Nonce> {
        self.renewed(claims).await.lost.iter().map(|claim| claim.nonce).collect()
    }

    /// Renews.
    pub async fn renewed(&self, claims: &[&Claim]) -> Renewed {
        let claims: Vec<_> = claims.iter().map(|claim| (*claim).clone()).collect();
        resent(async || self.process.claims.renew(&claims).await).await.expect("renewals are answered")
    }

    /// How one event stands for a parked copy.
    pub async fn standing(&self, intent: &ClaimIntent) -> Standing {
        let looked = resent(async || self.process.claims.look(&[intent.key()]).await).await;
        looked.expect("looking is answered")[0]
    }

    /// The event's row as the store reads it; there must be one.
    pub async fn seen(&self, intent: &ClaimIntent) -> Seen {
        let mut seen =
            resent(async || self.process.table.read(&[intent.key()]).await).await.expect("reads are answered");
        seen.remove(0).expect("the event has a row")
    }

    /// The event's claim row; there must be one.
    pub async fn row(&self, intent: &ClaimIntent) -> Row {
        self.find(intent).await.expect("the event has a row")
    }

    /// The event's claim row.
    pub async fn find(&self, intent: &ClaimIntent) -> Option<Row> {
        resent(async || self.process.claims.show(intent.key()).await).await.expect("showing is answered")
    }

    /// The event's open quarantine rows.
    pub async fn quarantined(&self, intent: &ClaimIntent) -> Vec<QuarantineRow> {
        let rows = resent(async || self.process.claims.quarantined(LISTED).await).await.expect("listing is answered");
        rows.into_iter().filter(|row| row.key == intent.key()).collect()
    }

    /// The event's one open quarantine row, which must have this reason.
    pub async fn quarantine_row(&self, intent: &ClaimIntent, reason: Reason) -> QuarantineRow {
        let mut rows = self.quarantined(intent).await;
        assert_eq!(rows.iter().map(|row| row.reason).collect::<Vec<_>>(), [reason], "quarantine rows of the event");
        rows.remove(0)
    }

    /// The event's rows that are due for replay.
    pub async fn replayable(&self, intent: &ClaimIntent) -> Vec<QuarantineRow> {
        let rows = resent(async || self.process.claims.replayable(LISTED).await).await.expect("listing is answered");
        rows.into_iter().filter(|row| row.key == intent.key()).collect()
    }

    /// Claims, starts and quarantines a new event as its owner; returns it and the quarantine row's number.
    pub async fn put_aside(&self, intent: Arc<ClaimIntent>, certainty: Certainty) -> (Arc<ClaimIntent>, i64) {
        let claim = self.mine(&intent).await;
        self.start(&claim).await;
        self.settled(&intent, &quarantine(Reason::Permanent, certainty)).await;
        let seq = self.quarantine_row(&intent, Reason::Permanent).await.seq;
        (intent, seq)
    }
}

/// Claims; sends the same again until there is an answer.
pub(super) async fn claim(process: &Process, intent: &Arc<ClaimIntent>) -> Claimed {
    resent(async || process.claims.claim(intent).await).await.expect("claims are answered")
}

/// The claim in an answer; anything else fails the case.
pub(super) fn mine(answer: Claimed) -> Claim {
    match answer {
        Claimed::Mine(claim) => claim,
        other => panic!("expected the event to be mine, got {other:?}"),
    }
}

/// Repeats a call whose answer was lost or that met another writer, as callers must.
pub(super) async fn resent<T>(call: impl AsyncFn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for _ in 0..RESENDS {
        match call().await {
            Err(StoreError::Unknown(_) | StoreError::Contention(_)) => tokio::task::yield_now().await,
            answer => return answer,
        }
    }
    call().await
}

/// Another attempt at the same event: a fresh nonce, and changes.
pub(super) fn again_with(intent: &ClaimIntent, change: impl FnOnce(&mut ClaimIntent)) -> Arc<ClaimIntent> {
    let mut other = ClaimIntent { nonce: Nonce::random(), ..intent.clone() };
    change(&mut other);
    Arc::new(other)
}

/// Another attempt at the same event.
pub(super) fn again(intent: &ClaimIntent) -> Arc<ClaimIntent> {
    again_with(intent, |_| ())
}

/// Another attempt at the same event, holding the suspect permit.
pub(super) fn again_suspect(intent: &ClaimIntent) -> Arc<ClaimIntent> {
    again_with(intent, |other| other.suspect = true)
}

/// Another event under the same id.
pub(super) fn impostor(intent: &ClaimIntent, payload: &'static str) -> Arc<ClaimIntent> {
    again_with(intent, |other| {
        other.event.fingerprint.0[16] ^= 0xff;
        other.raw = Arc::new(RawEvent { data: Bytes::from_static(payload.as_bytes()), ..(*other.raw).clone() });
    })
}

/// A clean failure, due at once.
pub(super) fn failed(certainty: Certainty) -> Outcome {
    Outcome::Retry { counts: true, after: None, certainty, note: Note::new("failed") }
}

/// Handed back, due at once, costing nothing.
pub(super) fn handed_back(certainty: Certainty) -> Outcome {
    Outcome::Retry { counts: false, after: None, certainty, note: Note::new("handed back") }
}

/// Put aside, costing nothing.
pub(super) fn quarantine(reason: Reason, certainty: Certainty) -> Outcome {
    Outcome::Quarantine { reason, counts: false, certainty, detail: Detail::new(b"what the handler said") }
}

/// Whether the answer is `Wait` for this reason.
#[track_caller]
pub(super) fn assert_waits(answer: &Claimed, expected: Wait) -> Duration {
    match answer {
        Claimed::Wait { wake_in, why } if *why == expected => *wake_in,
        other => panic!("expected to wait ({expected:?}), got {other:?}"),
    }
}

/// Whether the event is in quarantine for this reason.
#[track_caller]
pub(super) fn assert_quarantined(answer: &Claimed, expected: Reason) {
    assert!(
        matches!(answer, Claimed::Quarantined { reason, .. } if *reason == expected),
        "expected to be in quarantine ({expected}), got {answer:?}"
    );
}

/// Whether this claim put the event aside, for this reason.
#[track_caller]
pub(super) fn assert_put_aside(answer: &Claimed, expected: Reason) {
    assert_quarantined(answer, expected);
    assert_fresh(answer, true);
}

/// Whether the answer is `Quarantined` by this very claim, or by an earlier one.
#[track_caller]
pub(super) fn assert_fresh(answer: &Claimed, expected: bool) {
    assert!(
        matches!(answer, Claimed::Quarantined { fresh, .. } if *fresh == expected),
        "expected to be quarantined (fresh: {expected}), got {answer:?}"
    );
}

/// Whether the answer is `Settled`.
#[track_caller]
pub(super) fn assert_settled(answer: &Claimed) {
    assert!(matches!(answer, Claimed::Settled), "expected to be settled, got {answer:?}");
}

/// Whether the write was refused because somebody else owns the event.
#[track_caller]
pub(super) fn assert_lost(answer: &Result<(), StoreError>) {
    assert!(matches!(answer, Err(StoreError::ClaimLost)), "expected the claim to be lost, got {answer:?}");
}
