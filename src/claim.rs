//! The words of the claim protocol: key, intent, claim, state, and the times derived from the lease.
//!
//! A claim says which attempt owns an event. Every write names that attempt by its nonce, so a late owner can neither
//! finish nor release its successor; the phase says whether the handler may have been called.

use std::{fmt, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    clock::Moment,
    event::{Event, EventId, Fingerprint, RawEvent},
    outcome::Reason,
};

pub mod decide;
pub mod row;

/// The `[claims]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long an owner may be silent, 5 s to 10 min. Renewal, grace, fences and the store client's timeout derive
    /// from it.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// How long a finished event is remembered. At least the subscription's and the topic's message retention + 3 d.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
    /// What the keys belong to; empty means the full subscription name.
    pub scope: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { lease: Duration::from_secs(60), retention: Duration::from_secs(10 * 86_400), scope: String::new() }
    }
}

/// The times that follow from the lease. One number is configured; the rest must not contradict it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(Duration);

impl Lease {
    /// The times for a lease of this length.
    #[must_use]
    pub const fn new(length: Duration) -> Self {
        Self(length)
    }

    /// How long an owner may be silent.
    #[must_use]
    pub const fn length(self) -> Duration {
        self.0
    }

    /// How long after the lease another process must wait before it takes over.
    #[must_use]
    pub fn grace(self) -> Duration {
        self.0 / 12
    }

    /// How often running claims are renewed: one lost renewal is harmless.
    #[must_use]
    pub fn renew_every(self) -> Duration {
        self.0 / 4
    }

    /// How long after an owner was allowed to call the handler nothing of the call is left, by the promise of its claim.
    #[must_use]
    pub fn promise(self, timeout: Duration) -> Duration {
        timeout.saturating_add(self.grace())
    }

    /// How long the store client waits for an answer before the write counts as unknown.
    #[must_use]
    pub fn client_timeout(self) -> Duration {
        (self.0 / 6).min(Duration::from_secs(5))
    }

    /// When an owner must consider its claim lost, counted from the moment its last good write was *sent*.
    #[must_use]
    pub fn fence_after(self, sent_at: Moment) -> Moment {
        sent_at + self.0.saturating_sub(self.grace())
    }
}

/// How far back an event may be born and still look new: its row cannot have been forgotten yet. Retention less a day,
/// at least half of it.
#[must_use]
pub fn fence(retention: Duration) -> Duration {
    const DAY: Duration = Duration::from_secs(86_400);
    retention.saturating_sub(DAY).max(retention / 2)
}

/// The key of a claim: a pure function of scope and event id, with the event's time in front so that neighbouring
/// events lie on neighbouring pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Uuid);

impl Key {
    /// Six bytes of milliseconds, then ten bytes of SHA-256 over scope and event id.
    #[must_use]
    pub fn derive(scope: &str, event: &Event) -> Self {
        let digest = Sha256::new()
            .chain_update(b"bellhop.key.v1\0")
            .chain_update(scope)
            .chain_update(b"\n")
            .chain_update(event.id.as_str())
            .finalize();
        let mut bytes = [0_u8; 16];
        bytes[..6].copy_from_slice(&event.key_time_ms.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&digest[..10]);
        Self(Uuid::from_bytes(bytes))
    }

    /// The key as a store keeps it.
    #[must_use]
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for Key {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// Names one attempt. Made by the client before the first send, discarded with the first clear answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(Uuid);

impl Nonce {
    /// A fresh random nonce.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The nonce as a store keeps it.
    #[must_use]
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for Nonce {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

/// How often an event may fail, and how often its process may die, before it is quarantined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Times the handler may say no.
    pub max_failures: u16,
    /// Times an owner may be lost while the event was claimed.
    pub max_lost: u16,
}

/// What names an event in a store. Never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Which event.
    pub key: Key,
    /// Its id.
    pub event_id: EventId,
    /// Its type, for listings.
    pub event_type: String,
    /// Its fingerprint: a different one on the same key is a mismatch.
    pub fingerprint: Fingerprint,
}

/// What a claimer asks for. Sent again unchanged (same nonce) when the answer was lost.
#[derive(Debug, Clone)]
pub struct ClaimIntent {
    /// Which event.
    pub event: Identity,
    /// Which attempt.
    pub nonce: Nonce,
    /// The claimer's rule says `on_unknown = "quarantine"`. Sticks to the row for ever.
    pub strict: bool,
    /// The limits of the claimer's rule.
    pub budget: Budget,
    /// The handler timeout of the claimer's rule: sets the promised deadline.
    pub timeout: Duration,
    /// Earlier of event time and publish time: an event older than retention must not look new.
    pub born: DateTime<Utc>,
    /// This process holds its one suspect permit for this attempt, so an event whose owner died may be claimed.
    pub suspect: bool,
    /// The payload, for rows in quarantine.
    pub raw: Arc<RawEvent>,
}

impl ClaimIntent {
    /// Which event.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.event.key
    }

    /// The attempt as named in writes.
    #[must_use]
    pub const fn reference(&self) -> ClaimRef {
        ClaimRef { key: self.event.key, nonce: self.nonce }
    }
}

/// Whether the handler may have been called. Stored; what the store answers decides, never the own rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Certainly not begun: started before the handler is called.
    NotBegun,
    /// May have been called.
    MayHaveRun,
}

