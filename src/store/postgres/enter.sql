-- Inserts where there is no row and the event is young enough to look new; else answers what is there. Arrays, one item
-- each: $1 key, $2 event id, $3 event type, $4 fingerprint, $5 state, $6 phase, $7 strict, $8 epoch, $9 nonce, $10 note,
-- $11 lease, $12 deadline (negative = none), $13 born. For all: $14 grace, $15 fence.
WITH m AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::smallint[], $6::smallint[], $7::boolean[],
        $8::integer[], $9::uuid[], $10::text[], $11::interval[], $12::interval[], $13::timestamptz[]) WITH ORDINALITY
        AS m(key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce, note, lease, deadline, born, place)
),
t AS MATERIALIZED (SELECT clock_timestamp() AS now),
cur AS MATERIALIZED (SELECT c.* FROM m JOIN claims c USING (key)),
ins AS (
    INSERT INTO claims AS c (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce, note,
        lease_until, deadline)
    SELECT m.key, m.event_id, m.event_type, m.fingerprint, m.state, m.phase, m.strict, m.epoch, m.nonce, m.note,
        clock_timestamp() + m.lease, CASE WHEN m.deadline >= '0' THEN clock_timestamp() + m.deadline END
    FROM m, t
    WHERE NOT EXISTS (SELECT 1 FROM cur WHERE cur.key = m.key) AND m.born >= t.now - $15::interval
    ORDER BY m.key
    ON CONFLICT (key) DO NOTHING
    RETURNING c.key
)
SELECT CASE WHEN ins.key IS NOT NULL THEN 'inserted' WHEN m.born < t.now - $15 THEN 'old' END AS unfound,
    t.now AS "now!",
    CASE WHEN cur.state = 1 AND cur.lease_until + $14::interval < t.now THEN (SELECT server_identity()) END AS server,
    cur.key AS "key?", cur.event_id AS "event_id?", cur.event_type AS "event_type?", cur.fingerprint AS "fingerprint?",
    cur.state AS "state?", cur.phase AS "phase?", cur.strict AS "strict?", cur.epoch AS "epoch?",
    cur.failures AS "failures?", cur.lost AS "lost?", cur.nonce AS "nonce?", cur.lease_until AS "lease_until?",
    cur.deadline, cur.not_before, cur.first_seen_at AS "first_seen_at?", cur.finished_at, cur.note AS "note?"
FROM t, m LEFT JOIN cur USING (key) LEFT JOIN ins USING (key)
ORDER BY m.place
