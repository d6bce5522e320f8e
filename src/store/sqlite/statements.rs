//! Every statement of the SQLite store. Times are microseconds since 1970 (UTC).

/// The schema's version, kept in `user_version`.
pub(super) const VERSION: i64 = 1;

/// From an empty file to version 1. Unlike Postgres, SQLite pays nothing for an index on a changing column that few
/// rows have a place in: the open ones are found by partial indexes.
pub(super) const SCHEMA: [&str; 9] = [
    "CREATE TABLE claims (
        key BLOB PRIMARY KEY,
        event_id TEXT NOT NULL,
        event_type TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        state INTEGER NOT NULL,
        phase INTEGER NOT NULL,
        strict INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        lost INTEGER NOT NULL,
        nonce BLOB NOT NULL,
        lease_until INTEGER NOT NULL,
        deadline INTEGER,
        not_before INTEGER,
        first_seen_at INTEGER NOT NULL,
        finished_at INTEGER,
        note TEXT NOT NULL
     ) STRICT, WITHOUT ROWID",
    "CREATE INDEX claims_first_seen ON claims (first_seen_at)",
    "CREATE INDEX claims_open ON claims (key) WHERE state IN (1, 3)",
    "CREATE TABLE replies (
        key BLOB NOT NULL REFERENCES claims (key) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (key, ordinal)
     ) STRICT",
    "CREATE TABLE quarantine (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        key BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        nonce BLOB NOT NULL,
        reason TEXT NOT NULL,
        detail TEXT NOT NULL,
        event_id TEXT NOT NULL,
        event_type TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        strict INTEGER NOT NULL,
        message_id TEXT NOT NULL,
        ordering_key TEXT NOT NULL,
        publish_time INTEGER,
        payload BLOB NOT NULL,
        payload_hash BLOB NOT NULL,
        attributes BLOB NOT NULL,
        deadline INTEGER,
        quarantined_at INTEGER NOT NULL,
        requested_at INTEGER,
        requested_epoch INTEGER,
        requested_by TEXT,
        settled_at INTEGER,
        resolution TEXT,
        UNIQUE (key, nonce, reason, payload_hash)
     ) STRICT",
    "CREATE INDEX quarantine_open ON quarantine (seq) WHERE settled_at IS NULL",
    "CREATE INDEX quarantine_requested ON quarantine (seq) WHERE settled_at IS NULL AND requested_at IS NOT NULL",
    "CREATE INDEX quarantine_settled ON quarantine (quarantined_at) WHERE settled_at IS NOT NULL",
    "PRAGMA user_version = 1",
];

pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";

pub(super) const FIND_VERSION: &str = "PRAGMA user_version";

/// The lock on the file proves that every earlier owner is dead.
pub(super) const END_LEASES: &str = "UPDATE claims SET lease_until = ?1 WHERE state = 1 AND lease_until > ?1";

pub(super) const FIND_CLAIM: &str = "SELECT * FROM claims WHERE key = ?1";

pub(super) const OPEN_CLAIMS: &str = "SELECT * FROM claims WHERE state IN (1, 3)";

/// What names an event never changes; all else does.
pub(super) const WRITE_CLAIM: &str = "INSERT INTO claims
        (key, event_id, event_type, fingerprint, state, phase, strict, epoch, failures, lost, nonce, lease_until,
         deadline, not_before, first_seen_at, finished_at, note)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
    ON CONFLICT (key) DO UPDATE SET state = ?5, phase = ?6, strict = ?7, epoch = ?8, failures = ?9, lost = ?10,
        nonce = ?11, lease_until = ?12, deadline = ?13, not_before = ?14, finished_at = ?16, note = ?17";

pub(super) const FIND_REPLIES: &str = "SELECT ordinal, body FROM replies WHERE key = ?1 ORDER BY ordinal";

pub(super) const KEEP_REPLY: &str =
    "INSERT INTO replies (key, ordinal, body) VALUES (?1, ?2, ?3) ON CONFLICT (key, ordinal) DO NOTHING";

