//! The words of a script of faults.

use std::time::Duration;

use crate::{
    claim::{Key, Step},
    outcome::Outcome,
};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the call goes through. For the calls before the one that is to fail.
    None,
    /// The answer is `Unknown`; nothing was written.
    BeforeWrite,
    /// It was written; the answer is `Unknown`.
    AfterWrite,
    /// The answer is `Unknown`; it is written when [`super::FaultStore::deliver_late`] says so. A late look or renewal never
    /// arrives.
    Late,
    /// The answer is `ClaimLost`, for a renewal that none was renewed; nothing was written.
    ClaimLost,
    /// The answer is `Contention`; nothing was written.
    Contention,
    /// The answer is `Refused`; nothing was written.
    Refused,
    /// The call goes through after so long.
    Slow(Duration),
}

/// The calls of a claim store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `claim`
    Claim,
    /// `advance`
    Advance,
    /// `renew`
    Renew,
    /// `settle`
    Settle,
    /// `look`
    Look,
}

/// A call that was made, whatever became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `claim`
    Claim(Key),
    /// `advance`
    Advance(Key, Step),
    /// `renew`
    Renew(Vec<Key>),
    /// `settle`
    Settle(Key, Outcome),
    /// `look`
    Look(Vec<Key>),
}
