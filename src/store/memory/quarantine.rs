//! The quarantine of the memory store.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use tracing::warn;

use crate::{
    claim::{ClaimIntent, Key, Nonce, State, row::Row},
    event::RawEvent,
    outcome::{Detail, Reason},
    store::{QuarantineRow, record::EXPIRE_AT_ONCE},
};

/// Rows kept. Beyond it the oldest goes, settled ones first: this store is for development.
const CAP: usize = 10_000;

/// An attempt is put aside for one reason and payload once, however often the write is repeated.
type Identity = (Key, Nonce, Reason, [u8; 32]);

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) row: QuarantineRow,
    /// The claim as it was put aside, for when retention has forgotten it.
    claim: Row,
    raw: Arc<RawEvent>,
    hash: [u8; 32],
    requested: bool,
    settled_at: Option<DateTime<Utc>>,
}

impl Entry {
    pub(super) fn new(claim: &Row, reason: Reason, detail: &Detail, intent: &ClaimIntent, now: DateTime<Utc>) -> Self {
        Self {
            row: QuarantineRow {
                seq: 0,
                key: claim.key,
                epoch: claim.epoch,
                nonce: claim.nonce,
                reason,
                detail: detail.as_str().to_owned(),
                event_id: intent.event_id.as_str().to_owned(),
                event_type: intent.event_type.clone(),
                quarantined_at: now,
                requests: 0,
                raw: None,
            },
            claim: claim.clone(),
            raw: Arc::clone(&intent.raw),
            hash: Sha256::digest(&intent.raw.data).into(),
            requested: false,
            settled_at: None,
        }
    }

    const fn identity(&self) -> Identity {
        (self.row.key, self.row.nonce, self.row.reason, self.hash)
    }

    pub(super) fn forgotten_claim(&self, now: DateTime<Utc>) -> Row {
        Row { state: State::Quarantined, first_seen_at: now, ..self.claim.clone() }
    }

    pub(super) const fn request(&mut self) {
        self.requested = true;
    }

    pub(super) const fn settle(&mut self, now: DateTime<Utc>) {
        self.settled_at = Some(now);
    }
}

#[derive(Debug, Default)]
pub(super) struct Quarantine {
    entries: BTreeMap<i64, Entry>,
    known: HashSet<Identity>,
    last_seq: i64,
}

impl Quarantine {
    /// Keeps the entry; `false` = it is there already.
    pub(super) fn add(&mut self, mut entry: Entry) -> bool {
        if !self.known.insert(entry.identity()) {
            return false;
        }
        self.last_seq += 1;
        entry.row.seq = self.last_seq;
        self.entries.insert(self.last_seq, entry);
        if self.entries.len() > CAP {
            let settled = self.entries.values().find(|entry| entry.settled_at.is_some());
            let oldest = settled.or_else(|| self.entries.values().next()).map(|entry| entry.row.seq);
            if settled.is_none() {
                warn!(cap = CAP, "Quarantine of the memory store is full: the oldest row was dropped");
            }
            oldest.into_iter().for_each(|seq| self.remove(seq));
        }
        true
    }

    fn remove(&mut self, seq: i64) {
        if let Some(entry) = self.entries.remove(&seq) {
            self.known.remove(&entry.identity());
        }
    }

    /// The attempt turned out to have succeeded. Mismatches carry its nonce, but are another event.
    pub(super) fn resolve(&mut self, key: Key, nonce: Nonce, now: DateTime<Utc>) {
        for entry in self.entries.values_mut() {
            let row = &entry.row;
            if row.key == key && row.nonce == nonce && row.reason != Reason::Mismatch && entry.settled_at.is_none() {
                entry.settle(now);
            }
        }
    }

    /// A row that is not settled.
    pub(super) fn open(&mut self, seq: i64) -> Option<&mut Entry> {
        self.entries.get_mut(&seq).filter(|entry| entry.settled_at.is_none())
    }

    pub(super) fn newest(&self, limit: u32) -> Vec<QuarantineRow> {
        let requests = self.requests();
        let open = self.entries.values().rev().filter(|entry| entry.settled_at.is_none());
        open.take(limit as usize).map(|entry| shown(entry, &requests, None)).collect()
    }

    pub(super) fn requested(&self, limit: u32, due: impl Fn(&Key) -> bool) -> Vec<QuarantineRow> {
        let requests = self.requests();
        let asked = |entry: &&Entry| entry.requested && entry.settled_at.is_none() && due(&entry.row.key);
        let rows = self.entries.values().filter(asked).take(limit as usize);
        rows.map(|entry| shown(entry, &requests, Some(Arc::clone(&entry.raw)))).collect()
    }

    /// How often each event was put back.
    fn requests(&self) -> HashMap<Key, u32> {
        let mut requests = HashMap::new();
        for entry in self.entries.values().filter(|entry| entry.requested) {
            *requests.entry(entry.row.key).or_default() += 1;
        }
        requests
    }

    pub(super) fn expire(&mut self, limit: DateTime<Utc>) -> usize {
        let old = self.entries.values().filter(|entry| entry.settled_at.is_some() && entry.row.quarantined_at < limit);
        let old: Vec<_> = old.map(|entry| entry.row.seq).take(usize::from(EXPIRE_AT_ONCE)).collect();
        old.iter().for_each(|seq| self.remove(*seq));
        old.len()
    }

    pub(super) fn open_by_reason(&self) -> Vec<(Reason, u64)> {
        let count = |reason: Reason| {
            let open = |entry: &&Entry| entry.row.reason == reason && entry.settled_at.is_none();
            self.entries.values().filter(open).map(|_| 1).sum()
        };
        Reason::ALL.into_iter().map(|reason| (reason, count(reason))).filter(|(_, count)| *count > 0).collect()
    }

    pub(super) fn oldest_open(&self) -> Option<DateTime<Utc>> {
        self.entries.values().find(|entry| entry.settled_at.is_none()).map(|entry| entry.row.quarantined_at)
    }
}

fn shown(entry: &Entry, requests: &HashMap<Key, u32>, raw: Option<Arc<RawEvent>>) -> QuarantineRow {
    QuarantineRow { requests: requests.get(&entry.row.key).copied().unwrap_or_default(), raw, ..entry.row.clone() }
}
