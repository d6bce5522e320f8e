//! The quarantine of the memory store.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};

use crate::{
    claim::{ClaimRef, Key, Nonce},
    outcome::Reason,
    store::{Aside, Counts, QuarantineRow, Quarantined},
};

/// Rows kept. Beyond it the oldest goes: this store is for development.
const CAP: usize = 10_000;

/// In the order they were written.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: VecDeque<Kept>,
    last_seq: i64,
}

#[derive(Debug)]
struct Kept {
    /// With the payload.
    row: QuarantineRow,
    found: Quarantined,
}

impl Rows {
    /// Keeps the payload under epoch, nonce and strictness of a claim row; false = it is there already.
    pub(super) fn add(&mut self, aside: &Aside, of: (u32, Nonce, bool), now: DateTime<Utc>) -> bool {
        let (epoch, nonce, strict) = of;
        let Aside { reason, detail, intent } = aside;
        let same = |Kept { row, .. }: &Kept| {
            (row.key, row.nonce, row.reason) == (intent.key(), nonce, *reason)
                && row.raw.as_ref().is_some_and(|raw| raw.data == intent.raw.data)
        };
        if self.rows.iter().any(same) {
            return false;
        }
        self.last_seq += 1;
        let row = QuarantineRow {
            seq: self.last_seq,
            key: intent.key(),
            epoch,
            nonce,
            reason: *reason,
            detail: detail.as_str().to_owned(),
            event_id: intent.event.event_id.as_str().to_owned(),
            event_type: intent.event.event_type.clone(),
            quarantined_at: now,
            requests: 0,
            raw: Some(intent.raw.clone()),
        };
        let event = intent.event.clone();
        let found = Quarantined { event, epoch, nonce, reason: *reason, strict, settled: false, has_payload: true };
        self.rows.push_back(Kept { row, found });
        if self.rows.len() > CAP {
            tracing::warn!(cap = CAP, "Quarantine of the memory store is full: its oldest row is dropped");
            self.rows.pop_front();
        }
        true
    }

    fn open(&mut self) -> impl Iterator<Item = &mut Kept> {
        self.rows.iter_mut().filter(|kept| !kept.found.settled)
    }

    /// The attempt turned out to have succeeded. Mismatches carry its nonce, but are another event.
    pub(super) fn late_success(&mut self, claim: ClaimRef) {
        let of_it = |row: &QuarantineRow| (row.key, row.nonce) == (claim.key, claim.nonce);
        for kept in self.open().filter(|kept| of_it(&kept.row) && kept.row.reason != Reason::Mismatch) {
            kept.found.settled = true;
        }
    }

    pub(super) fn find(&self, seq: i64) -> Option<Quarantined> {
        self.rows.iter().find(|kept| kept.row.seq == seq).map(|kept| kept.found.clone())
    }

    /// Notes that an operator puts the row back; false = there is no such row, or it is settled.
    pub(super) fn request(&mut self, seq: i64) -> bool {
        self.open().find(|kept| kept.row.seq == seq).map(|kept| kept.row.requests += 1).is_some()
    }

    /// False = there is no such row, or it is settled already.
    pub(super) fn close(&mut self, seq: i64) -> bool {
        self.open().find(|kept| kept.row.seq == seq).map(|kept| kept.found.settled = true).is_some()
    }

    pub(super) fn newest(&self, limit: u32) -> Vec<QuarantineRow> {
        let open = self.rows.iter().rev().filter(|kept| !kept.found.settled);
        open.take(limit as usize).map(|kept| QuarantineRow { raw: None, ..kept.row.clone() }).collect()
    }

    pub(super) fn requested(&self, limit: u32, due: impl Fn(&Key) -> bool) -> Vec<QuarantineRow> {
        let asked = |kept: &&Kept| !kept.found.settled && kept.row.requests > 0 && due(&kept.row.key);
        self.rows.iter().filter(asked).take(limit as usize).map(|kept| kept.row.clone()).collect()
    }

    pub(super) fn expire(&mut self, limit: DateTime<Utc>) -> usize {
        let known = self.rows.len();
        self.rows.retain(|kept| !kept.found.settled || kept.row.quarantined_at >= limit);
        known - self.rows.len()
    }

    pub(super) fn counts(&self) -> Counts {
        let open = || self.rows.iter().filter(|kept| !kept.found.settled).map(|kept| &kept.row);
        let count = |reason| u64::try_from(open().filter(|row| row.reason == reason).count()).unwrap_or(u64::MAX);
        let counted = Reason::ALL.map(|reason| (reason, count(reason)));
        Counts {
            quarantined: counted.into_iter().filter(|(_, count)| *count > 0).collect(),
            oldest_quarantined_at: open().map(|row| row.quarantined_at).next(),
            ..Counts::default()
        }
    }
}