pub(super) const FORGET_REPLIES: &str = "DELETE FROM replies WHERE key = ?1";

pub(super) const PUT_ASIDE: &str = "INSERT INTO quarantine
        (key, epoch, nonce, reason, detail, event_id, event_type, fingerprint, strict, message_id, ordering_key,
         publish_time, payload, payload_hash, attributes, deadline, quarantined_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
    ON CONFLICT (key, nonce, reason, payload_hash) DO NOTHING";

/// The attempt turned out to have succeeded. A mismatch carries its nonce, but is another event.
pub(super) const RESOLVE: &str = "UPDATE quarantine SET resolution = 'late_success', settled_at = ?3
    WHERE key = ?1 AND nonce = ?2 AND settled_at IS NULL AND reason <> 'mismatch'";

pub(super) const NEWEST: &str = "SELECT q.seq, q.key, q.epoch, q.nonce, q.reason, q.detail, q.event_id, q.event_type,
        q.quarantined_at,
        (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS requests
    FROM quarantine q WHERE q.settled_at IS NULL ORDER BY q.seq DESC LIMIT ?1";

/// Requested rows whose event neither runs under a live lease (?2 = now less grace) nor waits for its time (?3).
pub(super) const REPLAYABLE: &str = "SELECT q.seq, q.key, q.epoch, q.nonce, q.reason, q.detail, q.event_id,
        q.event_type, q.quarantined_at, q.message_id, q.ordering_key, q.publish_time, q.payload, q.attributes,
        (SELECT count(*) FROM quarantine r WHERE r.key = q.key AND r.requested_at IS NOT NULL) AS requests
    FROM quarantine q LEFT JOIN claims c ON c.key = q.key
    WHERE q.settled_at IS NULL AND q.requested_at IS NOT NULL
      AND NOT (coalesce(c.state, 0) = 1 AND c.lease_until >= ?2)
      AND NOT (coalesce(c.state, 0) = 3 AND coalesce(c.not_before, 0) > ?3)
    ORDER BY q.seq LIMIT ?1";

pub(super) const FIND_OPEN: &str =
    "SELECT key, epoch, nonce, reason, event_id, event_type, fingerprint, strict, deadline
    FROM quarantine WHERE seq = ?1 AND settled_at IS NULL";

pub(super) const REQUEST: &str =
    "UPDATE quarantine SET requested_at = ?2, requested_by = ?3, requested_epoch = ?4 WHERE seq = ?1";

pub(super) const CLOSE: &str =
    "UPDATE quarantine SET settled_at = ?2, resolution = ?3 WHERE seq = ?1 AND settled_at IS NULL";

pub(super) const FORGET_CLAIMS: &str = "DELETE FROM claims WHERE key IN
    (SELECT key FROM claims WHERE first_seen_at < ?1 AND state IN (2, 4) ORDER BY first_seen_at LIMIT ?2)";

pub(super) const FORGET_SETTLED: &str = "DELETE FROM quarantine WHERE seq IN
    (SELECT seq FROM quarantine WHERE settled_at IS NOT NULL AND quarantined_at < ?1 ORDER BY quarantined_at LIMIT ?2)";

pub(super) const COUNT_OPEN: &str = "SELECT reason, count(*) AS rows, min(quarantined_at) AS oldest FROM quarantine
    WHERE settled_at IS NULL GROUP BY reason";

/// All but the schema, for the test that prepares each.
#[cfg(test)]
pub(super) const ALL: [&str; 20] = [
    BEGIN,
    FIND_VERSION,
    END_LEASES,
    FIND_CLAIM,
    OPEN_CLAIMS,
    WRITE_CLAIM,
    FIND_REPLIES,
    KEEP_REPLY,
    FORGET_REPLIES,
    PUT_ASIDE,
    RESOLVE,
    NEWEST,
    REPLAYABLE,
    FIND_OPEN,
    REQUEST,
    CLOSE,
    FORGET_CLAIMS,
    FORGET_SETTLED,
    COUNT_OPEN,
    "COMMIT",
];
