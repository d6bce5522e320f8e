-- The same for one item, so that the plan is kept. The parameters are those of enter.sql.
WITH t AS MATERIALIZED (SELECT clock_timestamp() AS now),
cur AS MATERIALIZED (SELECT * FROM claims WHERE key = $1::uuid),
ins AS (
    INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce, note,
        lease_until, deadline)
    SELECT $1, $2::text, $3::text, $4::bytea, $5::smallint, $6::smallint, $7::boolean, $8::integer, $9::uuid, $10::text,
        clock_timestamp() + $11::interval, CASE WHEN $12::interval >= '0' THEN clock_timestamp() + $12 END
    FROM t
    WHERE NOT EXISTS (SELECT 1 FROM cur) AND $13::timestamptz >= t.now - $15::interval
    ON CONFLICT (key) DO NOTHING
    RETURNING key
)
SELECT CASE WHEN ins.key IS NOT NULL THEN 'inserted' WHEN $13 < t.now - $15 THEN 'old' END AS unfound,
    t.now AS "now!",
    CASE WHEN cur.state = 1 AND cur.lease_until + $14::interval < t.now THEN server_identity() END AS server,
    cur.key AS "key?", cur.event_id AS "event_id?", cur.event_type AS "event_type?", cur.fingerprint AS "fingerprint?",
    cur.state AS "state?", cur.phase AS "phase?", cur.strict AS "strict?", cur.epoch AS "epoch?",
    cur.failures AS "failures?", cur.lost AS "lost?", cur.nonce AS "nonce?", cur.lease_until AS "lease_until?",
    cur.deadline, cur.not_before, cur.first_seen_at AS "first_seen_at?", cur.finished_at, cur.note AS "note?"
FROM t LEFT JOIN cur ON true LEFT JOIN ins ON true
