//! The ports to where claims are kept.
//!
//! A store is dumb: it enters rows where nothing is, swaps rows that are as they were read, completes, renews and
//! reads, many at a time; [`crate::claims::Claims`] decides what is written. `docs/CLAIMS.md` describes the protocol
//! and how to write a store; every implementation passes the same conformance suite.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::{
    claim::{Identity, Key, Nonce},
    event::RawEvent,
    outcome::{Note, Reason},
};

pub(crate) mod holdoff;
pub mod memory;
pub mod postgres;
pub mod sqlite;
mod table;
pub mod watch;

pub use table::{Aside, ClaimTable, Entered, Entry, Guard, Rider, Seen, Swap};

/// Rows that one step of `expire` forgets: few enough that claims do not wait for it.
const EXPIRE_AT_ONCE: u16 = 2_000;

/// The quarantine rows. What a claim row's write puts there comes with its swap; the rest is here.
#[async_trait]
pub trait Quarantine: Debug + Send + Sync {
    /// Puts a payload aside that has no claim row of its own: it came under another event's id. Once per payload; false
    /// = it is there. `epoch` and `nonce` are those of the row that holds the id.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn put_aside(&self, aside: &Aside, epoch: u32, nonce: Nonce) -> Result<bool, StoreError>;

    /// One row, as a requeue needs it.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn find(&self, seq: i64) -> Result<Option<Quarantined>, StoreError>;

    /// Settles a row; the event stays as it is. False = no such row, or settled already.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn close(&self, seq: i64, resolution: &Note) -> Result<bool, StoreError>;

    /// The newest rows that are not settled, without payloads.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn newest(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError>;

    /// Requeued rows that are due for delivery: not settled, and their claim neither held by a live lease nor waiting.
    ///
    /// # Errors
    /// See [`StoreError`].
    async fn replayable(&self, limit: u32) -> Result<Vec<QuarantineRow>, StoreError>;
}

/// A quarantine row as a requeue needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Which event.
    pub event: Identity,
    /// The attempt that ended there.
    pub epoch: u32,
    /// Its nonce.
    pub nonce: Nonce,
    /// Why.
    pub reason: Reason,
    /// Once strict, always strict.
    pub strict: bool,
    /// Whether somebody has dealt with it.
    pub settled: bool,
    /// Whether the payload is still there.
    pub has_payload: bool,
}

/// What failed underneath, shared by all whose items went out in one statement.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a store did not do it, by what the caller does next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Someone else holds the event now. Drop the work.
    #[error("claim is no longer held")]
    ClaimLost,
    /// Another writer was in the way. Try the same again.
    #[error("store is contended")]
    Contention(#[source] Cause),
    /// The store said no to this event. A retry will not help; other events are not affected.
    #[error("store refused the request")]
    Refused(#[source] Cause),
    /// No answer, or none that can be trusted: the write may have happened. Never ack after this.
    #[error("store did not answer")]
    Unknown(#[source] Cause),
}

impl StoreError {
    /// Another writer was in the way.
    pub fn contention(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Contention(Arc::new(cause))
    }

    /// The store said no.
    pub fn refused(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Refused(Arc::new(cause))
    }

    /// No answer.
    pub fn unknown(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unknown(Arc::new(cause))
    }

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
