//! Claims that nobody works on: stale ones and stranded ones, counted without an index on what changes.
//!
//! Each row is looked at once, when it is old enough to be stale, in the order in which rows were first seen; the keys
//! of those that are not final are remembered, and only they are read again. Rows that a requeue has opened again are
//! found by their quarantine rows. A fresh process begins with the oldest row, where stranded ones are.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::types::Uuid;
use tokio::{sync::Mutex, time::sleep};

use super::{PostgresStore, connection::Lane, row::interval};
use crate::{
    claim::{Key, Lease, State},
    store::{Seen, StoreError},
};

/// Rows of one look.
const SLICE: i64 = 20_000;
/// Looks per call: at the sweeper's pace enough for 16,000 events a second.
const SLICES: u32 = 50;
/// Between two statements, so that claims are served in between.
const PAUSE: Duration = Duration::from_millis(20);
/// Keys read again in one statement.
const CHUNK: usize = 1_000;
/// Keys remembered. With more than these no further rows are looked at: the counts say "at least".
const REMEMBERED: usize = 100_000;

/// What is remembered between two counts.
#[derive(Debug, Default)]
pub(super) struct OpenClaims(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// Rows first seen until then were looked at.
    until: DateTime<Utc>,
    keys: BTreeSet<Key>,
}

impl Default for Known {
    fn default() -> Self {
        Self { until: DateTime::UNIX_EPOCH, keys: BTreeSet::new() }
    }
}

impl Known {
    /// Counts a row, or forgets its key when it is final or gone.
    fn weigh(&mut self, key: Key, seen: Option<&Seen>, lease: Lease, idle: &mut Idle) {
        match seen {
            Some(Seen { row, now, .. }) if matches!(row.state, State::Running | State::Retry) => {
                idle.stale += u64::from(row.is_stale(*now, lease));
                idle.stranded += u64::from(row.is_stranded(*now));
            }
            Some(_) | None => drop(self.keys.remove(&key)),
        }
    }
}

/// Claims that nobody works on.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Idle {
    pub(super) stale: u64,
    pub(super) stranded: u64,
}

impl PostgresStore {
    pub(super) async fn count_idle(&self) -> Result<Idle, StoreError> {
        let mut known = self.open.0.lock().await;
        known.keys.extend(self.requested().await?);
        for slice in 0..SLICES {
            if known.keys.len() >= REMEMBERED {
                break;
            }
            if slice > 0 {
                sleep(PAUSE).await;
            }
            if !self.look_further(&mut known).await? {
                break;
            }
        }
        let mut idle = Idle::default();
        let keys: Vec<Key> = known.keys.iter().copied().collect();
        for chunk in keys.chunks(CHUNK) {
            for (key, seen) in chunk.iter().zip(self.read_all(chunk).await?) {
                known.weigh(*key, seen.as_ref(), self.lease, &mut idle);
            }
            sleep(PAUSE).await;
        }
        Ok(idle)
    }

    /// Looks at the next slice; says whether there may be another one.
    async fn look_further(&self, known: &mut Known) -> Result<bool, StoreError> {
        let query = sqlx::query!(
            r#"SELECT array_agg(key) FILTER (WHERE state IN (1, 3)) AS open, count(*) AS "rows!", max(first_seen_at) AS until
            FROM (
                SELECT key, state, first_seen_at FROM claims
                WHERE first_seen_at > $1 AND first_seen_at < clock_timestamp() - $2::interval
                ORDER BY first_seen_at FETCH FIRST ($3) ROWS WITH TIES
            ) slice"#,
            known.until,
            interval(self.lease.length().saturating_add(self.lease.grace())),
            SLICE,
        );
        let slice = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        known.keys.extend(slice.open.unwrap_or_default().into_iter().map(Key::from));
        known.until = slice.until.unwrap_or(known.until);
        Ok(slice.rows >= SLICE)
    }

    /// The events that operators have put back and that are not dealt with.
    async fn requested(&self) -> Result<impl Iterator<Item = Key>, StoreError> {
        let query = sqlx::query_scalar!(
            "SELECT key FROM quarantine WHERE requested_at IS NOT NULL AND settled_at IS NULL LIMIT $1",
            SLICE
        );
        let keys: Vec<Uuid> = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        Ok(keys.into_iter().map(Key::from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        claim::{Identity, Nonce, Phase, row::Row},
        event::{EventId, Fingerprint},
    };

    const LEASE: Lease = Lease::new(Duration::from_secs(60));

    /// A row of which nothing was heard for this many minutes.
    fn seen(state: State, minutes: i64) -> Seen {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let silent_since = now - chrono::TimeDelta::minutes(minutes);
        let row = Row {
            event: Identity {
                key: Key::from(Uuid::nil()),
                event_id: EventId::new("e"),
                event_type: String::new(),
                fingerprint: Fingerprint([1; 17]),
            },
            state,
            phase: Phase::MayHaveRun,
            strict: false,
            epoch: 1,
            failures: 0,
            lost: 0,
            nonce: Nonce::random(),
            lease_until: silent_since,
            deadline: None,
            not_before: Some(silent_since),
            first_seen_at: silent_since,
            finished_at: None,
            note: String::new(),
        };
        Seen { row, now, held_off: None, server: None }
    }

    #[test]
    fn what_is_open_is_counted_and_what_is_final_or_gone_forgotten() {
        let cases = [
            (Some(seen(State::Running, 0)), (0, 0), true),
            (Some(seen(State::Running, 2)), (1, 0), true),
            (Some(seen(State::Running, 71)), (1, 1), true),
            (Some(seen(State::Retry, 2)), (0, 0), true),
            (Some(seen(State::Retry, 71)), (0, 1), true),
            (Some(seen(State::Done, 71)), (0, 0), false),
            (Some(seen(State::Quarantined, 71)), (0, 0), false),
            (None, (0, 0), false),
        ];

        for (row, (stale, stranded), kept) in cases {
            let key = Key::from(Uuid::nil());
            let mut known = Known { keys: [key].into(), ..Known::default() };
            let mut idle = Idle::default();
            known.weigh(key, row.as_ref(), LEASE, &mut idle);
            assert_eq!((idle, known.keys.contains(&key)), (Idle { stale, stranded }, kept), "{row:?}");
        }
    }
}
