//! The answer to a claim, while nobody has died: the rows of the table that need no stale lease.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;

use super::{
    Case, DAY,
    subject::{
        Subject, again, again_suspect, again_with, assert_fresh, assert_put_aside, assert_quarantined, assert_settled,
        assert_waits, failed, handed_back, impostor, quarantine,
    },
};
use crate::{
    claim::{Phase, State, Wait},
    claims::Requeued,
    outcome::{CUT_BY_DRAIN, Certainty, Note, Outcome, Reason},
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a fresh event is claimed as may have run", |s| Box::pin(fresh(s))),
        Case::new("a fresh strict event is claimed as not begun", |s| Box::pin(fresh_strict(s))),
        Case::new("a claim counts as lost before its lease ends", |s| Box::pin(fence(s))),
        Case::new("a claim whose answer was lost is recognised by its nonce", |s| Box::pin(lost_answer(s))),
        Case::new("a copy waits while its event runs under a live lease", |s| Box::pin(running(s))),
        Case::new("a copy of a handled event is settled", |s| Box::pin(done(s))),
        Case::new("a copy of a quarantined event learns why", |s| Box::pin(quarantined(s))),
        Case::new("a copy waits until the next attempt is due", |s| Box::pin(not_due(s))),
        Case::new("a failed event is claimed again with its failures and the next epoch", |s| Box::pin(due(s))),
        Case::new("a claim tells whether a drain cut the attempt before it", |s| Box::pin(cut_by_drain(s))),
        Case::new("an attempt that has ended does not begin again under its own nonce", |s| Box::pin(ended(s))),
        Case::new("an event that spent its failures is quarantined", |s| Box::pin(failures_spent(s))),
        Case::new("a strict event that was handed back without certainty is quarantined", |s| Box::pin(strict_open(s))),
        Case::new("a strict event that certainly did not run is claimed again", |s| Box::pin(strict_not_run(s))),
        Case::new("strictness sticks to the event", |s| Box::pin(strict_sticks(s))),
        Case::new("a strict claimer does not run again what a lax one handed back", |s| Box::pin(strict_after_lax(s))),
        Case::new("a copy older than retention never looks new", |s| Box::pin(too_old(s))),
        Case::new("another event under the same id is kept, parked and disturbs nothing", |s| Box::pin(mismatch(s))),
        Case::new("another event under a final id is quarantined", |s| Box::pin(mismatch_final(s))),
        Case::new("completing an event does not settle a mismatch on its id", |s| Box::pin(mismatch_stays(s))),
        Case::new("fingerprints of different versions are not compared", |s| Box::pin(fingerprint_version(s))),
    ]
}

async fn fresh(subject: Subject) {
    let event = subject.event();

    let claim = subject.mine(&event).await;

    assert_eq!((claim.epoch, claim.failures, claim.lost), (1, 0, 0));
    assert_eq!((claim.phase, claim.strict), (Phase::MayHaveRun, false));
    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch, row.strict, row.finished_at), (State::Running, 1, false, None));
    assert_eq!(row.event, event.event);
}

async fn fresh_strict(subject: Subject) {
    let event = subject.strict_event();

    let claim = subject.mine(&event).await;

    assert_eq!((claim.epoch, claim.phase, claim.strict), (1, Phase::NotBegun, true));
}

async fn fence(subject: Subject) {
    let before = subject.clock.moment();

    let claim = subject.mine(&subject.event()).await;

    let after = subject.clock.moment();
    assert!(claim.fence_at >= subject.lease.fence_after(before), "fenced too early");
    assert!(claim.fence_at <= subject.lease.fence_after(after), "fenced too late");
}

async fn lost_answer(subject: Subject) {
    for strict in [false, true] {
        let event = subject.event_with(|intent| intent.strict = strict);
        let first = subject.mine(&event).await;

        let repeated = subject.mine(&event).await;
        subject.start(&first).await;
        let started = subject.mine(&event).await;

        assert_eq!((repeated.epoch, repeated.lost, repeated.phase), (1, 0, first.phase));
        assert_eq!((started.epoch, started.lost, started.phase), (1, 0, Phase::MayHaveRun));
    }
}

async fn running(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;

    for copy in [again(&event), again_suspect(&event), again_with(&event, |intent| intent.strict = true)] {
        let wake_in = assert_waits(&subject.claim(&copy).await, Wait::Running);
        assert!(wake_in > subject.lease.length() && wake_in <= subject.lease.length() + subject.lease.grace());
    }

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch, row.strict), (State::Running, 1, false));
}

