//! What the stores without a server share at the port.

use super::ClaimRecord;
use crate::claim::row::Row;

/// Rows that one step of `expire` forgets: few enough that claims do not wait for it.
pub(super) const EXPIRE_AT_ONCE: u16 = 2_000;

impl From<Row> for ClaimRecord {
    fn from(row: Row) -> Self {
        Self {
            key: row.key,
            event_id: row.event_id.as_str().to_owned(),
            event_type: row.event_type,
            state: row.state,
            epoch: row.epoch,
            failures: row.failures,
            lost: row.lost,
            strict: row.strict,
            note: row.note,
            first_seen_at: row.first_seen_at,
            finished_at: row.finished_at,
        }
    }
}
