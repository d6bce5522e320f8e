//! The writes themselves: what must hold of a row at the moment it is written, and rows that are gone.

use std::{sync::Arc, time::Duration};

use super::{
    Case,
    subject::{
        Subject, again, again_suspect, assert_lost, assert_quarantined, assert_settled, assert_waits, failed,
        handed_back, quarantine, resent,
    },
};
use crate::{
    claim::{
        Claim, ClaimIntent, Phase, State, Wait,
        row::{At, Next},
    },
    outcome::{Certainty, Outcome, Reason},
    store::{Aside, Entered, Entry, Guard, Rider, Seen, Swap},
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a swap by somebody else is refused by anything that changed since the read", |s| {
            Box::pin(changed_since(s))
        }),
        Case::new("a swap by somebody else does not meet another life of the row", |s| Box::pin(another_life(s))),
        Case::new("the owner's swap holds whatever became of lease and phase", |s| Box::pin(owner(s))),
        Case::new("an owner does not take a requeue for its own retry", |s| Box::pin(requeued_meanwhile(s))),
        Case::new("an entry never changes a row", |s| Box::pin(entry(s))),
        Case::new("a swap of what is absent inserts once", |s| Box::pin(absent(s))),
        Case::new("a row that was not written takes no rider along", |s| Box::pin(no_rider(s))),
        Case::new("each item of a batch is answered in its place", |s| Box::pin(in_place(s))),
        Case::new("renewal puts a row back that is gone", |s| Box::pin(renewal_restores(s))),
        Case::new("an owner whose row is gone writes how it ended under its own epoch", |s| Box::pin(ends_restored(s))),
        Case::new("an owner whose row is gone may start", |s| Box::pin(start_restored(s))),
        Case::new("a row that is gone is not given back to an owner who was replaced meanwhile", |s| {
            Box::pin(replaced(s))
        }),
    ]
}

/// What happens to an event between a read and a swap.
type Change = fn(Subject, Arc<ClaimIntent>) -> super::Done;

/// A take-over of the row as it was read, whatever its lease.
fn take(seen: &Seen, intent: &ClaimIntent) -> Swap {
    let next = Next {
        state: State::Running,
        epoch: seen.row.epoch + 1,
        nonce: intent.nonce,
        lease_until: At::In(Duration::from_secs(600)),
        ..seen.row.unchanged()
    };
    Swap { event: seen.row.event.clone(), guard: seen.unchanged(), next, rider: None }
}

async fn swap(subject: &Subject, swap: Swap) -> bool {
    let swaps = [swap];
    resent(async || subject.process.table.swap(&swaps).await).await.expect("swaps are answered")[0]
}

async fn changed_since(subject: Subject) {
    let changes: [(&str, Change); 5] = [
        ("renewed", |s, event| {
            Box::pin(async move {
                s.pass(Duration::from_millis(2)).await;
                assert_eq!(s.renew(&[&s.known(&event)]).await, []);
                s
            })
        }),
        ("started", |s, event| {
            Box::pin(async move {
                s.start(&s.known(&event)).await;
                s
            })
        }),
        ("completed", |s, event| {
            Box::pin(async move {
                s.settled(&event, &Outcome::Done).await;
                s
            })
        }),
        ("retried and claimed again", |s, event| {
            Box::pin(async move {
                s.settled(&event, &failed(Certainty::Over)).await;
                s.mine(&again(&event)).await;
                s
            })
        }),
        ("quarantined and requeued", |s, event| {
            Box::pin(async move {
                s.settled(&event, &quarantine(Reason::Permanent, Certainty::Over)).await;
                let seq = s.quarantine_row(&event, Reason::Permanent).await.seq;
                s.process.claims.requeue(seq, "operator").await.unwrap();
                s
            })
        }),
    ];
    let mut subject = subject;
    for (change, make) in changes {
        let event = subject.strict_event();
        subject.mine(&event).await;
        let seen = subject.seen(&event).await;
        let other = again(&event);
        subject = make(subject, Arc::clone(&event)).await;
        let row = subject.row(&event).await;

        assert!(!swap(&subject, take(&seen, &other)).await, "{change}");

        assert_eq!(subject.row(&event).await, row, "{change}");
        let seen = subject.seen(&event).await;
        assert!(swap(&subject, take(&seen, &other)).await, "the row as it is now, after: {change}");
    }
}

/// Two rows of one key may be alike in state, phase and epoch: the nonce tells them apart.
async fn another_life(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let seen = subject.seen(&event).await;
    let mut earlier = take(&seen, &again(&event));
    let Guard::Unchanged { nonce, .. } = &mut earlier.guard else { panic!("somebody else's guard") };
    *nonce = again(&event).nonce;

    assert!(!swap(&subject, earlier).await);

    assert_eq!(subject.row(&event).await.epoch, 1);
}

