//! Quarantine from the operator's side: requeue, replay, close.

use std::time::Duration;

use chrono::TimeDelta;

use super::{
    Case,
    subject::{
        Subject, again, again_suspect, again_with, assert_quarantined, assert_settled, failed, handed_back, mine,
        quarantine, resent,
    },
};
use crate::{
    claim::{Phase, State},
    claims::Requeued,
    outcome::{Certainty, Note, Outcome, Reason},
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a requeued event is claimable at once under a higher epoch with budgets anew", |s| {
            Box::pin(requeue(s))
        }),
        Case::new("a requeued strict event begins anew and stays strict", |s| Box::pin(requeue_strict(s))),
        Case::new("an event too old to be new runs once it is requeued", |s| Box::pin(requeue_too_old(s))),
        Case::new("a requeue is refused while the handler may still run", |s| Box::pin(may_still_run(s))),
        Case::new("an event that has not begun has promised no deadline", |s| Box::pin(nothing_promised(s))),
        Case::new("a requeue is accepted once the promised deadline is over", |s| Box::pin(deadline_over(s))).short(),
        Case::new("there is no requeue of what is unknown or closed", |s| Box::pin(not_found(s))),
        Case::new("a row is closed once and its event stays", |s| Box::pin(close(s))),
        Case::new("a requeued row is the delivery, byte for byte", |s| Box::pin(delivery(s))),
        Case::new("a row is offered until it is settled, unless its event runs or is not due", |s| {
            Box::pin(offered(s))
        }),
        Case::new("a replay that dies at any step ends handled or in quarantine", |s| Box::pin(replay_dies(s))).short(),
        Case::new("a replay that fails for good is a quarantine row of its own", |s| Box::pin(replay_fails(s))),
    ]
}

async fn requeued(subject: &Subject, seq: i64) -> Requeued {
    resent(async || subject.process.claims.requeue(seq, "operator").await).await.unwrap()
}

async fn requeue(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.settled(&event, &failed(Certainty::Over)).await;
    let (second, seq) = subject.put_aside(again(&event), Certainty::Over).await;

    assert_eq!(requeued(&subject, seq).await, Requeued::Yes);

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch, row.failures, row.lost), (State::Retry, 3, 0, 0));
    assert_eq!(row.finished_at, None);
    let claim = subject.mine(&again(&second)).await;
    assert_eq!((claim.epoch, claim.failures, claim.lost, claim.phase), (4, 0, 0, Phase::MayHaveRun));
}

async fn requeue_strict(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.strict_event(), Certainty::Over).await;

    assert_eq!(requeued(&subject, seq).await, Requeued::Yes);

    let lax = again_with(&event, |intent| intent.strict = false);
    let claim = subject.mine(&lax).await;
    assert_eq!((claim.epoch, claim.phase, claim.strict), (3, Phase::NotBegun, true));
}

async fn requeue_too_old(subject: Subject) {
    let old = subject.event_with(|intent| intent.born -= TimeDelta::days(60));
    assert_quarantined(&subject.claim(&old).await, Reason::TooOld);
    let seq = subject.quarantine_row(&old, Reason::TooOld).await.seq;

    assert_eq!(requeued(&subject, seq).await, Requeued::Yes);

    let claim = subject.mine(&again(&old)).await;
    assert_eq!(claim.phase, Phase::MayHaveRun);
    assert!(claim.epoch > 1);
}

async fn may_still_run(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.event(), Certainty::Open).await;

    assert_eq!(requeued(&subject, seq).await, Requeued::MayStillRun);

    assert_eq!(subject.row(&event).await.state, State::Quarantined);
    assert!(subject.replayable(&event).await.is_empty());
    for certainty in [Certainty::Over, Certainty::NotRun] {
        let (_, seq) = subject.put_aside(subject.event(), certainty).await;
        assert_eq!(requeued(&subject, seq).await, Requeued::Yes);
    }
}

async fn nothing_promised(subject: Subject) {
    let fresh = subject.strict_event();
    let begun = subject.event();
    subject.mine(&begun).await;
    subject.settled(&begun, &handed_back(Certainty::Over)).await;
    let taken = again_with(&begun, |intent| intent.strict = true);
    assert_quarantined(&subject.claim(&taken).await, Reason::OutcomeUnknown);
    subject.mine(&fresh).await;
    subject.settled(&fresh, &handed_back(Certainty::NotRun)).await;
    let second = again(&fresh);
    subject.mine(&second).await;

    subject.settled(&second, &quarantine(Reason::Operator, Certainty::Open)).await;

    for (event, reason) in [(&second, Reason::Operator), (&taken, Reason::OutcomeUnknown)] {
        let seq = subject.quarantine_row(event, reason).await.seq;
        assert_eq!(requeued(&subject, seq).await, Requeued::Yes);
    }
}

