//! Events and answers made to upset a store: each is settled like any other.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;

use super::{
    Case,
    subject::{Subject, again, again_with, assert_quarantined, assert_settled, assert_waits},
};
use crate::{
    claim::{ClaimIntent, Wait},
    claims::Requeued,
    event::{EventId, RawEvent},
    outcome::{Certainty, Detail, Note, Outcome, Reason},
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("a payload of any bytes is quarantined and delivered again unchanged", |s| Box::pin(payload(s))),
        Case::new("a handler's answer of any bytes is stored", |s| Box::pin(answer(s))),
        Case::new("names with control characters do not keep an event from being settled", |s| Box::pin(names(s))),
        Case::new("an empty payload is kept too", |s| Box::pin(empty(s))),
    ]
}

const MIB: usize = 1 << 20;

fn any_bytes(len: usize) -> Vec<u8> {
    let mut bytes = b"\0{\"text\":\"\\ud800 \\u0000\"}\xff\xfe\xc0\x80".to_vec();
    bytes.resize(len, 0);
    bytes
}

fn with_raw(subject: &Subject, change: impl FnOnce(&mut RawEvent)) -> Arc<ClaimIntent> {
    subject.event_with(|intent| {
        let mut raw = (*intent.raw).clone();
        change(&mut raw);
        intent.raw = Arc::new(raw);
    })
}

async fn payload(subject: Subject) {
    let attributes: BTreeMap<_, _> = [("k\0ey", "v\0al\u{fffd}"), ("", ""), ("quote\"", "back\\slash\n")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let event = with_raw(&subject, |raw| {
        raw.data = Bytes::from(any_bytes(10 * MIB));
        raw.attributes = attributes;
    });
    let (event, seq) = subject.put_aside(event, Certainty::Over).await;

    assert_eq!(subject.process.claims.requeue(seq, "operator").await.unwrap(), Requeued::Yes);

    let raw = subject.replayable(&event).await[0].raw.clone().expect("it holds the delivery");
    assert!(raw.data == event.raw.data, "the payload changed");
    assert_eq!(raw.attributes, event.raw.attributes);
    subject.process.claims.close(seq, "replayed").await.unwrap();
}

async fn answer(subject: Subject) {
    let text = any_bytes(10 * MIB);
    let event = subject.event();
    subject.mine(&event).await;
    let note = Note::new(&String::from_utf8_lossy(&text));
    let retry = Outcome::Retry { counts: true, after: None, certainty: Certainty::Over, note };
    subject.settled(&event, &retry).await;
    let second = again(&event);

    subject.mine(&second).await;

    let detail = Detail::new(&text);
    let verdict = Outcome::Quarantine { reason: Reason::Permanent, counts: true, certainty: Certainty::Over, detail };
    subject.settled(&second, &verdict).await;
    assert_quarantined(&subject.claim(&again(&event)).await, Reason::Permanent);
}

async fn names(subject: Subject) {
    let hostile = |intent: &mut ClaimIntent| {
        intent.event.event_type = "MES\0SAGE\u{1b}[31m".to_owned();
        intent.event.event_id = EventId::new(format!("{}\0", intent.event.event_id));
        let mut raw = (*intent.raw).clone();
        raw.message_id = "m\0".to_owned();
        intent.raw = Arc::new(raw);
    };
    let event = subject.event_with(hostile);
    let claim = subject.mine(&event).await;
    subject.start(&claim).await;
    assert_waits(&subject.claim(&again(&event)).await, Wait::Running);
    subject.settled(&event, &Outcome::Done).await;
    assert_settled(&subject.claim(&again(&event)).await);

    let (event, seq) = subject.put_aside(subject.event_with(hostile), Certainty::Over).await;
    assert_eq!(subject.process.claims.requeue(seq, "oper\0ator").await.unwrap(), Requeued::Yes);
    assert_eq!(subject.replayable(&event).await.len(), 1);
    assert!(subject.process.claims.close(seq, "re\0played").await.unwrap());
    let lost = subject.event_with(hostile);
    subject.settled(&lost, &Outcome::Done).await;
    assert_settled(&subject.claim(&again_with(&lost, hostile)).await);
}

async fn empty(subject: Subject) {
    let event = with_raw(&subject, |raw| *raw = RawEvent::default());
    let (event, seq) = subject.put_aside(event, Certainty::Over).await;

    assert_eq!(subject.process.claims.requeue(seq, "operator").await.unwrap(), Requeued::Yes);

    let raw = subject.replayable(&event).await[0].raw.clone().expect("empty is not absent");
    assert_eq!((raw.data.len(), raw.attributes.len(), raw.publish_time), (0, 0, None));
}
