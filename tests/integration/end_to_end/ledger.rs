//! What the claims say.

use std::collections::BTreeMap;

use sqlx::Row;

use super::Postgres;

/// The claims by state, and the budgets they used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    /// Completed.
    pub(super) done: usize,
    /// In quarantine.
    pub(super) quarantined: usize,
    /// Running or waiting for a retry.
    pub(super) open: usize,
    /// Failures counted, over all events.
    pub(super) failures: i64,
    /// Lost owners counted, over all events.
    pub(super) lost: i64,
    /// Open quarantine rows by reason.
    pub(super) reasons: BTreeMap<String, usize>,
}

impl Ledger {
    /// Events that no machine will touch again.
    pub(super) fn settled(&self) -> usize {
        self.done + self.quarantined
    }

    /// Quarantine rows with this reason.
    pub(super) fn reason(&self, reason: &str) -> usize {
        self.reasons.get(reason).copied().unwrap_or_default()
    }
}

/// Reads it.
pub(super) async fn ledger(postgres: &Postgres) -> Ledger {
    let mut connection = postgres.connect().await;
    let states = "SELECT state::int, count(*), sum(failures)::bigint, sum(lost)::bigint FROM claims GROUP BY state";
    let mut ledger = Ledger::default();
    for row in sqlx::query(states).fetch_all(&mut connection).await.expect("claims can be read") {
        let (state, count): (i32, i64) = (row.get(0), row.get(1));
        let count = usize::try_from(count).expect("a count");
        match state {
            2 => ledger.done += count,
            4 => ledger.quarantined += count,
            _ => ledger.open += count,
        }
        ledger.failures += row.get::<i64, _>(2);
        ledger.lost += row.get::<i64, _>(3);
    }
    let reasons = "SELECT reason, count(*) FROM quarantine WHERE settled_at IS NULL GROUP BY reason";
    for row in sqlx::query(reasons).fetch_all(&mut connection).await.expect("quarantine can be read") {
        ledger.reasons.insert(row.get(0), usize::try_from(row.get::<i64, _>(1)).expect("a count"));
    }
    ledger
}