async fn owner(subject: Subject) {
    let event = subject.strict_event();
    let claim = subject.mine(&event).await;
    subject.start(&claim).await;
    assert_eq!(subject.renew(&[&claim]).await, []);

    // The owner's copy still says that nothing has begun: the answer to its start was lost.
    let end = claim.as_row().retry(true, None, Certainty::NotRun, &crate::outcome::Note::new("not run"));
    let write = |nonce| Swap { event: event.event.clone(), guard: Guard::Owner(nonce), next: end.clone(), rider: None };

    assert!(!swap(&subject, write(again(&event).nonce)).await, "another attempt's");
    assert!(swap(&subject, write(event.nonce)).await);
    assert!(!swap(&subject, write(event.nonce)).await, "no longer running");
    let row = subject.row(&event).await;
    assert_eq!((row.state, row.phase, row.failures), (State::Retry, Phase::NotBegun, 1));
}

/// The row of an event that was put aside still names its owner, and so does the requeued one, under the next epoch.
async fn requeued_meanwhile(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.event(), Certainty::Over).await;
    subject.process.claims.requeue(seq, "operator").await.unwrap();

    assert_lost(&subject.settle(&event, &failed(Certainty::Over)).await);

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch, row.failures), (State::Retry, 2, 0));
}

async fn entry(subject: Subject) {
    let event = subject.event();
    let enter = async |intent: &Arc<ClaimIntent>| {
        let entry = [Entry { intent: Arc::clone(intent), first: Next::first(intent, subject.lease) }];
        resent(async || subject.process.table.enter(&entry).await).await.expect("entries are answered").remove(0)
    };
    assert!(matches!(enter(&event).await, Entered::Inserted));
    let row = subject.row(&event).await;

    for late in [Arc::clone(&event), again_suspect(&event)] {
        let Entered::Found(seen) = enter(&late).await else { panic!("there is a row") };
        assert_eq!(seen.row, row);
        assert_eq!((seen.held_off, seen.server), (None, None), "asked for only where the row is stale");
    }

    assert_eq!(subject.row(&event).await, row);
    let old = subject.event_with(|intent| intent.born = chrono::DateTime::UNIX_EPOCH);
    assert!(matches!(enter(&old).await, Entered::Old));
    assert!(subject.find(&old).await.is_none());
}

async fn absent(subject: Subject) {
    let event = subject.event();
    let insert = |next: Next| Swap { event: event.event.clone(), guard: Guard::Absent, next, rider: None };
    let claim = Claim { epoch: 7, ..subject.known(&event) };

    assert!(swap(&subject, insert(claim.done())).await);
    assert!(!swap(&subject, insert(claim.as_row())).await);

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch, row.event), (State::Done, 7, event.event.clone()));
    assert!(row.finished_at.is_some() && row.deadline.is_none());
}

async fn no_rider(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let aside = |guard| Swap {
        event: event.event.clone(),
        guard,
        next: subject.known(&event).as_row().quarantined(true, Certainty::Over, Reason::Permanent),
        rider: Some(Rider::Aside(Aside {
            reason: Reason::Permanent,
            detail: crate::outcome::Detail::new(b"no"),
            intent: Arc::clone(&event),
        })),
    };

    assert!(!swap(&subject, aside(Guard::Owner(again(&event).nonce))).await);
    assert!(!swap(&subject, aside(Guard::Absent)).await);
    assert!(subject.quarantined(&event).await.is_empty());

    let request = Swap {
        rider: Some(Rider::Request { seq: i64::MAX, by: crate::outcome::Note::new("operator") }),
        ..aside(Guard::Owner(event.nonce))
    };
    assert!(!swap(&subject, request).await, "there is no such quarantine row");
    assert_eq!(subject.row(&event).await.state, State::Running);
}

