//! What must hold for ids, keys and fingerprints, over the samples and over generated events.

mod comparing;
mod decoding;
mod hostile;
mod properties;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use bytes::Bytes;

use super::{Event, RawEvent, decode, sample};
use crate::claim::Key;

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/events")
}

fn table(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// A fixture by the start of its name.
fn raw(start: &str) -> RawEvent {
    let file = table("corpus.tsv").into_iter().map(|row| row[0].clone()).find(|file| file.starts_with(start)).unwrap();
    sample::parse(&std::fs::read(fixtures().join(file)).unwrap()).unwrap()
}

fn all() -> Vec<(Vec<String>, RawEvent)> {
    table("corpus.tsv").into_iter().map(|row| (row.clone(), raw(&row[0]))).collect()
}

fn event(raw: RawEvent) -> Event {
    decode(&Arc::new(raw))
}

/// The event of a payload without attributes, with a transport id.
fn payload(data: impl Into<Bytes>) -> Event {
    event(RawEvent { data: data.into(), message_id: "1".to_owned(), ..RawEvent::default() })
}

/// Id, fingerprint and key: what two copies of one event share.
fn identity(event: &Event) -> (String, String, String) {
    (event.id.to_string(), event.fingerprint.to_string(), Key::derive("scope", event).to_string())
}

#[test]
fn every_sample_has_its_golden_id_and_basis() {
    let mut wrong = Vec::new();
    for row in table("expected-ids.tsv") {
        let event = event(raw(&row[0]));
        if event.id.as_str() != row[1] || event.basis.as_str() != row[2] {
            wrong.push(format!("{}: {} {}\n{}", row[0], event.id, event.basis.as_str(), event.fields.framed()));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn samples_share_id_fingerprint_and_key_exactly_within_their_group() {
    let events: Vec<_> = all().into_iter().map(|(row, raw)| (row[4].clone(), event(raw))).collect();
    assert_eq!(events.len(), 67);

    for (a_group, a) in &events {
        for (b_group, b) in &events {
            assert_eq!(a_group == b_group, a.id == b.id, "{a:?} {b:?}");
            if a_group == b_group {
                assert_eq!(identity(a), identity(b));
            }
        }
    }
}

#[test]
fn the_hash_input_is_framed_as_documented() {
    let event = event(raw("01"));

    let framed = "t=7:MESSAGE\ns=18:spaces/bellDmAAAAE\nu=27:users/100000000000000000101\n\
        m=51:spaces/bellDmAAAAE/messages/Qa1Zr7LkT0c.Qa1Zr7LkT0c\nv=~\nh=38:spaces/bellDmAAAAE/threads/Qa1Zr7LkT0c\n\
        e=20:1777886130.250000000\ng=~\nc=~\na=~\np=~\nd=~\nx=~\n";
    assert_eq!(event.fields.framed(), framed);
    let read: BTreeMap<_, _> = event.fields.iter().collect();
    assert_eq!((read["t"], read["v"], read.len()), (Some("MESSAGE"), None, 13));
}

#[test]
fn nothing_private_is_in_debug_output() {
    for (row, raw) in all() {
        let told = format!("{:?} {:?}", raw, event(raw.clone()));
        for private in ["checkout", "Ana", "ana.ferris", "TOKEN", "PLACEHOLDER", "approve", "hello from"] {
            assert!(!told.contains(private), "{}: {told}", row[0]);
        }
    }
}
