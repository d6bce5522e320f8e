//! What must hold for ids, keys and fingerprints, over the samples and over generated events.

use std::{path::PathBuf, sync::Arc};

use super::{Event, decode, sample};

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/events")
}

fn table(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(fixtures().join(name)).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn load(file: &str) -> Event {
    let text = std::fs::read(fixtures().join(file)).unwrap();
    decode(&Arc::new(sample::parse(&text).unwrap()))
}

#[test]
fn every_sample_has_its_golden_id_and_basis() {
    let mut wrong = Vec::new();
    for row in table("expected-ids.tsv") {
        let event = load(&row[0]);
        if event.id.as_str() != row[1] || event.basis.as_str() != row[2] {
            wrong.push(format!("{}: {} {}\n{}", row[0], event.id, event.basis.as_str(), event.fields.framed()));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn samples_have_one_id_and_one_fingerprint_exactly_within_their_group() {
    let events: Vec<(String, Event)> =
        table("corpus.tsv").into_iter().map(|row| (row[4].clone(), load(&row[0]))).collect();
    assert_eq!(events.len(), 67);

    for (a_group, a) in &events {
        for (b_group, b) in &events {
            assert_eq!(a_group == b_group, a.id == b.id, "{a:?} {b:?}");
            if a_group == b_group {
                assert_eq!(a.fingerprint, b.fingerprint, "{a:?} {b:?}");
            }
        }
    }
}