async fn in_place(subject: Subject) {
    let table = &subject.process.table;
    let known = subject.event();
    subject.mine(&known).await;
    let old = subject.event_with(|intent| intent.born = chrono::DateTime::UNIX_EPOCH);
    let fresh: Vec<_> = (0..40).map(|_| subject.event()).collect();
    let mut intents = vec![again(&known), Arc::clone(&old)];
    intents.extend(fresh.iter().cloned());
    intents.reverse();
    let entries: Vec<_> = intents
        .iter()
        .map(|intent| Entry { intent: Arc::clone(intent), first: Next::first(intent, subject.lease) })
        .collect();

    let entered = resent(async || table.enter(&entries).await).await.unwrap();

    for (intent, answer) in intents.iter().zip(&entered) {
        let fits = match answer {
            Entered::Inserted => fresh.iter().any(|one| one.key() == intent.key()),
            Entered::Found(seen) => intent.key() == known.key() && seen.row.nonce == known.nonce,
            Entered::Old => intent.key() == old.key(),
            Entered::Raced => false,
        };
        assert!(fits, "{answer:?}");
    }
    let mut claims: Vec<_> = fresh.iter().map(|intent| intent.reference()).collect();
    claims.insert(7, again(&known).reference());
    let renewed = resent(async || table.renew(&claims).await).await.unwrap();
    let completed = resent(async || table.complete(&claims).await).await.unwrap();
    let expected: Vec<_> = (0..claims.len()).map(|place| place != 7).collect();
    assert_eq!((&renewed, &completed), (&expected, &expected));
    let keys: Vec<_> = [old.key(), known.key(), fresh[3].key()].into();
    let seen = resent(async || table.read(&keys).await).await.unwrap();
    let states: Vec<_> = seen.iter().map(|seen| seen.as_ref().map(|seen| seen.row.state)).collect();
    assert_eq!(states, [None, Some(State::Running), Some(State::Done)]);
    let swaps: Vec<_> = [known.nonce, fresh[0].nonce]
        .into_iter()
        .zip([&known, &fresh[0]])
        .map(|(nonce, event)| Swap {
            event: event.event.clone(),
            guard: Guard::Owner(nonce),
            next: subject.known(event).started(subject.lease),
            rider: None,
        })
        .collect();
    assert_eq!(resent(async || table.swap(&swaps).await).await.unwrap(), [true, false]);
}

/// A row that is gone: as after a failover to a server that lagged, or a restored backup. Here it never was.
async fn renewal_restores(subject: Subject) {
    let event = subject.strict_event();
    let gone = Claim { epoch: 4, lost: 1, failures: 2, phase: Phase::MayHaveRun, ..subject.known(&event) };

    let answer = subject.renewed(&[&gone]).await;

    assert_eq!((answer.renewed, answer.lost), (vec![event.reference()], vec![]));
    let row = subject.row(&event).await;
    assert_eq!((row.state, row.phase, row.strict), (State::Running, Phase::MayHaveRun, true));
    assert_eq!((row.epoch, row.failures, row.lost, row.nonce), (4, 2, 1, event.nonce));
    assert_waits(&subject.claim(&again_suspect(&event)).await, Wait::Running);
    subject.settled(&event, &Outcome::Done).await;
}

async fn ends_restored(subject: Subject) {
    let gone = |subject: &Subject, event: &Arc<ClaimIntent>| Claim {
        epoch: 4,
        phase: Phase::MayHaveRun,
        ..subject.known(event)
    };
    let settle = async |claim: &Claim, outcome: Outcome| {
        resent(async || subject.process.claims.settle(claim, &outcome).await).await.unwrap();
    };
    let unknown = subject.strict_event();
    settle(&gone(&subject, &unknown), quarantine(Reason::OutcomeUnknown, Certainty::Open)).await;
    assert_quarantined(&subject.claim(&again_suspect(&unknown)).await, Reason::OutcomeUnknown);
    assert_eq!(subject.quarantine_row(&unknown, Reason::OutcomeUnknown).await.epoch, 4);

    let retried = subject.event();
    settle(&gone(&subject, &retried), failed(Certainty::Over)).await;
    let claim = subject.mine(&again(&retried)).await;
    assert_eq!((claim.epoch, claim.failures), (5, 1));

    let done = subject.event();
    settle(&gone(&subject, &done), Outcome::Done).await;
    assert_settled(&subject.claim(&again(&done)).await);
    assert_eq!(subject.row(&done).await.epoch, 4);
}

async fn start_restored(subject: Subject) {
    let event = subject.strict_event();

    subject.start(&Claim { epoch: 2, ..subject.known(&event) }).await;

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.phase, row.epoch), (State::Running, Phase::MayHaveRun, 2));
    assert!(row.deadline.is_some());
}

async fn replaced(subject: Subject) {
    let event = subject.event();
    let gone = subject.known(&event);
    let other = again(&event);
    subject.mine(&other).await;

    assert_eq!(subject.renew(&[&gone]).await, [event.nonce]);
    assert_lost(&subject.try_start(&gone).await);
    for outcome in [Outcome::Done, handed_back(Certainty::Over), quarantine(Reason::OutcomeUnknown, Certainty::Open)] {
        assert_lost(&subject.settle(&event, &outcome).await);
    }

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.nonce), (State::Running, other.nonce));
}
