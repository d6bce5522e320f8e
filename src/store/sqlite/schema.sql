-- From an empty file to version 1, which is kept in user_version. Times are microseconds since 1970 (UTC).
CREATE TABLE claims (
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
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_first_seen ON claims (first_seen_at);
-- Unlike Postgres, SQLite pays nothing for an index on a changing column that few rows have a place in.
CREATE INDEX claims_open ON claims (key) WHERE state IN (1, 3);
-- Nothing is kept here any more.
CREATE TABLE replies (
    key BLOB NOT NULL REFERENCES claims (key) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (key, ordinal)
) STRICT;
CREATE TABLE quarantine (
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
) STRICT;
CREATE INDEX quarantine_open ON quarantine (seq) WHERE settled_at IS NULL;
CREATE INDEX quarantine_requested ON quarantine (seq) WHERE settled_at IS NULL AND requested_at IS NOT NULL;
CREATE INDEX quarantine_settled ON quarantine (quarantined_at) WHERE settled_at IS NOT NULL;
PRAGMA user_version = 1;