async fn done(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.settled(&event, &Outcome::Done).await;

    for copy in [again(&event), again_suspect(&event), Arc::clone(&event)] {
        assert_settled(&subject.claim(&copy).await);
    }

    let row = subject.row(&event).await;
    assert_eq!((row.state, row.epoch), (State::Done, 1));
    assert!(row.finished_at.is_some());
}

async fn quarantined(subject: Subject) {
    for reason in
        [Reason::FailuresExhausted, Reason::Permanent, Reason::OutcomeUnknown, Reason::Undecodable, Reason::Operator]
    {
        let event = subject.event();
        subject.mine(&event).await;
        subject.settled(&event, &quarantine(reason, Certainty::Over)).await;

        let copy = subject.claim(&again_suspect(&event)).await;
        assert_quarantined(&copy, reason);
        assert_fresh(&copy, false);
    }
}

async fn not_due(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let hour = Duration::from_secs(3_600);
    let retry = Outcome::Retry { counts: true, after: Some(hour), certainty: Certainty::Over, note: Note::new("no") };
    subject.settled(&event, &retry).await;

    let wake_in = assert_waits(&subject.claim(&again_suspect(&event)).await, Wait::NotDue);

    assert!(wake_in > hour / 2 && wake_in <= hour, "{wake_in:?}");
    assert_eq!(subject.row(&event).await.state, State::Retry);
}

async fn due(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.settled(&event, &failed(Certainty::Over)).await;
    let second = again(&event);

    let claim = subject.mine(&second).await;
    subject.settled(&second, &handed_back(Certainty::Open)).await;
    let next = subject.mine(&again(&event)).await;

    assert_eq!((claim.epoch, claim.failures, claim.lost, claim.phase), (2, 1, 0, Phase::MayHaveRun));
    assert_eq!((next.epoch, next.failures, next.lost), (3, 1, 0));
}

async fn cut_by_drain(subject: Subject) {
    let event = subject.event();
    assert!(!subject.mine(&event).await.follows_a_drain());
    let note = Note::new(CUT_BY_DRAIN);
    subject.settled(&event, &Outcome::Retry { counts: false, after: None, certainty: Certainty::Open, note }).await;
    let second = again(&event);

    let first_answer = subject.mine(&second).await;
    let same_answer = subject.mine(&second).await;
    subject.settled(&second, &handed_back(Certainty::Over)).await;
    let third = subject.mine(&again(&event)).await;

    assert!(first_answer.follows_a_drain() && same_answer.follows_a_drain());
    assert!(!third.follows_a_drain());
}

async fn ended(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.settled(&event, &failed(Certainty::Over)).await;

    assert_waits(&subject.claim(&event).await, Wait::NotDue);

    assert_eq!((subject.row(&event).await.state, subject.row(&event).await.epoch), (State::Retry, 1));
}

async fn failures_spent(subject: Subject) {
    let event = subject.event_with(|intent| intent.budget.max_failures = 2);
    for _ in 0..2 {
        let attempt = again(&event);
        subject.mine(&attempt).await;
        subject.settled(&attempt, &failed(Certainty::Over)).await;
    }

    assert_put_aside(&subject.claim(&again(&event)).await, Reason::FailuresExhausted);

    assert_quarantined(&subject.claim(&again_suspect(&event)).await, Reason::FailuresExhausted);
    let row = subject.quarantine_row(&event, Reason::FailuresExhausted).await;
    assert_eq!(row.epoch, 2);
    assert_eq!((subject.row(&event).await.state, subject.row(&event).await.failures), (State::Quarantined, 2));
}

async fn strict_open(subject: Subject) {
    for certainty in [Certainty::Over, Certainty::Open] {
        let event = subject.strict_event();
        let claim = subject.mine(&event).await;
        subject.start(&claim).await;
        subject.settled(&event, &handed_back(certainty)).await;

        assert_put_aside(&subject.claim(&again_suspect(&event)).await, Reason::OutcomeUnknown);

        let row = subject.quarantine_row(&event, Reason::OutcomeUnknown).await;
        assert_eq!((row.nonce, row.epoch), (event.nonce, 1));
    }
}

async fn strict_not_run(subject: Subject) {
    let event = subject.strict_event();
    let claim = subject.mine(&event).await;
    subject.start(&claim).await;
    subject.settled(&event, &failed(Certainty::NotRun)).await;

    let claim = subject.mine(&again(&event)).await;

    assert_eq!((claim.epoch, claim.phase, claim.strict, claim.failures), (2, Phase::NotBegun, true, 1));
}

