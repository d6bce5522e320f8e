//! Forgetting, and counting: cases that look at everything in the store.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;

use super::{
    Case,
    subject::{Subject, again, again_suspect, assert_quarantined, failed, mine, quarantine, resent},
};
use crate::{
    claim::{ClaimIntent, State},
    claims::Requeued,
    outcome::{Certainty, Outcome, Reason},
    store::Counts,
};

pub(super) fn cases() -> Vec<Case> {
    let soon = Duration::from_secs(1);
    vec![
        Case::new("retention forgets finished events and nothing else", |s| Box::pin(forgets_finished(s))).alone(soon),
        Case::new("an event put aside can be requeued when its claim is forgotten", |s| Box::pin(requeue_later(s)))
            .alone(soon),
        Case::new("quarantine forgets settled rows and nothing else", |s| Box::pin(forgets_settled(s))).alone(soon),
        Case::new("a young event is not forgotten", |s| Box::pin(keeps_young(s)))
            .alone(Duration::from_secs(10 * 86_400)),
        Case::new("counts tell what is in quarantine and what is stale", |s| Box::pin(counts(s)))
            .short()
            .alone(Duration::from_secs(10 * 86_400)),
    ]
}

/// So far from now that neither retention nor fence reach it.
const FAR: Duration = Duration::from_secs(30 * 86_400);

/// A new event that the fence of a store with hardly any retention lets in.
fn young(subject: &Subject) -> Arc<ClaimIntent> {
    subject.event_with(|intent| intent.born += TimeDelta::days(1))
}

async fn expire(subject: &Subject, quarantine_retention: Duration) {
    while resent(async || subject.process.claims.expire(quarantine_retention).await).await.unwrap() > 0 {}
}

async fn forgets_finished(subject: Subject) {
    let [done, aside, running, retried] = [(); 4].map(|()| young(&subject));
    for event in [&done, &aside, &running, &retried] {
        subject.mine(event).await;
    }
    subject.settled(&done, &Outcome::Done).await;
    subject.settled(&aside, &quarantine(Reason::Permanent, Certainty::Over)).await;
    subject.settled(&retried, &failed(Certainty::Over)).await;
    subject.pass(Duration::from_millis(1_100)).await;

    expire(&subject, FAR).await;

    assert!(subject.find(&done).await.is_none());
    assert!(subject.find(&aside).await.is_none());
    assert_eq!(subject.row(&running).await.state, State::Running);
    assert_eq!(subject.row(&retried).await.state, State::Retry);
    subject.quarantine_row(&aside, Reason::Permanent).await;
    let copy = subject.event_with(|intent| intent.event.key = done.key());
    let old = again(&copy);
    assert_eq!(subject.mine(&young_copy(&old)).await.epoch, 1);
}

/// The same event as the fence lets it in.
fn young_copy(intent: &ClaimIntent) -> Arc<ClaimIntent> {
    super::subject::again_with(intent, |copy| copy.born += TimeDelta::days(1))
}

async fn requeue_later(subject: Subject) {
    let (event, seq) = subject.put_aside(young(&subject), Certainty::Over).await;
    subject.pass(Duration::from_millis(1_100)).await;
    expire(&subject, FAR).await;
    assert!(subject.find(&event).await.is_none());

    assert_eq!(subject.process.claims.requeue(seq, "operator").await.unwrap(), Requeued::Yes);

    assert_eq!(subject.replayable(&event).await.len(), 1);
    let old = super::subject::again_with(&event, |copy| copy.born -= TimeDelta::days(2));
    assert!(subject.mine(&old).await.epoch > 1);
}

async fn forgets_settled(subject: Subject) {
    let (open, open_seq) = subject.put_aside(young(&subject), Certainty::Over).await;
    let (_, closed_seq) = subject.put_aside(young(&subject), Certainty::Over).await;
    let (asked, asked_seq) = subject.put_aside(young(&subject), Certainty::Over).await;
    subject.process.claims.close(closed_seq, "discarded").await.unwrap();
    subject.process.claims.requeue(asked_seq, "operator").await.unwrap();
    subject.pass(Duration::from_millis(1_100)).await;

    expire(&subject, Duration::from_secs(1)).await;

    assert_eq!(subject.replayable(&asked).await.len(), 1);
    assert_eq!(subject.quarantine_row(&open, Reason::Permanent).await.seq, open_seq);
    assert_eq!(subject.process.claims.requeue(open_seq, "operator").await.unwrap(), Requeued::Yes);
    assert!(subject.replayable(&open).await[0].raw.is_some(), "an unsettled row keeps its payload");
}

async fn keeps_young(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.settled(&event, &Outcome::Done).await;

    expire(&subject, FAR).await;

    assert_eq!(subject.row(&event).await.state, State::Done);
}

async fn counts(subject: Subject) {
    let count = async || resent(async || subject.process.claims.counts().await).await.unwrap();
    let of = |counts: &Counts, reason| {
        counts.quarantined.iter().find(|(known, _)| *known == reason).map_or(0, |(_, count)| *count)
    };
    let before = count().await;
    let (_, closed) = subject.put_aside(subject.event(), Certainty::Over).await;
    subject.put_aside(subject.event(), Certainty::Over).await;
    subject.process.claims.close(closed, "discarded").await.unwrap();
    let strict = subject.strict_event();
    let claim = subject.mine(&strict).await;
    subject.start(&claim).await;
    let stale = subject.event();
    subject.mine(&stale).await;
    subject.outlive_leases().await;
    assert_quarantined(&subject.take_over(&again(&strict)).await, Reason::OwnerLost);

    let after = count().await;

    assert_eq!(of(&after, Reason::Permanent), of(&before, Reason::Permanent) + 1, "closed rows do not count");
    assert_eq!(of(&after, Reason::OwnerLost), of(&before, Reason::OwnerLost) + 1);
    assert!(after.oldest_quarantined_at.is_some());
    assert!(after.stale > 0);
    assert_eq!(after.stranded, before.stranded);
    let next = again_suspect(&stale);
    mine(subject.take_over(&next).await);
    subject.settled(&next, &Outcome::Done).await;
}
