//! Messages whose id and fingerprint disagree.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
    io::{self, Write},
};

use serde_json::{Value, json};

use super::{
    super::output::{counted, printable},
    Form, Sink,
    fate::{Fate, Fates},
};
use crate::event::{Event, EventId, Fingerprint};

/// Collects messages and reports at the end.
pub(super) struct Collisions {
    form: Form,
    fates: Fates,
    seen: Vec<Seen>,
}

struct Seen {
    label: String,
    id: EventId,
    fingerprint: Fingerprint,
    fate: Fate,
}

impl Collisions {
    pub(super) fn new(form: Form, fates: Fates) -> Self {
        Self { form, fates, seen: Vec::new() }
    }

    /// Messages that agree in `key`, in the order they came.
    fn groups<K: Hash + Eq>(&self, key: impl Fn(&Seen) -> K) -> Vec<Vec<&Seen>> {
        let mut places: HashMap<K, usize> = HashMap::new();
        let mut groups: Vec<Vec<&Seen>> = Vec::new();
        for seen in &self.seen {
            let place = *places.entry(key(seen)).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.push(seen),
                None => groups.push(vec![seen]),
            }
        }
        groups
    }

    /// One id, other content: each message with the one that holds the claim, or the first where all are skipped.
    fn mismatches(&self) -> Vec<Vec<&Seen>> {
        self.groups(|seen| seen.id.clone()).into_iter().flat_map(against_holder).collect()
    }

    /// One content, several ids: the first message of each id.
    fn splits(&self) -> Vec<Vec<&Seen>> {
        let mut groups = self.groups(|seen| seen.fingerprint.0);
        for group in &mut groups {
            let mut ids = HashSet::new();
            group.retain(|seen| ids.insert(&seen.id));
        }
        groups.retain(|group| group.len() > 1);
        groups
    }

    fn tell(&self, kind: &str, group: &[&Seen], out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Json => {
                let all = |of: &dyn Fn(&Seen) -> Value| group.iter().map(|seen| of(seen)).collect::<Vec<_>>();
                let told = json!({"collision": kind,
                    "files": all(&|seen| seen.label.as_str().into()),
                    "ids": all(&|seen| seen.id.as_str().into()),
                    "fingerprints": all(&|seen| seen.fingerprint.to_string().into()),
                    "fates": all(&|seen| seen.fate.as_str().into())});
                writeln!(out, "{told}")
            }
            Form::Tsv => {
                let Some((a, others)) = group.split_first() else { return Ok(()) };
                others.iter().try_for_each(|b| {
                    let (a_label, b_label) = (printable(&a.label), printable(&b.label));
                    writeln!(out, "{kind}\t{a_label}\t{b_label}\t{}\t{}", a.id, b.id)
                })
            }
            Form::Table => {
                let [a, b] = group else { return many(kind, group, out) };
                let about = about(kind, a.fate, b.fate);
                let (a_label, b_label) = (printable(&a.label), printable(&b.label));
                writeln!(out, "{kind}: {a_label} and {b_label}: {about}\n  {}\n  {}", a.id, b.id)
            }
        }
    }
}

fn against_holder(group: Vec<&Seen>) -> Vec<Vec<&Seen>> {
    let holder = group.iter().find(|seen| seen.fate.claims()).or_else(|| group.first()).copied();
    let Some(holder) = holder else { return Vec::new() };
    group.into_iter().filter(|other| other.fingerprint != holder.fingerprint).map(|other| vec![holder, other]).collect()
}

/// What it is, and what becomes of the two.
fn about(kind: &str, a: Fate, b: Fate) -> String {
    let then = if a == b {
        format!("both are {}", a.words())
    } else {
        format!("the first is {}, the second is {}", a.words(), b.words())
    };
    match (kind, b) {
        ("mismatch", Fate::Mismatch) => {
            "one id, different fingerprints: the second goes to quarantine as a mismatch".to_owned()
        }
        ("mismatch", _) => format!("one id, different fingerprints: {then}"),
        _ => format!("different ids, one fingerprint: two events, {then}"),
    }
}

/// More than two events with one content.
fn many(kind: &str, group: &[&Seen], out: &mut dyn Write) -> io::Result<()> {
    let events = counted(group.len(), "event");
    writeln!(out, "{kind}: different ids, one fingerprint: {events}")?;
    group.iter().try_for_each(|seen| writeln!(out, "  {}  {}: {}", seen.id, printable(&seen.label), seen.fate.words()))
}

impl Sink for Collisions {
    fn take(&mut self, label: &str, event: &Event, _: &mut dyn Write) -> io::Result<()> {
        let fate = self.fates.of(event);
        let (id, fingerprint) = (event.id.clone(), event.fingerprint);
        self.seen.push(Seen { label: label.to_owned(), id, fingerprint, fate });
        Ok(())
    }

    fn finish(self: Box<Self>, out: &mut dyn Write) -> io::Result<()> {
        let (mismatches, splits) = (self.mismatches(), self.splits());
        for pair in &mismatches {
            self.tell("mismatch", pair, out)?;
        }
        for group in &splits {
            self.tell("split", group, out)?;
        }
        if self.form == Form::Table && mismatches.is_empty() && splits.is_empty() {
            writeln!(out, "No collisions among {}.", counted(self.seen.len(), "message"))?;
        }
        Ok(())
    }
}