async fn strict_sticks(subject: Subject) {
    let event = subject.strict_event();
    subject.mine(&event).await;
    subject.settled(&event, &handed_back(Certainty::NotRun)).await;
    let lax = again_with(&event, |intent| intent.strict = false);

    let claim = subject.mine(&lax).await;

    assert_eq!((claim.phase, claim.strict), (Phase::NotBegun, true));
    subject.start(&claim).await;
    subject.settled(&lax, &handed_back(Certainty::Open)).await;
    let lax = again_with(&event, |intent| intent.strict = false);
    assert_quarantined(&subject.claim(&lax).await, Reason::OutcomeUnknown);
    assert!(subject.row(&event).await.strict);
}

/// That the second lax attempt did not run says nothing about the first.
async fn strict_after_lax(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    subject.settled(&event, &handed_back(Certainty::Open)).await;
    let second = again(&event);
    subject.mine(&second).await;
    subject.settled(&second, &handed_back(Certainty::NotRun)).await;

    let strict = again_with(&event, |intent| intent.strict = true);

    assert_put_aside(&subject.claim(&strict).await, Reason::OutcomeUnknown);
    assert!(subject.row(&event).await.strict);
}

async fn too_old(subject: Subject) {
    let fence = TimeDelta::from_std(DAY * 9).unwrap();
    let hour = TimeDelta::hours(1);
    let young = subject.event_with(|intent| intent.born = intent.born - fence + hour);
    let old = subject.event_with(|intent| intent.born = intent.born - fence - hour);

    subject.mine(&young).await;
    assert_put_aside(&subject.claim(&old).await, Reason::TooOld);

    let copy = subject.claim(&again(&old)).await;
    assert_quarantined(&copy, Reason::TooOld);
    assert_fresh(&copy, false);
    let row = subject.quarantine_row(&old, Reason::TooOld).await;
    let known = subject.row(&old).await;
    assert_eq!((known.state, known.failures, known.lost), (State::Quarantined, 0, 0));
    assert_eq!((row.nonce, row.epoch), (old.nonce, known.epoch));
    let aged = again_with(&young, |intent| intent.born = old.born);
    assert_waits(&subject.claim(&aged).await, Wait::Running);
}

async fn mismatch(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;

    for payload in ["forged once", "forged twice", "forged once"] {
        let wake_in = assert_waits(&subject.claim(&impostor(&event, payload)).await, Wait::Mismatch);
        assert!(wake_in > Duration::ZERO, "a parked mismatch must not spin");
    }

    let rows = subject.quarantined(&event).await;
    assert_eq!(rows.len(), 2, "one row for each payload");
    for row in rows {
        assert_eq!((row.reason, row.nonce, row.epoch), (Reason::Mismatch, event.nonce, 1));
        assert_eq!(subject.process.claims.requeue(row.seq, "operator").await.unwrap(), Requeued::NoPayload);
    }
    subject.settled(&event, &failed(Certainty::Over)).await;
    assert_waits(&subject.claim(&impostor(&event, "forged thrice")).await, Wait::Mismatch);
    let next = again(&event);
    assert_eq!(subject.mine(&next).await.epoch, 2);
    subject.settled(&next, &Outcome::Done).await;
    assert_settled(&subject.claim(&again(&event)).await);
}

async fn mismatch_final(subject: Subject) {
    let handled = subject.event();
    subject.mine(&handled).await;
    subject.settled(&handled, &Outcome::Done).await;
    let aside = subject.event();
    subject.mine(&aside).await;
    subject.settled(&aside, &quarantine(Reason::Permanent, Certainty::Over)).await;

    for (event, state) in [(handled, State::Done), (aside, State::Quarantined)] {
        assert_put_aside(&subject.claim(&impostor(&event, "forged")).await, Reason::Mismatch);
        assert_fresh(&subject.claim(&impostor(&event, "forged")).await, false);

        assert_eq!(subject.row(&event).await.state, state);
        let rows = subject.quarantined(&event).await;
        assert_eq!(rows.iter().filter(|row| row.reason == Reason::Mismatch).count(), 1);
    }
}

async fn mismatch_stays(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    assert_waits(&subject.claim(&impostor(&event, "forged")).await, Wait::Mismatch);
    let seq = subject.quarantine_row(&event, Reason::Mismatch).await.seq;

    subject.settled(&event, &Outcome::Done).await;

    assert_eq!(subject.process.claims.requeue(seq, "operator").await.unwrap(), Requeued::NoPayload);
    assert!(subject.process.claims.close(seq, "seen").await.unwrap(), "the row is still open");
}

async fn fingerprint_version(subject: Subject) {
    let event = subject.event();
    subject.mine(&event).await;
    let newer = again_with(&event, |intent| intent.event.fingerprint.0 = [8; 17]);

    assert_waits(&subject.claim(&newer).await, Wait::Running);

    subject.settled(&event, &Outcome::Done).await;
    assert_settled(&subject.claim(&newer).await);
    assert!(subject.quarantined(&event).await.is_empty());
}
