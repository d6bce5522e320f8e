-- Writes a row that is still as its writer believes. $1 key. The row as it must be: $2 state, $3 nonce, and if given
-- $4 phase, $5 epoch, $6 lease, $7 the server that answers. The row afterwards: $8 state, $9 phase, $10 strict,
-- $11 epoch, $12 failures, $13 lost, $14 nonce, $15 note; its times as spans from the write (NULL = as it is, negative =
-- none): $16 lease, $17 deadline, $18 not before, $19 finished.
UPDATE claims SET
    state = $8, phase = $9, strict = $10, epoch = $11, failures = $12, lost = $13, nonce = $14, note = $15,
    lease_until = coalesce(clock_timestamp() + $16::interval, lease_until),
    deadline = CASE WHEN $17::interval IS NULL THEN deadline WHEN $17 >= '0' THEN clock_timestamp() + $17 END,
    not_before = CASE WHEN $18::interval IS NULL THEN not_before WHEN $18 >= '0' THEN clock_timestamp() + $18 END,
    finished_at = CASE WHEN $19::interval IS NULL THEN finished_at WHEN $19 >= '0' THEN clock_timestamp() + $19 END
WHERE key = $1 AND state = $2 AND nonce = $3
    AND ($5::integer IS NULL OR (phase, epoch, lease_until) = ($4::smallint, $5, $6::timestamptz))
    AND ($7::text IS NULL OR server_identity() = $7)
