//! More than one process: what a store keeps when one dies, and what two of them see of each other.

use std::time::Duration;

use super::{
    Case, Reach,
    subject::{
        Subject, again, again_suspect, assert_lost, assert_quarantined, assert_settled, assert_waits, claim, failed,
        mine,
    },
};
use crate::{
    claim::{Claimed, Phase, State, Wait},
    claims::Requeued,
    outcome::{Certainty, Outcome, Reason},
    store::Readiness,
};

pub(super) fn cases() -> Vec<Case> {
    let successors = Reach::Successors;
    let many = Reach::ManyProcesses;
    vec![
        Case::new("an open store is ready", |s| Box::pin(ready(s))),
        Case::new("a strict event claimed and not begun is run by the next process", |s| Box::pin(not_begun(s)))
            .short()
            .needs(successors),
        Case::new("an event that died in its handler is run again by the next process", |s| Box::pin(rerun(s)))
            .short()
            .needs(successors),
        Case::new("a strict event that died in its handler is never run again", |s| Box::pin(strict(s)))
            .short()
            .needs(successors),
        Case::new("all that was written survives the process", |s| Box::pin(survives(s))).short().needs(successors),
        Case::new("a requeue survives the process", |s| Box::pin(requeue_survives(s))).short().needs(successors),
        Case::new("a copy in another process waits while the owner lives", |s| Box::pin(owner_lives(s))).needs(many),
        Case::new("two processes racing for an event have one winner", |s| Box::pin(two_race(s))).needs(many),
        Case::new("a process that has just started takes nobody over", |s| Box::pin(holdoff(s)))
            .lease(Duration::from_secs(5))
            .needs(many),
        Case::new("a replaced owner in another process can not finish", |s| Box::pin(zombie(s))).short().needs(many),
    ]
}

async fn ready(subject: Subject) {
    assert_eq!(subject.process.claims.prepare().await.unwrap(), Readiness::Ready);
}

async fn not_begun(subject: Subject) {
    let event = subject.strict_event();
    subject.mine(&event).await;
    let subject = subject.restart().await;

    let claim = mine(subject.take_over(&again_suspect(&event)).await);

    assert_eq!((claim.epoch, claim.phase, claim.strict, claim.lost), (2, Phase::NotBegun, true, 1));
}

async fn rerun(subject: Subject) {
    let event = subject.event();
    let claim = subject.mine(&event).await;
    subject.start(&claim).await;
    let subject = subject.restart().await;

    let claim = mine(subject.take_over(&again_suspect(&event)).await);

    assert_eq!((claim.epoch, claim.phase, claim.lost, claim.failures), (2, Phase::MayHaveRun, 1, 0));
}

async fn strict(subject: Subject) {
    let event = subject.strict_event();
    let claim = subject.mine(&event).await;
    subject.start(&claim).await;
    let subject = subject.restart().await;

    assert_quarantined(&subject.take_over(&again_suspect(&event)).await, Reason::OwnerLost);

    let subject = subject.restart().await;
    assert_quarantined(&subject.take_over(&again_suspect(&event)).await, Reason::OwnerLost);
    subject.quarantine_row(&event, Reason::OwnerLost).await;
}

async fn survives(subject: Subject) {
    let done = subject.event();
    subject.mine(&done).await;
    subject.settled(&done, &Outcome::Done).await;
    let retried = subject.event();
    subject.mine(&retried).await;
    subject.settled(&retried, &failed(Certainty::Over)).await;
    let (aside, seq) = subject.put_aside(subject.event(), Certainty::Over).await;

    let subject = subject.restart().await;

    assert_settled(&subject.claim(&again(&done)).await);
    assert_eq!(subject.mine(&again(&retried)).await.failures, 1);
    assert_quarantined(&subject.claim(&again(&aside)).await, Reason::Permanent);
    assert_eq!(subject.quarantine_row(&aside, Reason::Permanent).await.seq, seq);
}

async fn requeue_survives(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.event(), Certainty::Over).await;
    assert_eq!(subject.process.claims.requeue(seq, "operator").await.unwrap(), Requeued::Yes);

    let subject = subject.restart().await;
    assert_eq!(subject.replayable(&event).await.len(), 1);
    mine(subject.take_over(&again_suspect(&event)).await);
    let subject = subject.restart().await;
    let second = again_suspect(&event);
    mine(subject.take_over(&second).await);
    subject.settled(&second, &Outcome::Done).await;
    let subject = subject.restart().await;

    let rows = subject.replayable(&event).await;
    let raw = rows[0].raw.as_ref().expect("it holds the delivery");
    assert_eq!((rows.len(), &raw.data), (1, &event.raw.data));
    assert_settled(&subject.claim(&again(&event)).await);
    assert!(subject.process.claims.close(seq, "replayed").await.unwrap());
    assert!(subject.restart().await.replayable(&event).await.is_empty());
}

async fn owner_lives(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let other = subject.second().await;

    assert_waits(&claim(&other, &again_suspect(&event)).await, Wait::Running);
    subject.settled(&event, &Outcome::Done).await;

    assert_settled(&claim(&other, &again(&event)).await);
}

async fn two_race(subject: Subject) {
    let other = subject.second().await;
    for _ in 0..100 {
        let event = subject.event();
        let (left, right) = (again(&event), again(&event));

        let (left, right) = tokio::join!(claim(&subject.process, &left), claim(&other, &right));

        let winners = [left, right].iter().filter(|answer| matches!(answer, Claimed::Mine(_))).count();
        assert_eq!(winners, 1);
    }
}

async fn holdoff(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.outlive_leases().await;
    let newcomer = subject.second().await;

    assert_waits(&claim(&newcomer, &again_suspect(&event)).await, Wait::Running);

    assert_eq!((subject.row(&event).await.state, subject.row(&event).await.epoch), (State::Running, 1));
    subject.outlive_leases().await;
    assert_eq!(mine(claim(&newcomer, &again_suspect(&event)).await).epoch, 2);
}

async fn zombie(subject: Subject) {
    let event = subject.event();
    let zombie = subject.mine(&event).await;
    subject.outlive_leases().await;
    let other = subject.second().await;
    let (subject, first) = subject.go_on_as(other);
    let successor = again_suspect(&event);
    mine(subject.take_over(&successor).await);

    assert_lost(&first.claims.settle(&zombie, &Outcome::Done).await);
    assert_eq!(first.claims.renew(std::slice::from_ref(&zombie)).await.unwrap().lost, [zombie.reference()]);

    subject.settled(&successor, &Outcome::Done).await;
    assert_eq!((subject.row(&event).await.state, subject.row(&event).await.epoch), (State::Done, 2));
}