async fn deadline_over(subject: Subject) {
    let event = subject.event_with(|intent| intent.timeout = Duration::from_millis(10));
    let (event, seq) = subject.put_aside(event, Certainty::Open).await;
    subject.pass(event.timeout).await;
    subject.outlive_leases().await;

    assert_eq!(requeued(&subject, seq).await, Requeued::Yes);
}

async fn not_found(subject: Subject) {
    let (_, seq) = subject.put_aside(subject.event(), Certainty::Over).await;
    assert!(subject.process.claims.close(seq, "discarded").await.unwrap());

    assert_eq!(requeued(&subject, seq).await, Requeued::NotFound);
    assert_eq!(requeued(&subject, i64::MAX).await, Requeued::NotFound);
}

async fn close(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.event(), Certainty::Over).await;

    assert!(subject.process.claims.close(seq, "discarded").await.unwrap());
    assert!(!subject.process.claims.close(seq, "discarded").await.unwrap());

    assert_quarantined(&subject.claim(&again(&event)).await, Reason::Permanent);
    assert!(!subject.process.claims.close(i64::MAX, "discarded").await.unwrap());
}

async fn delivery(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.event(), Certainty::Over).await;
    assert!(subject.replayable(&event).await.is_empty());
    requeued(&subject, seq).await;

    let rows = subject.replayable(&event).await;

    assert_eq!(rows.iter().map(|row| (row.seq, row.requests)).collect::<Vec<_>>(), [(seq, 1)]);
    let raw = rows[0].raw.as_ref().expect("it holds the delivery");
    assert_eq!((&raw.data, &raw.attributes), (&event.raw.data, &event.raw.attributes));
    assert_eq!((&raw.message_id, raw.publish_time), (&event.raw.message_id, event.raw.publish_time));
}

async fn offered(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.event(), Certainty::Over).await;
    requeued(&subject, seq).await;
    let offered = async || subject.replayable(&event).await.len();

    let attempt = again(&event);
    subject.mine(&attempt).await;
    assert_eq!(offered().await, 0, "running under a live lease");
    let hour = Duration::from_secs(3_600);
    let later = Outcome::Retry { counts: true, after: Some(hour), certainty: Certainty::Over, note: Note::default() };
    subject.settled(&attempt, &later).await;
    assert_eq!(offered().await, 0, "not due");
    subject.settled(&attempt, &Outcome::Done).await;
    let left = offered().await;
    subject.process.claims.close(seq, "replayed").await.unwrap();

    assert_eq!(left, 1, "the replay succeeded under a nonce of its own: the row is offered until it is closed");
    assert_eq!(offered().await, 0, "closed");
    assert_settled(&subject.claim(&again(&event)).await);
}

async fn replay_dies(subject: Subject) {
    for strict in [false, true] {
        let (event, seq) = subject.put_aside(subject.event_with(|i| i.strict = strict), Certainty::Over).await;
        requeued(&subject, seq).await;

        mine(subject.take_over(&again_suspect(&event)).await);
        subject.outlive_leases().await;
        assert_eq!(subject.replayable(&event).await.len(), 1, "its replay died after the claim");
        let second = again_suspect(&event);
        let claim = mine(subject.take_over(&second).await);
        assert_eq!((claim.epoch, claim.lost), (4, 1));
        subject.start(&claim).await;
        subject.outlive_leases().await;
        assert_eq!(subject.replayable(&event).await.len(), 1, "its replay died in the handler");
        let third = again_suspect(&event);
        let answer = subject.take_over(&third).await;

        if strict {
            assert_quarantined(&answer, Reason::OwnerLost);
        } else {
            assert_eq!(mine(answer).epoch, 5);
            subject.settled(&third, &Outcome::Done).await;
            assert_settled(&subject.claim(&again(&event)).await);
        }
        assert_eq!(subject.replayable(&event).await.len(), 1, "its replay died before its ack");
        assert!(subject.process.claims.close(seq, "replayed").await.unwrap());
        assert!(subject.replayable(&event).await.is_empty());
    }
}

async fn replay_fails(subject: Subject) {
    let (event, first) = subject.put_aside(subject.event(), Certainty::Over).await;
    requeued(&subject, first).await;

    let attempt = again(&event);
    subject.mine(&attempt).await;
    subject.settled(&attempt, &quarantine(Reason::Permanent, Certainty::Over)).await;
    assert!(subject.process.claims.close(first, "replayed").await.unwrap());

    let row = subject.quarantined(&event).await.into_iter().find(|row| row.seq != first).expect("a row of its own");
    assert_eq!((row.nonce, row.epoch), (attempt.nonce, 3));
    assert_eq!(requeued(&subject, row.seq).await, Requeued::Yes);
    assert_eq!(subject.mine(&again(&event)).await.epoch, 5);
}
