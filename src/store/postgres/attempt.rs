//! Completions, renewals and look-ups.

use std::collections::HashMap;

use super::{
    PostgresStore,
    connection::Lane,
    row::{Stored, column, interval},
};
use crate::{
    claim::{ClaimRef, Key, row::SETTLE_TIME},
    store::{Seen, StoreError},
};

impl PostgresStore {
    /// Nearly always of a running row. For any other its second statement sees what the first may have waited for.
    pub(super) async fn complete_one(&self, claim: ClaimRef) -> Result<Vec<bool>, StoreError> {
        let query = sqlx::query!(
            "UPDATE claims SET state = 2, finished_at = coalesce(finished_at, clock_timestamp())
            WHERE key = $1 AND nonce = $2 AND state = 1",
            claim.key.as_uuid(),
            claim.nonce.as_uuid(),
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        if done.rows_affected() == 1 { Ok(vec![true]) } else { self.complete_all(&[claim]).await }
    }

    /// A row that is done is not touched: repeating a completion writes nothing.
    pub(super) async fn complete_all(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let query = sqlx::query_scalar!(
            r#"WITH m AS MATERIALIZED (
                SELECT m.*, c.state AS seen
                FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS m(key, nonce, place)
                LEFT JOIN claims c ON c.key = m.key AND c.nonce = m.nonce
            ),
            l AS MATERIALIZED (
                SELECT c.key, c.nonce, c.state FROM m JOIN claims c ON c.key = m.key AND c.nonce = m.nonce
                WHERE c.state <> 2
                ORDER BY c.key
                FOR NO KEY UPDATE OF c SKIP LOCKED
            ),
            d AS (
                UPDATE claims c SET state = 2, finished_at = coalesce(c.finished_at, clock_timestamp())
                FROM l WHERE c.key = l.key
            ),
            q AS (
                UPDATE quarantine q SET resolution = 'late_success', settled_at = clock_timestamp()
                FROM l WHERE l.state <> 1 AND q.key = l.key AND q.nonce = l.nonce AND q.settled_at IS NULL
                    AND q.reason <> 'mismatch'
            )
            SELECT l.key IS NOT NULL OR m.seen IS NOT DISTINCT FROM 2 AS "completed!"
            FROM m LEFT JOIN l USING (key, nonce) ORDER BY m.place"#,
            &column(claims, |claim| claim.key.as_uuid()),
            &column(claims, |claim| claim.nonce.as_uuid()),
        );
        self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await
    }

    /// Does not wait for the disk: a renewal lost with the server is a renewal late.
    pub(super) async fn renew_all(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let query = sqlx::query_scalar!(
            r#"WITH s AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
            m AS MATERIALIZED (
                SELECT * FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS m(key, nonce, place)
            ),
            l AS MATERIALIZED (
                SELECT c.key, c.nonce FROM s, m JOIN claims c ON c.key = m.key AND c.nonce = m.nonce
                WHERE c.state = 1
                ORDER BY c.key
                FOR NO KEY UPDATE OF c SKIP LOCKED
            ),
            u AS (
                UPDATE claims c SET lease_until = least(clock_timestamp() + $3::interval, c.deadline + $4::interval)
                FROM l WHERE c.key = l.key
            )
            SELECT l.key IS NOT NULL AS "renewed!" FROM m LEFT JOIN l USING (key, nonce) ORDER BY m.place"#,
            &column(claims, |claim| claim.key.as_uuid()),
            &column(claims, |claim| claim.nonce.as_uuid()),
            interval(self.lease.length()),
            interval(SETTLE_TIME),
        );
        self.connections.run(Lane::Renewal, |wire| Box::pin(query.fetch_all(wire))).await
    }

    /// In the order of `keys`.
    pub(super) async fn read_all(&self, keys: &[Key]) -> Result<Vec<Option<Seen>>, StoreError> {
        let query = sqlx::query_as!(
            Stored,
            r#"SELECT NULL::text AS unfound, clock_timestamp() AS "now!", NULL::text AS server, claims.*
            FROM claims WHERE key = ANY($1)"#,
            &column(keys, |key| key.as_uuid()),
        );
        let stored = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        let seen: Result<Vec<_>, _> = stored.into_iter().map(|stored| self.seen(stored)).collect();
        let rows: HashMap<Key, Seen> = seen?.into_iter().flatten().map(|seen| (seen.row.event.key, seen)).collect();
        Ok(keys.iter().map(|key| rows.get(key).cloned()).collect())
    }
}
