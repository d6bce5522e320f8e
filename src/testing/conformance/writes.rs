//! The writes of an attempt: steps, renewal, outcomes; each only by the attempt that the row names.

use std::time::Duration;

use super::{
    Case,
    subject::{Subject, again, assert_lost, assert_quarantined, assert_settled, failed, handed_back, quarantine},
};
use crate::{
    claim::{Claim, Standing, State},
    claims::Requeued,
    outcome::{Certainty, Note, Outcome, Reason},
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("only the owner may start, and not once it has settled", |s| Box::pin(start(s))),
        Case::new("renewal names exactly the claims that were not renewed", |s| Box::pin(renewal_names_lost(s))),
        Case::new("renewal moves the end of the lease", |s| Box::pin(renewal_moves(s))),
        Case::new("a lease outlives the promised deadline by five minutes at most", |s| Box::pin(renewal_limit(s)))
            .lease(Duration::from_secs(3_600)),
        Case::new("completing twice is harmless", |s| Box::pin(complete_twice(s))),
        Case::new("nobody but the named attempt completes", |s| Box::pin(complete_by_others(s))),
        Case::new("a completion is inserted where the row is gone", |s| Box::pin(complete_without_row(s))),
        Case::new("a late success is recorded over a retry", |s| Box::pin(late_over_retry(s))),
        Case::new("a late success is recorded over quarantine and settles its row", |s| Box::pin(late_over_aside(s))),
        Case::new("a failure is counted once and noted", |s| Box::pin(retry_counts(s))),
        Case::new("handing back costs nothing", |s| Box::pin(hand_back_costs_nothing(s))),
        Case::new("a claim that was never answered can be given up", |s| Box::pin(give_up(s))),
        Case::new("the owner quarantines with reason, detail and payload", |s| Box::pin(quarantine_by_owner(s))),
        Case::new("the last failure is counted when it is put aside", |s| Box::pin(quarantine_counts(s))),
        Case::new("only the owner retries or quarantines", |s| Box::pin(verdicts_of_others(s))),
        Case::new("parked copies see how their events stand", |s| Box::pin(look(s))),
    ]
}

async fn start(subject: Subject) {
    let event = subject.strict_event();
    let claim = subject.mine(&event).await;
    let other = Claim { intent: again(&event), ..claim.clone() };

    subject.start(&claim).await;
    subject.start(&claim).await;

    assert_lost(&subject.try_start(&other).await);
    subject.settled(&event, &Outcome::Done).await;
    assert_lost(&subject.try_start(&claim).await);
}

async fn renewal_names_lost(subject: Subject) {
    let mut kept = Vec::new();
    for _ in 0..230 {
        kept.push(subject.mine(&subject.event()).await);
    }
    let done = subject.mine(&subject.event()).await;
    subject.settled(&done.intent, &Outcome::Done).await;
    let retried = subject.mine(&subject.event()).await;
    subject.settled(&retried.intent, &failed(Certainty::Over)).await;
    let foreign = Claim { intent: again(&kept[0].intent), ..kept[0].clone() };
    let mut all = vec![&done, &foreign];
    all.extend(&kept);
    all.push(&retried);

    let answer = subject.renewed(&all).await;
    let mut lost: Vec<_> = answer.lost.iter().map(|claim| claim.nonce).collect();
    assert_eq!(answer.renewed.len(), kept.len());

    let mut expected = [&done, &foreign, &retried].map(|claim| claim.intent.nonce);
    expected.sort_unstable();
    lost.sort_unstable();
    assert_eq!(lost, expected);
    assert_eq!(subject.renew(&[]).await, []);
}

async fn renewal_moves(subject: Subject) {
    let claim = subject.mine(&subject.event()).await;
    subject.pass(Duration::from_secs(1)).await;
    let left = wait(subject.standing(&claim.intent).await);

    assert_eq!(subject.renew(&[&claim]).await, []);

    let renewed = wait(subject.standing(&claim.intent).await);
    assert!(renewed > left, "{renewed:?} left after, {left:?} before");
}

