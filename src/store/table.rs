//! The port to claim rows: enter, swap, complete, renew, read.

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::{
    claim::{
        ClaimIntent, ClaimRef, Identity, Key, Nonce, Phase, State,
        row::{Next, Row},
    },
    outcome::{Detail, Note, Reason},
};

/// The claim rows. Each call is atomic and answers every item in its place; an error means that nothing was written
/// (`Contention`, `Refused`) or that nobody knows (`Unknown`), for all of them alike. No key comes twice in a call.
///
/// In a call with several items a row that somebody else has locked may be passed over, and counts as not written: the
/// caller sends such an item again alone. A call with one item waits for the lock.
#[async_trait]
pub trait ClaimTable: Debug + Send + Sync {
    /// Inserts where there is no row and the event is young enough to look new; else answers what is there. Never
    /// changes a row: an entry that arrives late can only insert.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    async fn enter(&self, entries: &[Entry]) -> Result<Vec<Entered>, StoreError>;

    /// Writes each row whose guard still holds at the write; says which were written.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    async fn swap(&self, swaps: &[Swap]) -> Result<Vec<bool>, StoreError>;

    /// The event was handled: DONE whatever the state, where the row names this attempt. Settles the quarantine rows of
    /// the attempt (a late success), mismatches excepted. Repeating it is harmless. False = no such row.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    async fn complete(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError>;

    /// Gives running attempts a whole lease, at most [`crate::claim::row::SETTLE_TIME`] beyond their deadline. Locked
    /// rows are passed over. Need not survive the store's own crash. False = not renewed.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError>;

    /// The rows as they stand.
    ///
    /// # Errors
    /// See [`StoreError`]; never `ClaimLost`.
    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Seen>>, StoreError>;
}

/// A row to insert where there is none.
#[derive(Debug, Clone)]
pub struct Entry {
    /// For whom.
    pub intent: Arc<ClaimIntent>,
    /// The row.
    pub first: Next,
}

/// What an entry found.
#[derive(Debug, Clone)]
pub enum Entered {
    /// Nothing: the row was inserted.
    Inserted,
    /// This row.
    Found(Box<Seen>),
    /// Nothing, and the event is so old that its row may have been forgotten. Nothing was inserted.
    Old,
    /// Another entry was first, after the snapshot. Enter again.
    Raced,
}

/// A row as it was read.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The row.
    pub row: Row,
    /// The store's time when it was read.
    pub now: DateTime<Utc>,
    /// Where the row is running and stale: take-overs are not allowed for this long.
    pub held_off: Option<Duration>,
    /// Where the row is running and stale: which server said so. `None` for a store that has no server.
    pub server: Option<String>,
}

/// What must hold of a row at the moment it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// The owner's own write: RUNNING under this nonce, no more and no less. His copy of the lease is older than the
    /// row after one renewal, his copy of the phase after a lost answer.
    Owner(Nonce),
    /// A write by somebody else: the row is as it was read.
    Unchanged {
        /// Where it stood.
        state: State,
        /// Its phase.
        phase: Phase,
        /// The attempt it named.
        nonce: Nonce,
        /// Its epoch.
        epoch: u32,
        /// Its lease.
        lease_until: DateTime<Utc>,
        /// The server that answered, where the row was running: a restart may bring back the very row that was read,
        /// since renewals need not survive it.
        server: Option<String>,
    },
    /// There is no row.
    Absent,
}

impl Guard {
    /// Whether it holds for a row as it stands now. Which server answers is for a store that has one to compare.
    #[must_use]
    pub fn holds(&self, row: Option<&Row>) -> bool {
        match (self, row) {
            (Self::Absent, row) => row.is_none(),
            (Self::Owner(nonce), Some(row)) => row.is_owned_by(*nonce),
            (Self::Unchanged { state, phase, nonce, epoch, lease_until, server: _ }, Some(row)) => {
                (row.state, row.phase, row.nonce, row.epoch, row.lease_until)
                    == (*state, *phase, *nonce, *epoch, *lease_until)
            }
            (Self::Owner(_) | Self::Unchanged { .. }, None) => false,
        }
    }
}

impl Seen {
    /// The guard of a write by somebody else than the owner.
    #[must_use]
    pub fn unchanged(&self) -> Guard {
        Guard::Unchanged {
            state: self.row.state,
            phase: self.row.phase,
            nonce: self.row.nonce,
            epoch: self.row.epoch,
            lease_until: self.row.lease_until,
            server: self.server.clone().filter(|_| self.row.state == State::Running),
        }
    }
}

/// A row to write if its guard holds, with what goes along in the same transaction.
#[derive(Debug, Clone)]
pub struct Swap {
    /// Which event.
    pub event: Identity,
    /// What must hold.
    pub guard: Guard,
    /// The row afterwards.
    pub next: Next,
    /// What goes along.
    pub rider: Option<Rider>,
}

/// What is written to quarantine together with a claim row.
#[derive(Debug, Clone)]
pub enum Rider {
    /// The payload, under the written row's nonce and epoch.
    Aside(Aside),
    /// The request of an operator who puts a quarantine row back; the row must not be settled.
    Request {
        /// Which row.
        seq: i64,
        /// Who asks.
        by: Note,
    },
}

/// A payload that is put aside.
#[derive(Debug, Clone)]
pub struct Aside {
    /// Why.
    pub reason: Reason,
    /// What the handler said.
    pub detail: Detail,
    /// Whose it is.
    pub intent: Arc<ClaimIntent>,
}
