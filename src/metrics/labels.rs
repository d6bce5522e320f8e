//! What labels may say: closed sets, so that the number of series does not grow with traffic, and every counter starts
//! at zero.

use crate::event::type_labels;

/// What the subscription says of a delivery; `unknown` where it does not count attempts.
pub const DELIVERIES: [&str; 3] = ["first", "redelivered", "unknown"];
/// How a claim was answered.
pub const CLAIM_RESULTS: [&str; 7] = ["claimed", "takeover", "duplicate", "parked", "not_due", "quarantined", "error"];
/// How an attempt was settled.
pub const OUTCOMES: [&str; 4] = ["done", "retried", "quarantined", "handed_back"];
/// How a claim was lost while the handler ran.
pub const LOSSES: [&str; 2] = ["fenced", "expired"];
/// What keeps new events from being claimed.
pub const PAUSES: [&str; 3] = ["store", "breaker", "brake"];
/// What a Workspace Events subscription says of its end.
pub const WARNINGS: [&str; 3] = ["expiring", "expired", "suspended"];
/// How a statement can fail.
pub const STORE_ERRORS: [&str; 3] = ["contention", "refused", "unknown"];
/// The sources there are.
pub const SOURCES: [&str; 1] = ["pubsub"];
/// Why a stream of a source ended, or a request to it failed. Classes of our own: the codes of gRPC are more.
pub const SOURCE_REASONS: [&str; 18] = [
    "not_found",
    "permission_denied",
    "unauthenticated",
    "credentials",
    "unreachable",
    "timeout",
    "cancelled",
    "unknown",
    "invalid_argument",
    "failed_precondition",
    "already_exists",
    "resource_exhausted",
    "server",
    "undecodable",
    "ended",
    "silence",
    "panicked",
    "other",
];
/// What else an ack can come to: handed to the client; confirmed; too late; not confirmed before the end.
pub const ACK_RESULTS: [&str; 4] = ["sent", "ok", "lease_expired", "shutdown"];
/// What a nack can come to: handed to the client; given back by a drain before it was handed over.
pub const NACK_RESULTS: [&str; 2] = ["sent", "drained"];

/// One label.
pub(super) fn each(values: impl IntoIterator<Item = &'static str>) -> impl Iterator<Item = [&'static str; 1]> {
    values.into_iter().map(|value| [value])
}

/// Two labels, every value with every other.
pub(super) fn pairs(
    first: impl IntoIterator<Item = &'static str>,
    second: &'static [&'static str],
) -> impl Iterator<Item = [&'static str; 2]> {
    first.into_iter().flat_map(move |one| second.iter().map(move |two| [one, *two]))
}

/// Event types with every value of another label.
pub(super) fn by_type(values: &'static [&'static str]) -> impl Iterator<Item = [&'static str; 2]> {
    pairs(type_labels(), values)
}

/// What each answer to Pub/Sub, and each probe, can come to.
pub(super) fn requests() -> impl Iterator<Item = [&'static str; 2]> {
    pairs(["ack"], &ACK_RESULTS)
        .chain(pairs(["ack"], &SOURCE_REASONS))
        .chain(pairs(["nack"], &NACK_RESULTS))
        .chain(pairs(["probe"], &["ok"]))
        .chain(pairs(["probe"], &SOURCE_REASONS))
}
