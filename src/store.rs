//! The ports to where claims are kept: for the worker, for operators, for upkeep.
//!
//! `docs/CLAIMS.md` describes the protocol; every implementation passes the same conformance suite.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::{
    claim::{Claim, ClaimIntent, ClaimRef, ClaimView, Claimed, Key, Nonce, State, Step},
    event::RawEvent,
    outcome::{Note, Outcome, Reason},
    source::BoxError,
};

pub mod memory;
pub mod postgres;
mod record;
pub mod sqlite;
pub mod timed;

/// What the worker needs of a store.
#[async_trait]
pub trait ClaimStore: Debug + Send + Sync {
    /// Claims an event, takes it over, recognises its own lost answer, or says why not. Ends the matter: whatever
    /// second statement is needed has been written. After `Unknown` or `Contention` send the same intent again.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError>;

    /// Records a step of a running attempt and renews its lease.
    ///
    /// # Errors
    /// `ClaimLost`: the attempt is no longer the owner; do not go on.
    async fn advance(&self, claim: &Claim, step: &Step) -> Result<(), StoreError>;

    /// Renews the leases of running attempts; returns those that were not renewed. A lease never outlives the
    /// promised deadline by more than five minutes.
    ///
    /// # Errors
    /// See [`StoreError`]; nothing is known of any of them then.
    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<ClaimRef>, StoreError>;

    /// Writes how an attempt ended; also gives up a claim that was never answered. `Done` is accepted from whoever
    /// the row names, whatever happened meanwhile, and inserted where the row is gone; the others only from the
    /// owner. Repeating a settled `Done` is harmless.
    ///
    /// # Errors
    /// `ClaimLost`: somebody else owns the event now.
    async fn settle(&self, claim: &ClaimRef, outcome: &Outcome) -> Result<(), StoreError>;

    /// How the events of parked copies stand. Keys without a row are `Absent`.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn look(&self, keys: &[Key]) -> Result<Vec<ClaimView>, StoreError>;
}

/// Why a store did not do it, by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Someone else holds the event now. Drop the work.
    #[error("claim is no longer held")]
    ClaimLost,
    /// Another writer was in the way. Try the same again.
    #[error("store is contended")]
    Contention(#[source] BoxError),
    /// The store said no to this event. A retry will not help; other events are not affected.
    #[error("store refused the request")]
    Refused(#[source] BoxError),
    /// No answer, or none that can be trusted: the write may have happened. Never ack after this.
    #[error("store did not answer")]
    Unknown(#[source] BoxError),
}

impl StoreError {
    /// The class in metrics and logs.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::ClaimLost => "claim_lost",
            Self::Contention(_) => "contention",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl StoreError {
    /// What the store itself said, cleaned; for logs. Servers name tables and columns here, not what is in them.
    #[must_use]
    pub fn cause(&self) -> Note {
        let mut cause: &dyn std::error::Error = self;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Note::new(&cause.to_string())
    }
}

/// What operators need of a store.
#[async_trait]
pub trait ClaimLog: Debug + Send + Sync {
    /// The newest quarantine rows, without payloads.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn quarantined(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError>;

    /// One event's claim row.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn show(&self, key: Key) -> Result<Option<ClaimRecord>, StoreError>;

    /// Puts a quarantined event back: its row becomes claimable at once under the next epoch, budgets anew, and the
    /// quarantine row becomes the delivery.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn requeue(&self, seq: i64, by: &str) -> Result<Requeued, StoreError>;

    /// Closes a quarantine row: the event stays as it is.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn close(&self, seq: i64, resolution: &str) -> Result<bool, StoreError>;

    /// Requeued rows that are due for delivery: not settled, and their claim neither held by a live lease nor waiting.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError>;
}

/// What keeps a store fit: on every replica, paced.
#[async_trait]
pub trait Upkeep: Debug + Send + Sync {
    /// Whether the store can be used now: reachable, writable, durable, schema fit. Cheap; also the outage probe.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn prepare(&self) -> Result<Readiness, StoreError>;

    /// Forgets finished events older than retention and payloads past theirs, in small steps; returns the rows
    /// deleted. Running, retrying and unsettled rows are never deleted.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError>;

    /// Rows by kind, for gauges.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn counts(&self) -> Result<Counts, StoreError>;
}

/// Whether a store that answers can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Its schema is older than this code needs: `bellhop migrate up` (a migration may be running).
    SchemaTooOld {
        /// What it has; 0 = none.
        found: i64,
        /// What is needed.
        needed: i64,
    },
    /// Its schema no longer admits code this old.
    CodeTooOld {
        /// The oldest code version it admits.
        min_code: i64,
        /// What this code is.
        mine: i64,
    },
    /// It answers, but writing to it would not be safe (read-only, not durable, wrong isolation).
    Unfit(String),
}

/// What `requeue` found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeued {
    /// Claimable now.
    Yes,
    /// No such row, or it is settled already.
    NotFound,
    /// The handler may still be running until the deadline it was given.
    MayStillRun,
    /// The payload is gone, or the row is a mismatch: nothing to deliver.
    NoPayload,
}

/// A quarantine row.
#[derive(Debug, Clone)]
pub struct QuarantineRow {
    /// Its number.
    pub seq: i64,
    /// Which event.
    pub key: Key,
    /// The attempt that ended there.
    pub epoch: u32,
    /// Its nonce.
    pub nonce: Nonce,
    /// Why.
    pub reason: Reason,
    /// What the handler said.
    pub detail: String,
    /// The event's id.
    pub event_id: String,
    /// The event's type.
    pub event_type: String,
    /// When.
    pub quarantined_at: DateTime<Utc>,
    /// How often an operator put it back.
    pub requests: u32,
    /// The delivery it holds; only from `replayable`.
    pub raw: Option<Arc<RawEvent>>,
}

/// A claim row.
#[derive(Debug, Clone)]
pub struct ClaimRecord {
    /// Which event.
    pub key: Key,
    /// Its id.
    pub event_id: String,
    /// Its type.
    pub event_type: String,
    /// Where it stands.
    pub state: State,
    /// Fencing number.
    pub epoch: u32,
    /// Times the handler said no.
    pub failures: u16,
    /// Times an owner was lost.
    pub lost: u16,
    /// Once strict, always strict.
    pub strict: bool,
    /// The last note.
    pub note: String,
    /// When it was first claimed.
    pub first_seen_at: DateTime<Utc>,
    /// When it became final.
    pub finished_at: Option<DateTime<Utc>>,
}

/// Rows by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Open quarantine rows by reason.
    pub quarantined: Vec<(Reason, u64)>,
    /// When the oldest open quarantine row was written.
    pub oldest_quarantined_at: Option<DateTime<Utc>>,
    /// Running claims whose lease and grace are over.
    pub stale: u64,
    /// Claims that nobody delivers any more.
    pub stranded: u64,
}
