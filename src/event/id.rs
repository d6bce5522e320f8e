//! The id of an event, version bh1: which fields, framed how, hashed to what.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{
    EventId, SoftKey,
    canonical::{decimal, hex_text},
};

/// The fields of an id in their fixed order, framed so that no value can pass for another field.
///
/// This text, behind the version and kind line, *is* the hash input; it is kept so that a user can be told why two
/// events merged.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Fields(String);

impl fmt::Debug for Fields {
    /// Names only: a publisher decides what the values are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name)).finish()
    }
}

impl Fields {
    /// No fields yet; room for those of most events.
    pub(super) fn new() -> Self {
        Self(String::with_capacity(320))
    }

    /// Appends a field. The empty string counts as absent.
    pub(super) fn push(&mut self, name: &str, value: Option<&str>) {
        self.0.push_str(name);
        match value.filter(|value| !value.is_empty()) {
            None => self.0.push_str("=~\n"),
            Some(value) => {
                let mut digits = [0; 20];
                let start = decimal(value.len() as u64, &mut digits, 20);
                self.0.push('=');
                self.0.extend(digits[start..].iter().map(|digit| char::from(*digit)));
                self.0.push(':');
                self.0.push_str(value);
                self.0.push('\n');
            }
        }
    }

    /// The id of events with these fields.
    pub(super) fn id(&self, kind: &str) -> EventId {
        let digest = Sha256::new()
            .chain_update(b"bellhop.event-id.v1\0")
            .chain_update(kind)
            .chain_update(b"\n")
            .chain_update(&self.0)
            .finalize();
        let mut id = String::with_capacity(39);
        id.push_str("bh1-");
        id.push_str(kind);
        id.push('-');
        id.push_str(&hex_text(&digest[..16]));
        EventId::new(id)
    }

    /// A key over everything but times and the transport id.
    pub(super) fn soft_key(&self) -> SoftKey {
        let mut hash = Sha256::new();
        hash.update(b"bellhop.soft-key.v1\0");
        for (name, framed, _) in Lines(&self.0).filter(|(name, ..)| !matches!(*name, "e" | "v" | "x")) {
            hash.update(name);
            hash.update(framed);
        }
        let digest = hash.finalize();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        SoftKey(key)
    }

    /// Name and value of every field in order, absent ones as `None`.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        Lines(&self.0).map(|(name, _, value)| (name, value))
    }

    #[cfg(test)]
    pub(super) fn framed(&self) -> &str {
        &self.0
    }
}

/// Takes the framing apart again: name, everything after it, value.
struct Lines<'f>(&'f str);

impl<'f> Iterator for Lines<'f> {
    type Item = (&'f str, &'f str, Option<&'f str>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, rest) = self.0.split_once('=')?;
        let (length, value) = match rest.strip_prefix("~\n") {
            Some(_) => (2, None),
            None => {
                let (digits, rest) = rest.split_once(':')?;
                let value = rest.get(..digits.parse().ok()?)?;
                (digits.len() + value.len() + 2, Some(value))
            }
        };
        let (framed, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((name, framed, value))
    }
}
