//! Pairs of messages whose id and fingerprint disagree.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use serde_json::json;

use super::{
    super::output::printable,
    Form, Sink,
    fate::{Fate, Fates},
};
use crate::event::Event;

/// Collects messages and reports at the end.
pub(super) struct Collisions {
    form: Form,
    fates: Fates,
    seen: Vec<Seen>,
}

struct Seen {
    label: String,
    id: String,
    fingerprint: String,
    fate: Fate,
}

impl Collisions {
    pub(super) const fn new(form: Form, fates: Fates) -> Self {
        Self { form, fates, seen: Vec::new() }
    }

    /// Every pair that agrees in `same` and not in `other`, in the order the messages came.
    fn pairs(&self, same: impl Fn(&Seen) -> &str, other: impl Fn(&Seen) -> &str) -> Vec<(&Seen, &Seen)> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, seen) in self.seen.iter().enumerate() {
            groups.entry(same(seen)).or_default().push(index);
        }
        let mut pairs = Vec::new();
        for group in groups.values() {
            for (nth, first) in group.iter().enumerate() {
                let differs = |second: &&usize| other(&self.seen[*first]) != other(&self.seen[**second]);
                pairs.extend(group[nth + 1..].iter().filter(differs).map(|second| (*first, *second)));
            }
        }
        pairs.sort_unstable();
        pairs.into_iter().map(|(first, second)| (&self.seen[first], &self.seen[second])).collect()
    }

    fn tell(&self, kind: &str, a: &Seen, b: &Seen, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Json => {
                let told = json!({"collision": kind, "files": [a.label, b.label], "ids": [a.id, b.id],
                    "fingerprints": [a.fingerprint, b.fingerprint], "fates": [a.fate.as_str(), b.fate.as_str()]});
                writeln!(out, "{told}")
            }
            Form::Tsv => writeln!(out, "{kind}\t{}\t{}\t{}\t{}", printable(&a.label), printable(&b.label), a.id, b.id),
            Form::Table => {
                let about = about(kind, a.fate, b.fate);
                let (a_label, b_label) = (printable(&a.label), printable(&b.label));
                writeln!(out, "{kind}: {a_label} and {b_label}: {about}\n  {}\n  {}", a.id, b.id)
            }
        }
    }
}

/// What it is, and what becomes of the two.
fn about(kind: &str, a: Fate, b: Fate) -> String {
    let both = if a == b { format!("both are {}", a.words()) } else { String::new() };
    let each = format!("the first is {}, the second is {}", a.words(), b.words());
    let then = if a == b { both } else { each };
    match (kind, b) {
        ("mismatch", Fate::Skipped(_)) => format!("one id, different fingerprints: {then}"),
        ("mismatch", _) => "one id, different fingerprints: the second goes to quarantine as a mismatch".to_owned(),
        _ => format!("different ids, one fingerprint: two events, {then}"),
    }
}

impl Sink for Collisions {
    fn take(&mut self, label: &str, event: &Event, _: &mut dyn Write) -> io::Result<()> {
        let (id, fingerprint) = (event.id.to_string(), event.fingerprint.to_string());
        let fate = self.fates.of(event);
        self.seen.push(Seen { label: label.to_owned(), id, fingerprint, fate });
        Ok(())
    }

    fn finish(self: Box<Self>, out: &mut dyn Write) -> io::Result<()> {
        let mismatches = self.pairs(|seen| &seen.id, |seen| &seen.fingerprint);
        let splits = self.pairs(|seen| &seen.fingerprint, |seen| &seen.id);
        for (a, b) in &mismatches {
            self.tell("mismatch", a, b, out)?;
        }
        for (a, b) in &splits {
            self.tell("split", a, b, out)?;
        }
        if self.form == Form::Table && mismatches.is_empty() && splits.is_empty() {
            writeln!(out, "No collisions among {} messages.", self.seen.len())?;
        }
        Ok(())
    }
}