async fn renewal_limit(subject: Subject) {
    let event = subject.event_with(|intent| intent.timeout = Duration::from_secs(1));
    let claim = subject.mine(&event).await;

    assert_eq!(subject.renew(&[&claim]).await, []);

    let left = wait(subject.standing(&event).await);
    let limit = event.timeout + Duration::from_secs(300) + subject.lease.grace() * 2;
    assert!(left <= limit, "{left:?} left, {limit:?} allowed");
}

fn wait(standing: Standing) -> Duration {
    match standing {
        Standing::Wait(left) => left,
        other => panic!("expected to wait, got {other:?}"),
    }
}

async fn complete_twice(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;

    subject.settled(&event, &Outcome::Done).await;
    let first = subject.row(&event).await;
    subject.settled(&event, &Outcome::Done).await;

    let second = subject.row(&event).await;
    assert_eq!((second.state, second.epoch, second.finished_at), (State::Done, 1, first.finished_at));
}

async fn complete_by_others(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;

    assert_lost(&subject.settle(&again(&event), &Outcome::Done).await);
    assert_eq!(subject.row(&event).await.state, State::Running);
    subject.settled(&event, &failed(Certainty::Over)).await;
    assert_lost(&subject.settle(&again(&event), &Outcome::Done).await);

    assert_eq!(subject.row(&event).await.state, State::Retry);
}

async fn complete_without_row(subject: Subject) {
    let event = subject.event();

    subject.settled(&event, &Outcome::Done).await;

    assert_eq!(subject.row(&event).await.state, State::Done);
    assert_settled(&subject.claim(&again(&event)).await);
    subject.settled(&event, &Outcome::Done).await;
}

async fn late_over_retry(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.settled(&event, &failed(Certainty::Open)).await;

    subject.settled(&event, &Outcome::Done).await;

    assert_settled(&subject.claim(&again(&event)).await);
    let next = subject.event();
    subject.mine(&next).await;
    subject.settled(&next, &failed(Certainty::Open)).await;
    let successor = again(&next);
    subject.mine(&successor).await;
    assert_lost(&subject.settle(&next, &Outcome::Done).await);
    assert_eq!(subject.row(&next).await.state, State::Running);
}

async fn late_over_aside(subject: Subject) {
    let (event, seq) = subject.put_aside(subject.strict_event(), Certainty::Open).await;
    let finished_at = subject.row(&event).await.finished_at;

    subject.settled(&event, &Outcome::Done).await;

    assert_eq!(subject.row(&event).await.finished_at, finished_at);

    assert_settled(&subject.claim(&again(&event)).await);
    assert_eq!(subject.process.claims.requeue(seq, "operator").await.unwrap(), Requeued::NotFound);
    assert!(!subject.process.claims.close(seq, "too late").await.unwrap());
}

async fn retry_counts(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let note = Outcome::Retry {
        counts: true,
        after: None,
        certainty: Certainty::Over,
        note: Note::new("the handler answered 503"),
    };
    subject.settled(&event, &note).await;

    let repeated = subject.settle(&event, &note).await;

    assert!(repeated.is_ok(), "its own write is recognised: {repeated:?}");
    let row = subject.row(&event).await;
    assert_eq!((row.state, row.failures, row.lost), (State::Retry, 1, 0));
    assert_eq!((row.note.as_str(), row.finished_at), ("the handler answered 503", None));
}

async fn hand_back_costs_nothing(subject: Subject) {
    let event = subject.event();
    for _ in 0..5 {
        let attempt = again(&event);
        subject.mine(&attempt).await;
        subject.settled(&attempt, &handed_back(Certainty::Open)).await;
    }

    let claim = subject.mine(&again(&event)).await;

    assert_eq!((claim.epoch, claim.failures, claim.lost), (6, 0, 0));
}

