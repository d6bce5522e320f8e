-- The same for arrays, one item each; what somebody else has locked is passed over. The parameters are those of
-- swap_one.sql.
WITH m AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::uuid[], $4::smallint[], $5::integer[], $6::timestamptz[],
        $7::text[], $8::smallint[], $9::smallint[], $10::boolean[], $11::integer[], $12::integer[], $13::integer[],
        $14::uuid[], $15::text[], $16::interval[], $17::interval[], $18::interval[], $19::interval[]) WITH ORDINALITY
        AS m(key, seen_state, seen_nonce, seen_phase, seen_epoch, seen_lease, server,
            state, phase, strict, epoch, failures, lost, nonce, note, lease, deadline, not_before, finished, place)
),
l AS MATERIALIZED (
    SELECT c.key FROM m JOIN claims c ON c.key = m.key AND c.state = m.seen_state AND c.nonce = m.seen_nonce
    WHERE (m.seen_epoch IS NULL OR (c.phase, c.epoch, c.lease_until) = (m.seen_phase, m.seen_epoch, m.seen_lease))
        AND (m.server IS NULL OR m.server = (SELECT server_identity()))
    ORDER BY c.key
    FOR NO KEY UPDATE OF c SKIP LOCKED
),
u AS (
    UPDATE claims c SET
        state = m.state, phase = m.phase, strict = m.strict, epoch = m.epoch, failures = m.failures, lost = m.lost,
        nonce = m.nonce, note = m.note,
        lease_until = coalesce(clock_timestamp() + m.lease, c.lease_until),
        deadline = CASE WHEN m.deadline IS NULL THEN c.deadline
            WHEN m.deadline >= '0' THEN clock_timestamp() + m.deadline END,
        not_before = CASE WHEN m.not_before IS NULL THEN c.not_before
            WHEN m.not_before >= '0' THEN clock_timestamp() + m.not_before END,
        finished_at = CASE WHEN m.finished IS NULL THEN c.finished_at
            WHEN m.finished >= '0' THEN clock_timestamp() + m.finished END
    FROM m JOIN l USING (key)
    WHERE c.key = m.key
)
SELECT l.key IS NOT NULL AS "written!" FROM m LEFT JOIN l USING (key) ORDER BY m.place
