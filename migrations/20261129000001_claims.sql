-- The claim protocol's tables. docs/CLAIMS.md explains every column.

-- Which schema this is, and the oldest code it still admits. One row.
CREATE TABLE schema_info (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    version  bigint NOT NULL,
    min_code bigint NOT NULL
);
INSERT INTO schema_info (version, min_code) VALUES (1, 1);

-- One row per event. No index and no predicate may touch a column that changes, or updates stop being HOT.
CREATE TABLE claims (
    key           uuid PRIMARY KEY,
    event_id      text NOT NULL,
    event_type    text NOT NULL,
    fingerprint   bytea NOT NULL,
    state         smallint NOT NULL CHECK (state BETWEEN 1 AND 4),
    phase         smallint NOT NULL CHECK (phase BETWEEN 0 AND 2),
    strict        boolean NOT NULL,
    epoch         integer NOT NULL CHECK (epoch >= 1),
    failures      integer NOT NULL DEFAULT 0,
    lost          integer NOT NULL DEFAULT 0,
    nonce         uuid NOT NULL,
    lease_until   timestamptz NOT NULL,
    deadline      timestamptz,
    not_before    timestamptz,
    first_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at   timestamptz,
    note          text NOT NULL DEFAULT ''
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 500
);
CREATE INDEX claims_first_seen_at ON claims (first_seen_at);

-- What a human has to look at, with the payload: after a requeue this row is the delivery.
CREATE TABLE quarantine (
    seq             bigserial PRIMARY KEY,
    key             uuid NOT NULL,
    epoch           integer NOT NULL,
    nonce           uuid NOT NULL,
    reason          text NOT NULL,
    detail          text NOT NULL DEFAULT '',
    event_id        text NOT NULL,
    event_type      text NOT NULL,
    fingerprint     bytea NOT NULL,
    strict          boolean NOT NULL,
    message_id      text NOT NULL DEFAULT '',
    publish_time    timestamptz,
    payload         bytea,
    payload_hash    bytea NOT NULL,
    attributes      bytea,
    quarantined_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    requested_at    timestamptz,
    requested_epoch integer,
    requested_by    text,
    settled_at      timestamptz,
    resolution      text,
    closed_at       timestamptz,
    UNIQUE (key, nonce, reason, payload_hash)
);
CREATE INDEX quarantine_requested ON quarantine (requested_at) WHERE requested_at IS NOT NULL AND settled_at IS NULL;
CREATE INDEX quarantine_open ON quarantine (quarantined_at) WHERE settled_at IS NULL;

-- What a handler answered, written before the first post.
CREATE TABLE replies (
    key          uuid NOT NULL,
    ordinal      integer NOT NULL,
    body         bytea NOT NULL,
    message_name text,
    state        smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (key, ordinal)
);

-- Names the server that answers: its start time, and the timeline where the server tells it (some managed ones do not).
-- A take-over is allowed only where both are what the claimer saw a lease ago: after a restart or a failover every
-- lease looks stale, and the owners must get the first word.
CREATE FUNCTION server_identity() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    started text := (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text;
BEGIN
    RETURN started || '/' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
EXCEPTION WHEN undefined_function OR feature_not_supported OR insufficient_privilege THEN
    RETURN started;
END
$$;
