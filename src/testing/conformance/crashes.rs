//! Owners that fall silent: what the next claimer finds once lease and grace are over.

use super::{
    Case,
    subject::{
        Subject, again, again_suspect, again_with, assert_lost, assert_quarantined, assert_settled, assert_waits,
        failed, handed_back, mine, quarantine,
    },
};
use crate::{
    claim::{Phase, Standing, State, Wait},
    claims::Requeued,
    outcome::{CUT_BY_DRAIN, Certainty, Note, Outcome, Reason},
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("at every step, what a dead owner may have run decides with the stricter rule", |s| {
            Box::pin(every_step(s))
        })
        .short(),
        Case::new("a stale event waits for the suspect permit and is untouched meanwhile", |s| Box::pin(permit(s)))
            .short(),
        Case::new("an event whose owner was lost stays suspect after it is handed back", |s| Box::pin(suspect(s)))
            .short(),
        Case::new("a strict event that may have run needs no permit to be put aside", |s| Box::pin(owner_lost(s)))
            .short(),
        Case::new("an event that spent its owners is quarantined", |s| Box::pin(lost_spent(s))).short(),
        Case::new("a silent owner that nobody replaced goes on", |s| Box::pin(silent_owner(s))).short(),
        Case::new("a replaced owner can neither renew, start, finish nor release", |s| Box::pin(zombie(s))).short(),
        Case::new("a late success settles what was put aside when its owner was lost", |s| Box::pin(late_verdict(s)))
            .short(),
        Case::new("a claim that arrived after its sender gave up expires unharmed", |s| Box::pin(late_packet(s)))
            .short(),
        Case::new("an owner that was lost is not taken for one that a drain cut", |s| Box::pin(lost_after_drain(s)))
            .short(),
        Case::new("a stale event looks claimable to its parked copies", |s| Box::pin(stale_looks_claimable(s))).short(),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Claimed,
    Started,
}

async fn every_step(subject: Subject) {
    let mut dead = Vec::new();
    for first in [false, true] {
        for second in [false, true] {
            for reached in [Reached::Claimed, Reached::Started] {
                let event = subject.event_with(|intent| intent.strict = first);
                let claim = subject.mine(&event).await;
                if reached == Reached::Started {
                    subject.start(&claim).await;
                }
                dead.push((first, second, reached, event));
            }
        }
    }
    subject.outlive_leases().await;

    for (first, second, reached, event) in dead {
        let next = again_with(&event, |intent| (intent.strict, intent.suspect) = (second, true));
        let answer = subject.take_over(&next).await;

        let context = format!("first strict {first}, second strict {second}, dead when {reached:?}");
        let expected = match (reached, first, first || second) {
            (Reached::Claimed, true, _) => Some(Phase::NotBegun),
            (_, _, false) => Some(Phase::MayHaveRun),
            (_, _, true) => None,
        };
        let Some(phase) = expected else {
            assert_quarantined(&answer, Reason::OwnerLost);
            continue;
        };
        let claim = mine(answer);
        assert_eq!((claim.epoch, claim.phase, claim.lost, claim.failures), (2, phase, 1, 0), "{context}");
        assert_eq!(claim.strict, first || second, "{context}");
    }
}

async fn lost_after_drain(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let note = Note::new(CUT_BY_DRAIN);
    subject.settled(&event, &Outcome::Retry { counts: false, after: None, certainty: Certainty::Open, note }).await;
    assert!(subject.mine(&again(&event)).await.follows_a_drain());
    subject.outlive_leases().await;

    let claim = mine(subject.take_over(&again_suspect(&event)).await);

    assert_eq!((claim.lost, claim.follows_a_drain()), (1, false));
}

async fn permit(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.outlive_leases().await;

    let wake_in = assert_waits(&subject.take_over(&again(&event)).await, Wait::Suspect);

    assert!(!wake_in.is_zero(), "a parked suspect must not spin");
    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch, row.lost), (State::Running, 1, 0));
    assert_eq!(mine(subject.take_over(&again_suspect(&event)).await).lost, 1);
}

async fn suspect(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.outlive_leases().await;
    let second = again_suspect(&event);
    mine(subject.take_over(&second).await);
    subject.settled(&second, &handed_back(Certainty::Over)).await;

    assert_waits(&subject.claim(&again(&event)).await, Wait::Suspect);

    let claim = subject.mine(&again_suspect(&event)).await;
    assert_eq!((claim.epoch, claim.lost, claim.failures), (3, 1, 0));
}

