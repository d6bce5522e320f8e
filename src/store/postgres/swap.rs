//! Writing rows that are as their writers believe.

use chrono::{DateTime, Utc};
use sqlx::types::Uuid;

use super::{
    PostgresStore,
    connection::Lane,
    quarantine::Payload,
    row::{at, column, number, text},
};
use crate::{
    claim::State,
    store::{Guard, Rider, StoreError, Swap},
};

/// A guard as statements compare it. What is `None` is not compared.
#[derive(Debug, Clone)]
struct Compared {
    /// `None`: there must be no row.
    state: Option<i16>,
    nonce: Uuid,
    phase: Option<i16>,
    epoch: Option<i32>,
    lease: Option<DateTime<Utc>>,
    server: Option<String>,
}

impl From<&Guard> for Compared {
    fn from(guard: &Guard) -> Self {
        let nothing = Self { state: None, nonce: Uuid::nil(), phase: None, epoch: None, lease: None, server: None };
        match guard {
            Guard::Absent => nothing,
            Guard::Owner(nonce) => Self { state: Some(State::Running.code()), nonce: nonce.as_uuid(), ..nothing },
            Guard::Unchanged { state, phase, nonce, epoch, lease_until, server } => Self {
                state: Some(state.code()),
                nonce: nonce.as_uuid(),
                phase: Some(phase.code()),
                epoch: Some(number(*epoch)),
                lease: Some(*lease_until),
                server: server.clone(),
            },
        }
    }
}

impl PostgresStore {
    /// A row that is there, and nothing else.
    pub(super) async fn swap_one(&self, Swap { event, guard, next, rider: _ }: &Swap) -> Result<Vec<bool>, StoreError> {
        let seen = Compared::from(guard);
        let query = sqlx::query_file!(
            "src/store/postgres/swap_one.sql",
            event.key.as_uuid(),
            seen.state,
            seen.nonce,
            seen.phase,
            seen.epoch,
            seen.lease,
            seen.server,
            next.state.code(),
            next.phase.code(),
            next.strict,
            number(next.epoch),
            i32::from(next.failures),
            i32::from(next.lost),
            next.nonce.as_uuid(),
            text(&next.note),
            at(next.lease_until) as _,
            at(next.deadline) as _,
            at(next.not_before) as _,
            at(next.finished_at) as _,
        );
        let done = self.connections.run(Lane::Work, |wire| Box::pin(query.execute(wire))).await?;
        Ok(vec![done.rows_affected() == 1])
    }

    /// Rows that are there, and nothing else: what needs more is passed over.
    pub(super) async fn swap_all(&self, swaps: &[Swap]) -> Result<Vec<bool>, StoreError> {
        let seen = column(swaps, |swap| Compared::from(&swap.guard));
        let query = sqlx::query_file_scalar!(
            "src/store/postgres/swap.sql",
            &column(swaps, |swap| swap.event.key.as_uuid()),
            column(swaps, |swap| Compared::from(&swap.guard).state.filter(|_| swap.rider.is_none())) as _,
            &column(&seen, |seen| seen.nonce),
            column(&seen, |seen| seen.phase) as _,
            column(&seen, |seen| seen.epoch) as _,
            column(&seen, |seen| seen.lease) as _,
            column(&seen, |seen| seen.server.clone()) as _,
            &column(swaps, |swap| swap.next.state.code()),
            &column(swaps, |swap| swap.next.phase.code()),
            &column(swaps, |swap| swap.next.strict),
            &column(swaps, |swap| number(swap.next.epoch)),
            &column(swaps, |swap| i32::from(swap.next.failures)),
            &column(swaps, |swap| i32::from(swap.next.lost)),
            &column(swaps, |swap| swap.next.nonce.as_uuid()),
            &column(swaps, |swap| text(&swap.next.note)),
            column(swaps, |swap| at(swap.next.lease_until)) as _,
            column(swaps, |swap| at(swap.next.deadline)) as _,
            column(swaps, |swap| at(swap.next.not_before)) as _,
            column(swaps, |swap| at(swap.next.finished_at)) as _,
        );
        self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await
    }

    /// A row that must be absent, or that takes a quarantine row along.
    pub(super) async fn swap_with(&self, Swap { event, guard, next, rider }: &Swap) -> Result<Vec<bool>, StoreError> {
        let seen = Compared::from(guard);
        let (aside, request) = match rider {
            None => (None, None),
            Some(Rider::Aside(aside)) => (Some((aside, Payload::of(&aside.intent.raw))), None),
            Some(Rider::Request { seq, by }) => (None, Some((*seq, by))),
        };
        let payload = aside.as_ref().map(|(_, payload)| payload);
        let query = sqlx::query_file_scalar!(
            "src/store/postgres/swap_with.sql",
            event.key.as_uuid(),
            seen.state,
            seen.nonce,
            seen.phase,
            seen.epoch,
            seen.lease,
            seen.server,
            next.state.code(),
            next.phase.code(),
            next.strict,
            number(next.epoch),
            i32::from(next.failures),
            i32::from(next.lost),
            next.nonce.as_uuid(),
            text(&next.note),
            at(next.lease_until) as _,
            at(next.deadline) as _,
            at(next.not_before) as _,
            at(next.finished_at) as _,
            text(event.event_id.as_str()),
            text(&event.event_type),
            event.fingerprint.0.as_slice(),
            aside.as_ref().map(|(aside, _)| aside.reason.as_str()),
            aside.as_ref().map(|(aside, _)| aside.detail.as_str()),
            payload.map(|payload| payload.message_id.as_str()),
            payload.and_then(|payload| payload.publish_time),
            payload.map(|payload| payload.data),
            payload.map(|payload| payload.hash.as_slice()),
            payload.map(|payload| payload.attributes.as_slice()),
            request.map(|(seq, _)| seq),
            request.map(|(_, by)| by.as_str()),
        );
        Ok(vec![self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_one(wire))).await?])
    }
}
