-- Claims, takes over, recognises its own lost answer, and reports every other outcome: one statement.
--  $1 key           $2 event id        $3 event type     $4 fingerprint    $5 nonce          $6 strict
--  $7 lease us      $8 grace us        $9 timeout us     $10 born          $11 fence us
-- $12 max failures $13 max lost       $14 suspect       $15 may take over $16 server identity
WITH cur AS MATERIALIZED (
    SELECT c.*,
        (substr(c.fingerprint, 1, 1) <> substr($4::bytea, 1, 1) OR c.fingerprint = $4) AS same,
        c.lease_until + $8::bigint * interval '1 microsecond' < clock_timestamp() AS stale,
        CASE WHEN c.state = 1 AND c.lease_until + $8 * interval '1 microsecond' < clock_timestamp()
            THEN server_identity() = $16::text ELSE true END AS same_server,
        ((substr(c.fingerprint, 1, 1) <> substr($4, 1, 1) OR c.fingerprint = $4) AND (
            (c.state = 1 AND c.nonce = $5::uuid)
            OR (c.state = 1 AND c.nonce <> $5 AND $15::boolean
                AND CASE WHEN c.lease_until + $8 * interval '1 microsecond' < clock_timestamp()
                    THEN server_identity() = $16 ELSE false END
                AND (c.phase <> 1 OR NOT (c.strict OR $6::boolean))
                AND (c.phase = 2 OR (c.lost < $13::integer AND $14::boolean)))
            OR (c.state = 3 AND c.nonce <> $5 AND coalesce(c.not_before <= clock_timestamp(), true)
                AND (c.phase <> 1 OR NOT (c.strict OR $6))
                AND (c.phase = 2 OR (c.failures < $12::integer AND (c.lost = 0 OR $14))))
        )) AS ok
    FROM claims c
    WHERE c.key = $1::uuid
),
ins AS (
    INSERT INTO claims AS c (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce, lease_until,
        deadline)
    SELECT $1, $2::text, $3::text, $4, 1, CASE WHEN $6 THEN 0 ELSE 1 END, $6, 1, $5,
        clock_timestamp() + $7::bigint * interval '1 microsecond',
        CASE WHEN $6 THEN NULL ELSE clock_timestamp() + ($9::bigint + $8) * interval '1 microsecond' END
    WHERE NOT EXISTS (SELECT 1 FROM cur)
        AND $10::timestamptz >= clock_timestamp() - $11::bigint * interval '1 microsecond'
    ON CONFLICT (key) DO NOTHING
    RETURNING c.*
),
upd AS (
    UPDATE claims c SET
        state = 1,
        nonce = $5,
        lease_until = clock_timestamp() + $7 * interval '1 microsecond',
        strict = c.strict OR $6,
        epoch = c.epoch + (c.state <> 1 OR c.nonce <> $5)::integer,
        lost = c.lost + (c.state = 1 AND c.nonce <> $5 AND c.phase <> 2)::integer,
        phase = CASE WHEN c.phase = 2 THEN 2 WHEN c.state = 1 AND c.nonce = $5 THEN c.phase
            WHEN c.strict OR $6 THEN 0 ELSE 1 END,
        deadline = CASE WHEN c.state = 1 AND c.nonce = $5 THEN c.deadline
            WHEN c.phase = 2 OR c.strict OR $6 THEN NULL
            ELSE clock_timestamp() + ($9 + $8) * interval '1 microsecond' END
    WHERE c.key = $1
        AND (SELECT cur.ok FROM cur)
        -- The same again: READ COMMITTED checks it on the newest version of the row.
        AND (substr(c.fingerprint, 1, 1) <> substr($4, 1, 1) OR c.fingerprint = $4)
        AND (
            (c.state = 1 AND c.nonce = $5)
            OR (c.state = 1 AND c.nonce <> $5 AND $15
                AND CASE WHEN c.lease_until + $8 * interval '1 microsecond' < clock_timestamp()
                    THEN server_identity() = $16 ELSE false END
                AND (c.phase <> 1 OR NOT (c.strict OR $6))
                AND (c.phase = 2 OR (c.lost < $13 AND $14)))
            OR (c.state = 3 AND c.nonce <> $5 AND coalesce(c.not_before <= clock_timestamp(), true)
                AND (c.phase <> 1 OR NOT (c.strict OR $6))
                AND (c.phase = 2 OR (c.failures < $12 AND (c.lost = 0 OR $14))))
        )
    RETURNING c.*
)
SELECT 'mine' AS "kind!", state AS "state!", phase AS "phase!", strict AS "strict!", epoch AS "epoch!",
    failures AS "failures!", lost AS "lost!", nonce AS "nonce!", note AS "note!",
    true AS "same!", true AS "ok!", false AS "stale!", true AS "same_server!",
    0::bigint AS "lease_us!", 0::bigint AS "due_us!"
FROM ins
UNION ALL
SELECT 'mine', state, phase, strict, epoch, failures, lost, nonce, note, true, true, false, true, 0, 0
FROM upd
UNION ALL
SELECT 'other', state, phase, strict, epoch, failures, lost, nonce, note, same, ok, stale, same_server,
    CASE WHEN state = 1 THEN (extract(epoch FROM lease_until - clock_timestamp()) * 1000000)::bigint + $8 ELSE 0 END,
    coalesce((extract(epoch FROM not_before - clock_timestamp()) * 1000000)::bigint, 0)
FROM cur
WHERE NOT EXISTS (SELECT 1 FROM upd)
UNION ALL
SELECT 'too_old', 0::smallint, 0::smallint, false, 0, 0, 0, $5, '', true, false, false, true, 0, 0
WHERE NOT EXISTS (SELECT 1 FROM cur) AND NOT EXISTS (SELECT 1 FROM ins)
    AND $10 < clock_timestamp() - $11 * interval '1 microsecond'