impl Phase {
    /// The number a store keeps. 2 is kept for handlers that have returned and whose reply is not yet out.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::NotBegun => 0,
            Self::MayHaveRun => 1,
        }
    }

    /// The phase of a stored number.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::NotBegun),
            1 => Some(Self::MayHaveRun),
            _ => None,
        }
    }
}

/// Where an event stands. Absent = never seen, or past retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Leased by an attempt.
    Running,
    /// Final: handled.
    Done,
    /// Clean failure or handed back; claimable from `not_before`.
    Retry,
    /// Final until an operator acts.
    Quarantined,
}

impl State {
    /// The number a store keeps.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::Running => 1,
            Self::Done => 2,
            Self::Retry => 3,
            Self::Quarantined => 4,
        }
    }

    /// The state of a stored number.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            1 => Some(Self::Running),
            2 => Some(Self::Done),
            3 => Some(Self::Retry),
            4 => Some(Self::Quarantined),
            _ => None,
        }
    }
}

/// An attempt's hold on an event: what its owner knows of the row, and writes back whole.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What was asked for.
    pub intent: Arc<ClaimIntent>,
    /// Fencing number: from 1, raised at every change of ownership and every new attempt, never lowered.
    pub epoch: u32,
    /// As answered by the store; `MayHaveRun` from the moment its start was asked for.
    pub phase: Phase,
    /// As answered by the store: once strict, always strict.
    pub strict: bool,
    /// Times the handler said no so far.
    pub failures: u16,
    /// Times an owner was lost so far.
    pub lost: u16,
    /// How the attempt before this one ended.
    pub note: String,
    /// When this claim must be considered lost unless renewed.
    pub fence_at: Moment,
    /// Until when the handler may run, as promised on the row; `None` = nothing is promised yet.
    pub deadline_at: Option<Moment>,
}

impl Claim {
    /// The claim as named in writes.
    #[must_use]
    pub fn reference(&self) -> ClaimRef {
        self.intent.reference()
    }
}

/// Names an attempt in a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimRef {
    /// Which event.
    pub key: Key,
    /// Which attempt.
    pub nonce: Nonce,
}

/// Why a copy waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Another attempt holds a live lease, or its lease ended and the take-over is not yet allowed.
    Running,
    /// The next attempt is not yet due.
    NotDue,
    /// An owner was lost with this event: claim again with the suspect permit.
    Suspect,
    /// Another event holds this id; its row is not final yet. This payload is in quarantine.
    Mismatch,
}

/// The answer to a claim.
#[derive(Debug)]
pub enum Claimed {
    /// The event is ours.
    Mine(Claim),
    /// Not now: park the copy.
    Wait {
        /// When asking again makes sense.
        wake_in: Duration,
        /// Why.
        why: Wait,
    },
    /// Final already: ack.
    Settled,
    /// In quarantine: ack.
    Quarantined {
        /// Why.
        reason: Reason,
        /// This claim put it there; false = a copy of an event that already was.
        fresh: bool,
    },
}

/// What a parked copy needs to know of its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// No row: claim.
    Absent,
    /// Final: ack.
    Settled,
    /// In quarantine: ack.
    Quarantined,
    /// Running or not due: look again after this time.
    Wait(Duration),
    /// A claim may succeed now.
    Claimable,
}
