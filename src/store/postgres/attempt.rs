//! While an attempt runs: start, reply pending, renewals; and the look-up for parked copies.

use std::collections::HashSet;

use sqlx::types::Uuid;

use super::{PostgresStore, connection::Lane, micros, row::state, span};
use crate::{
    claim::{Claim, ClaimRef, ClaimView, Key, Standing, State, StoredReply},
    store::StoreError,
};

/// Claims per renewal statement: it holds their row locks until its end.
const RENEWED_AT_ONCE: usize = 100;

impl PostgresStore {
    /// The handler is about to be called. Repeating it is harmless.
    pub(super) async fn start(&self, claim: &Claim) -> Result<(), StoreError> {
        let query = sqlx::query!(
            "UPDATE claims SET
                phase = 1,
                lease_until = clock_timestamp() + $3::bigint * interval '1 microsecond',
                deadline = clock_timestamp() + $4::bigint * interval '1 microsecond'
            WHERE key = $1 AND nonce = $2 AND state = 1 AND phase IN (0, 1)",
            claim.intent.key.as_uuid(),
            claim.intent.nonce.as_uuid(),
            self.lease_us(),
            micros(claim.intent.timeout).saturating_add(self.grace_us()),
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        if done.rows_affected() == 1 { Ok(()) } else { Err(StoreError::ClaimLost) }
    }

    /// The handler returned: from now on only its replies are outstanding.
    pub(super) async fn reply_pending(&self, claim: &Claim, replies: &[StoredReply]) -> Result<(), StoreError> {
        let ordinals: Vec<i32> = replies.iter().map(|reply| i32::try_from(reply.ordinal).unwrap_or(i32::MAX)).collect();
        let bodies: Vec<Vec<u8>> = replies.iter().map(|reply| reply.body.to_vec()).collect();
        let query = sqlx::query_scalar!(
            r#"WITH p AS (
                UPDATE claims SET
                    phase = 2, deadline = NULL,
                    lease_until = clock_timestamp() + $5::bigint * interval '1 microsecond'
                WHERE key = $1 AND nonce = $2 AND state = 1
                RETURNING key
            ),
            r AS (
                INSERT INTO replies (key, ordinal, body)
                SELECT p.key, m.ordinal, m.body
                FROM p, unnest($3::integer[], $4::bytea[]) AS m(ordinal, body)
                ORDER BY m.ordinal
                ON CONFLICT (key, ordinal) DO NOTHING
            )
            SELECT count(*) AS "moved!" FROM p"#,
            claim.intent.key.as_uuid(),
            claim.intent.nonce.as_uuid(),
            &ordinals,
            &bodies,
            self.lease_us(),
        );
        let moved = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        if moved == 1 { Ok(()) } else { Err(StoreError::ClaimLost) }
    }

    /// Renews in key order, in chunks, without waiting for the disk: a renewal lost with the server is a renewal late.
    pub(super) async fn renew_all(&self, claims: &[ClaimRef]) -> Result<Vec<ClaimRef>, StoreError> {
        let mut sorted: Vec<&ClaimRef> = claims.iter().collect();
        sorted.sort_by_key(|claim| claim.key());
        let mut lost = Vec::new();
        for chunk in sorted.chunks(RENEWED_AT_ONCE) {
            let renewed = self.renew_chunk(chunk).await?;
            let missing = chunk.iter().filter(|claim| !renewed.contains(&claim.nonce().as_uuid()));
            lost.extend(missing.map(|claim| (*claim).clone()));
        }
        Ok(lost)
    }

    /// The nonces that were renewed.
    async fn renew_chunk(&self, claims: &[&ClaimRef]) -> Result<HashSet<Uuid>, StoreError> {
        let keys: Vec<Uuid> = claims.iter().map(|claim| claim.key().as_uuid()).collect();
        let nonces: Vec<Uuid> = claims.iter().map(|claim| claim.nonce().as_uuid()).collect();
        let query = sqlx::query_scalar!(
            "WITH s AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
            l AS MATERIALIZED (
                SELECT c.key
                FROM unnest($1::uuid[], $2::uuid[]) AS m(key, nonce)
                JOIN claims c ON c.key = m.key AND c.nonce = m.nonce, s
                WHERE c.state = 1
                ORDER BY c.key
                FOR NO KEY UPDATE OF c
            )
            UPDATE claims c SET lease_until = least(clock_timestamp() + $3::bigint * interval '1 microsecond',
                coalesce(c.deadline + interval '5 min', 'infinity'))
            FROM l WHERE c.key = l.key AND c.state = 1
            RETURNING c.nonce",
            &keys,
            &nonces,
            self.lease_us(),
        );
        let renewed = self.connections.run(Lane::Renewal, |wire| Box::pin(query.fetch_all(wire))).await?;
        Ok(renewed.into_iter().collect())
    }

    /// How the events of parked copies stand.
    pub(super) async fn look_at(&self, keys: &[Key]) -> Result<Vec<ClaimView>, StoreError> {
        let wanted: Vec<Uuid> = keys.iter().map(|key| key.as_uuid()).collect();
        let holdoff = self.holdoff.left();
        let query = sqlx::query!(
            r#"SELECT m.key AS "key!", c.state AS "state?", c.nonce AS "nonce?",
                coalesce((extract(epoch FROM c.lease_until - clock_timestamp()) * 1000000)::bigint + $2, 0)
                    AS "lease_us!",
                coalesce((extract(epoch FROM c.not_before - clock_timestamp()) * 1000000)::bigint, 0) AS "due_us!"
            FROM unnest($1::uuid[]) WITH ORDINALITY AS m(key, place)
            LEFT JOIN claims c ON c.key = m.key
            ORDER BY m.place"#,
            &wanted,
            self.grace_us(),
        );
        let rows = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        rows.into_iter()
            .map(|row| {
                let standing = match row.state.map(state).transpose()? {
                    None => Standing::Absent,
                    Some(State::Done) => Standing::Settled,
                    Some(State::Quarantined) => Standing::Quarantined,
                    Some(State::Running) if row.lease_us > 0 => Standing::Wait(span(row.lease_us)),
                    Some(State::Running) => holdoff.map_or(Standing::Claimable, Standing::Wait),
                    Some(State::Retry) if row.due_us > 0 => Standing::Wait(span(row.due_us)),
                    Some(State::Retry) => Standing::Claimable,
                };
                Ok(ClaimView { key: row.key.into(), standing, nonce: row.nonce.map(Into::into) })
            })
            .collect()
    }
}