async fn owner_lost(subject: Subject) {
    let event = subject.strict_event();
    let claim = subject.mine(&event).await;
    subject.start(&claim).await;
    subject.outlive_leases().await;

    assert_quarantined(&subject.take_over(&again(&event)).await, Reason::OwnerLost);

    assert_quarantined(&subject.claim(&again_suspect(&event)).await, Reason::OwnerLost);
    let row = subject.quarantine_row(&event, Reason::OwnerLost).await;
    assert_eq!((row.nonce, row.epoch), (event.nonce, 1));
    let answer = subject.process.claims.requeue(row.seq, "operator").await.unwrap();
    assert_eq!(answer, Requeued::MayStillRun, "its handler was given an hour");
}

async fn lost_spent(subject: Subject) {
    for strict in [false, true] {
        let event = subject.event_with(|intent| {
            intent.strict = strict;
            intent.budget.max_lost = 1;
        });
        subject.mine(&event).await;
        subject.outlive_leases().await;
        assert_eq!(mine(subject.take_over(&again_suspect(&event)).await).lost, 1);
        subject.outlive_leases().await;

        assert_quarantined(&subject.take_over(&again(&event)).await, Reason::LostExhausted);

        let row = subject.quarantine_row(&event, Reason::LostExhausted).await;
        assert_eq!(row.epoch, 2);
        assert_eq!((subject.row(&event).await.lost, subject.row(&event).await.state), (1, State::Quarantined));
    }
}

async fn silent_owner(subject: Subject) {
    let event = subject.event();
    let claim = subject.mine(&event).await;
    subject.outlive_leases().await;

    assert_eq!(subject.mine(&event).await.epoch, 1);
    subject.outlive_leases().await;
    assert_eq!(subject.renew(&[&claim]).await, []);
    subject.outlive_leases().await;
    subject.settled(&event, &failed(Certainty::Over)).await;

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch, row.failures, row.lost), (State::Retry, 1, 1, 0));
}

async fn zombie(subject: Subject) {
    let event = subject.event();
    let zombie = subject.mine(&event).await;
    subject.outlive_leases().await;
    let successor = again_suspect(&event);
    mine(subject.take_over(&successor).await);

    assert_eq!(subject.renew(&[&zombie]).await, [event.nonce]);
    assert_lost(&subject.try_start(&zombie).await);
    for outcome in [Outcome::Done, failed(Certainty::Over), quarantine(Reason::OutcomeUnknown, Certainty::Open)] {
        assert_lost(&subject.settle(&event, &outcome).await);
    }

    assert_eq!((subject.row(&event).await.state, subject.row(&event).await.epoch), (State::Running, 2));
    subject.settled(&successor, &Outcome::Done).await;
    assert_lost(&subject.settle(&event, &Outcome::Done).await);
    assert_settled(&subject.claim(&again(&event)).await);
    assert!(subject.quarantined(&event).await.is_empty());
}

async fn late_verdict(subject: Subject) {
    let event = subject.strict_event();
    let claim = subject.mine(&event).await;
    subject.start(&claim).await;
    subject.outlive_leases().await;
    assert_quarantined(&subject.take_over(&again(&event)).await, Reason::OwnerLost);
    let seq = subject.quarantine_row(&event, Reason::OwnerLost).await.seq;

    subject.settled(&event, &Outcome::Done).await;

    assert_settled(&subject.claim(&again(&event)).await);
    assert_eq!(subject.process.claims.requeue(seq, "operator").await.unwrap(), Requeued::NotFound);
}

async fn late_packet(subject: Subject) {
    let event = subject.strict_event();
    subject.process.claims.give_up(&event).await.unwrap();
    assert!(subject.find(&event).await.is_none());
    subject.mine(&event).await;
    subject.outlive_leases().await;

    let claim = mine(subject.take_over(&again_suspect(&event)).await);

    assert_eq!((claim.epoch, claim.phase, claim.lost), (2, Phase::NotBegun, 1));
    assert!(subject.quarantined(&event).await.is_empty());
}

async fn stale_looks_claimable(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.outlive_leases().await;

    // A store that holds take-overs off after its start says how long instead.
    for _ in 0..20 {
        match subject.standing(&event).await {
            Standing::Claimable => return,
            Standing::Wait(left) => subject.pass(left.max(subject.lease.grace())).await,
            other => panic!("expected a stale event, got {other:?}"),
        }
    }
    panic!("a stale event never looked claimable");
}
