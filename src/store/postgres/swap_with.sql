-- Writes a row that must be absent ($2 NULL), or that takes a quarantine row along. $1-$19 are those of swap_one.sql;
-- $20 event id, $21 event type, $22 fingerprint. A payload that is put aside, if $23 is given: $23 reason, $24 detail,
-- $25 message id, $26 publish time, $27 payload, $28 its hash, $29 attributes. A quarantine row that is requested and
-- must not be settled, if $30 is given: $30 its number, $31 who asks.
WITH asked AS MATERIALIZED (SELECT seq FROM quarantine WHERE seq = $30::bigint AND settled_at IS NULL FOR UPDATE),
u AS (
    UPDATE claims SET
        state = $8, phase = $9, strict = $10, epoch = $11, failures = $12, lost = $13, nonce = $14, note = $15,
        lease_until = coalesce(clock_timestamp() + $16::interval, lease_until),
        deadline = CASE WHEN $17::interval IS NULL THEN deadline WHEN $17 >= '0' THEN clock_timestamp() + $17 END,
        not_before = CASE WHEN $18::interval IS NULL THEN not_before WHEN $18 >= '0' THEN clock_timestamp() + $18 END,
        finished_at = CASE WHEN $19::interval IS NULL THEN finished_at WHEN $19 >= '0' THEN clock_timestamp() + $19 END
    WHERE key = $1 AND state = $2 AND nonce = $3
        AND ($5::integer IS NULL OR (phase, epoch, lease_until) = ($4::smallint, $5, $6::timestamptz))
        AND ($7::text IS NULL OR server_identity() = $7)
        AND ($30 IS NULL OR EXISTS (SELECT 1 FROM asked))
    RETURNING key
),
i AS (
    INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, failures, lost, nonce, note,
        lease_until, deadline, not_before, finished_at)
    SELECT $1, $20::text, $21::text, $22::bytea, $8, $9, $10, $11, $12, $13, $14, $15,
        coalesce(clock_timestamp() + $16, clock_timestamp()), CASE WHEN $17 >= '0' THEN clock_timestamp() + $17 END,
        CASE WHEN $18 >= '0' THEN clock_timestamp() + $18 END, CASE WHEN $19 >= '0' THEN clock_timestamp() + $19 END
    WHERE $2::smallint IS NULL AND ($30 IS NULL OR EXISTS (SELECT 1 FROM asked))
    ON CONFLICT (key) DO NOTHING
    RETURNING key
),
written AS (SELECT key FROM u UNION ALL SELECT key FROM i),
aside AS (
    INSERT INTO quarantine (key, epoch, nonce, strict, reason, detail, event_id, event_type, fingerprint,
        message_id, publish_time, payload, payload_hash, attributes)
    SELECT key, $11, $14, $10, $23, $24::text, $20, $21, $22, $25::text, $26::timestamptz, $27::bytea, $28::bytea,
        $29::bytea
    FROM written WHERE $23::text IS NOT NULL
    ON CONFLICT DO NOTHING
),
requested AS (
    UPDATE quarantine SET requested_at = clock_timestamp(), requested_epoch = $11, requested_by = $31::text
    FROM written WHERE seq = $30
)
SELECT EXISTS (SELECT 1 FROM written) AS "written!"
