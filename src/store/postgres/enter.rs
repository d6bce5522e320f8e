//! Inserting what is not there, and reading what is.

use super::{
    PostgresStore,
    connection::Lane,
    row::{Stored, at, column, interval, number, storable, text},
};
use crate::{
    claim,
    store::{Entered, Entry, StoreError},
};

impl PostgresStore {
    pub(super) async fn enter_one(&self, Entry { intent, first }: &Entry) -> Result<Vec<Entered>, StoreError> {
        let query = sqlx::query_file_as!(
            Stored,
            "src/store/postgres/enter_one.sql",
            intent.key().as_uuid(),
            text(intent.event.event_id.as_str()),
            text(&intent.event.event_type),
            intent.event.fingerprint.0.as_slice(),
            first.state.code(),
            first.phase.code(),
            first.strict,
            number(first.epoch),
            first.nonce.as_uuid(),
            text(&first.note),
            at(first.lease_until) as _,
            at(first.deadline) as _,
            storable(intent.born),
            interval(self.lease.grace()),
            interval(claim::fence(self.retention)),
        );
        let stored = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?;
        Ok(vec![self.entered(stored)?])
    }

    pub(super) async fn enter_all(&self, entries: &[Entry]) -> Result<Vec<Entered>, StoreError> {
        let query = sqlx::query_file_as!(
            Stored,
            "src/store/postgres/enter.sql",
            &column(entries, |entry| entry.intent.key().as_uuid()),
            &column(entries, |entry| text(entry.intent.event.event_id.as_str())),
            &column(entries, |entry| text(&entry.intent.event.event_type)),
            &column(entries, |entry| entry.intent.event.fingerprint.0.to_vec()),
            &column(entries, |entry| entry.first.state.code()),
            &column(entries, |entry| entry.first.phase.code()),
            &column(entries, |entry| entry.first.strict),
            &column(entries, |entry| number(entry.first.epoch)),
            &column(entries, |entry| entry.first.nonce.as_uuid()),
            &column(entries, |entry| text(&entry.first.note)),
            column(entries, |entry| at(entry.first.lease_until)) as _,
            column(entries, |entry| at(entry.first.deadline)) as _,
            &column(entries, |entry| storable(entry.intent.born)),
            interval(self.lease.grace()),
            interval(claim::fence(self.retention)),
        );
        let stored = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        stored.into_iter().map(|stored| self.entered(stored)).collect()
    }

    fn entered(&self, stored: Stored) -> Result<Entered, StoreError> {
        let unfound = match stored.unfound.as_deref() {
            Some("inserted") => Entered::Inserted,
            Some("old") => Entered::Old,
            _ => Entered::Raced,
        };
        Ok(self.seen(stored)?.map(Box::new).map_or(unfound, Entered::Found))
    }
}