async fn give_up(subject: Subject) {
    for strict in [false, true] {
        let event = subject.event_with(|intent| intent.strict = strict);
        subject.mine(&event).await;

        subject.process.claims.give_up(&again(&event)).await.unwrap();
        assert_eq!(subject.row(&event).await.state, State::Running, "somebody else's claim stands");
        subject.process.claims.give_up(&event).await.unwrap();

        let claim = subject.mine(&again(&event)).await;
        assert_eq!((claim.epoch, claim.failures, claim.lost), (2, 0, 0));
    }
    let unseen = subject.event();
    subject.process.claims.give_up(&unseen).await.unwrap();
    assert_eq!(subject.mine(&again(&unseen)).await.epoch, 1);
}

async fn quarantine_by_owner(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let verdict = quarantine(Reason::Permanent, Certainty::Over);

    subject.settled(&event, &verdict).await;
    let repeated = subject.settle(&event, &verdict).await;

    assert!(repeated.is_ok(), "its own write is recognised: {repeated:?}");
    let row = subject.quarantine_row(&event, Reason::Permanent).await;
    assert_eq!((row.nonce, row.epoch, row.requests), (event.nonce, 1, 0));
    assert_eq!((row.event_id.as_str(), row.event_type.as_str()), (event.event.event_id.as_str(), "MESSAGE"));
    assert_eq!(row.detail, "what the handler said");
    assert!(row.raw.is_none(), "listings carry no payload");
    let claim = subject.row(&event).await;
    assert_eq!((claim.state, claim.failures), (State::Quarantined, 0));
    assert!(claim.finished_at.is_some());
}

async fn quarantine_counts(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let Outcome::Quarantine { reason, certainty, detail, .. } = quarantine(Reason::FailuresExhausted, Certainty::Over)
    else {
        unreachable!("it is one");
    };

    subject.settled(&event, &Outcome::Quarantine { reason, counts: true, certainty, detail }).await;

    assert_eq!(subject.row(&event).await.failures, 1);
    assert_quarantined(&subject.claim(&again(&event)).await, Reason::FailuresExhausted);
}

async fn verdicts_of_others(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let other = again(&event);
    let verdicts = [failed(Certainty::Over), quarantine(Reason::Permanent, Certainty::Over)];

    for verdict in &verdicts {
        assert_lost(&subject.settle(&other, verdict).await);
    }
    assert_eq!((subject.row(&event).await.state, subject.row(&event).await.failures), (State::Running, 0));
    subject.settled(&event, &Outcome::Done).await;
    for verdict in &verdicts {
        assert_lost(&subject.settle(&event, verdict).await);
    }

    assert_eq!(subject.row(&event).await.state, State::Done);
    assert!(subject.quarantined(&event).await.is_empty());
}

async fn look(subject: Subject) {
    let [absent, running, done, aside, due, later] = [(); 6].map(|()| subject.event());
    for event in [&running, &done, &aside, &due, &later] {
        subject.mine(event).await;
    }
    subject.settled(&done, &Outcome::Done).await;
    subject.settled(&aside, &quarantine(Reason::Permanent, Certainty::Over)).await;
    subject.settled(&due, &failed(Certainty::Over)).await;
    let hour = Duration::from_secs(3_600);
    let retry = Outcome::Retry { counts: true, after: Some(hour), certainty: Certainty::Over, note: Note::default() };
    subject.settled(&later, &retry).await;

    let keys = [&absent, &running, &done, &aside, &due, &later].map(|event| event.key());
    let standings = subject.process.claims.look(&keys).await.unwrap();

    let [absent, running, done, aside, due, later] = standings[..] else { panic!("one for each: {standings:?}") };
    assert_eq!((absent, done, aside), (Standing::Absent, Standing::Settled, Standing::Quarantined));
    assert_eq!(due, Standing::Claimable);
    let left = wait(running);
    assert!(left > Duration::ZERO && left <= subject.lease.length() + subject.lease.grace());
    let left = wait(later);
    assert!(left > hour / 2 && left <= hour);
    assert!(subject.process.claims.look(&[]).await.unwrap().is_empty());
}
