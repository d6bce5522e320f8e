//! Many at once.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, stream};

use super::{
    Case,
    subject::{Subject, again, again_suspect, claim, failed, resent},
};
use crate::{
    claim::{Claim, ClaimIntent, Claimed, Key},
    outcome::{Certainty, Outcome},
};

/// Claimers of each event.
const CLAIMERS: usize = 16;

/// Calls in flight.
const AT_ONCE: usize = 64;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("of many claimers of fresh events one gets each", |s| Box::pin(fresh(s))),
        Case::new("of many claimers of stale events one gets each", |s| Box::pin(stale(s))).short(),
        Case::new("of many claimers of due events one gets each", |s| Box::pin(due(s))),
        Case::new("concurrent renewals and completions of the same claims all get through", |s| {
            Box::pin(crossing_writes(s))
        }),
    ]
}

/// Lets `CLAIMERS` attempts at each event race, and counts those that got it.
async fn race(subject: &Subject, events: &[Arc<ClaimIntent>]) -> HashMap<Key, usize> {
    let attempts = (0..CLAIMERS).flat_map(|_| events).map(|event| again_suspect(event));
    let answers: Vec<_> = stream::iter(attempts)
        .map(async |attempt| (attempt.key(), claim(&subject.process, &attempt).await))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut winners = HashMap::new();
    for (key, answer) in answers {
        *winners.entry(key).or_default() += usize::from(matches!(answer, Claimed::Mine(_)));
    }
    winners
}

#[track_caller]
fn assert_one_winner_each(winners: &HashMap<Key, usize>, events: usize) {
    assert_eq!(winners.len(), events);
    let odd: Vec<_> = winners.values().filter(|count| **count != 1).collect();
    assert!(odd.is_empty(), "{} events without exactly one winner: {odd:?}", odd.len());
}

async fn fresh(subject: Subject) {
    let events: Vec<_> = (0..1_000).map(|_| subject.event()).collect();

    let winners = race(&subject, &events).await;

    assert_one_winner_each(&winners, events.len());
}

async fn due(subject: Subject) {
    let events: Vec<_> = (0..150).map(|_| subject.event()).collect();
    for event in &events {
        subject.mine(event).await;
        subject.settled(event, &failed(Certainty::Over)).await;
    }

    let winners = race(&subject, &events).await;

    assert_one_winner_each(&winners, events.len());
    assert_eq!(subject.row(&events[0]).await.epoch, 2);
}

/// Winners are told apart by the epoch: a winner whose short lease ended within the race may itself be replaced.
async fn stale(subject: Subject) {
    let events: Vec<_> = (0..150).map(|_| subject.event_with(|intent| intent.budget.max_lost = 1_000)).collect();
    for event in &events {
        subject.mine(event).await;
    }
    subject.outlive_leases().await;
    // Waits out a store that holds take-overs off.
    let scout = subject.event();
    subject.mine(&scout).await;
    subject.outlive_leases().await;
    subject.take_over(&again_suspect(&scout)).await;

    let winners = race(&subject, &events).await;

    for event in &events {
        let replaced = usize::try_from(subject.row(event).await.epoch - 1).unwrap();
        assert_eq!(winners[&event.key()], replaced, "one winner for each epoch");
        assert!(replaced >= 1);
    }
}

async fn crossing_writes(subject: Subject) {
    let mut claims = Vec::new();
    for _ in 0..100 {
        claims.push(subject.mine(&subject.event()).await);
    }
    let forwards: Vec<_> = claims.clone();
    let backwards: Vec<_> = forwards.iter().rev().cloned().collect();
    let store = &subject.process.claims;
    let renewals = async |claims: &[Claim]| {
        for _ in 0..10 {
            resent(async || store.renew(claims).await).await.expect("renewals are answered");
        }
    };
    let completions = async {
        let settle = async |claim: &Claim| resent(async || store.settle(claim, &Outcome::Done).await).await;
        let all: Vec<_> = stream::iter(&forwards).map(settle).buffer_unordered(8).collect().await;
        all.into_iter().collect::<Result<Vec<_>, _>>().expect("owners complete");
    };

    tokio::join!(renewals(&forwards), renewals(&backwards), completions);

    for claim in &claims {
        assert!(matches!(subject.claim(&again(&claim.intent)).await, Claimed::Settled));
    }
}
