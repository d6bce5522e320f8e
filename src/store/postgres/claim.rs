//! The claim: one statement, then what its answer asks for.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::types::Uuid;

use super::{
    PostgresStore,
    connection::Lane,
    micros,
    quarantine::Guard,
    row::{meaningless, reason, state, text},
    session, span,
};
use crate::{
    claim::{Claim, ClaimIntent, Claimed, Phase, State, StoredReply, Wait, row::Row},
    clock::Moment,
    outcome::Reason,
    store::StoreError,
};

/// How often a claim that lost a race after its snapshot is sent again before it counts as contention.
const RACES: u32 = 5;

/// One row of the claim statement's answer.
#[derive(Debug)]
struct Answer {
    kind: String,
    state: i16,
    phase: i16,
    strict: bool,
    epoch: i32,
    failures: i32,
    lost: i32,
    nonce: Uuid,
    note: String,
    same: bool,
    ok: bool,
    stale: bool,
    same_server: bool,
    lease_us: i64,
    due_us: i64,
}

/// What an answer asks for.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Mine,
    Settled,
    Quarantined(Reason),
    Wait(Duration, Wait),
    /// Lost a race after the snapshot.
    SendAgain,
    /// The row would be taken over, but the server is not the one seen a lease ago.
    OtherServer,
    Mismatch,
    TooOld,
    Quarantine(Guard, Reason),
}

#[derive(Debug, thiserror::Error)]
#[error("lost {RACES} races for one event")]
struct Raced;

impl PostgresStore {
    /// Claims and finishes what the answer asks for; see the answer table of `docs/CLAIMS.md`.
    pub(super) async fn claim_event(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        for _ in 0..RACES {
            let sent_at = self.clock.moment();
            let holdoff = self.holdoff.left();
            let Some(answer) = self.send_claim(intent, holdoff.is_none()).await? else { continue };
            match answer.next(intent, self.lease.length(), holdoff)? {
                Next::Mine => return Ok(Claimed::Mine(self.mine(intent, &answer, sent_at).await?)),
                Next::Settled => return Ok(Claimed::Settled),
                Next::Quarantined(reason) => return Ok(Claimed::Quarantined { reason, fresh: false }),
                Next::Wait(wake_in, why) => return Ok(Claimed::Wait { wake_in, why }),
                Next::SendAgain => {}
                Next::OtherServer => {
                    let server = self.connections.run(Lane::Work, |wire| Box::pin(session::server_identity(wire)));
                    self.holdoff.saw(server.await?);
                    return Ok(Claimed::Wait { wake_in: self.lease.length(), why: Wait::Running });
                }
                Next::Mismatch => {
                    let fresh = self.record_mismatch(intent, answer.nonce, answer.epoch).await?;
                    return Ok(if matches!(state(answer.state)?, State::Done | State::Quarantined) {
                        Claimed::Quarantined { reason: Reason::Mismatch, fresh }
                    } else {
                        let wake_in = span(answer.lease_us.max(answer.due_us)).max(self.lease.length());
                        Claimed::Wait { wake_in, why: Wait::Mismatch }
                    });
                }
                Next::TooOld => {
                    if self.quarantine_too_old(intent).await? {
                        return Ok(Claimed::Quarantined { reason: Reason::TooOld, fresh: true });
                    }
                }
                Next::Quarantine(guard, reason) => {
                    if self.quarantine_seen(intent, answer.nonce, guard, reason).await? {
                        return Ok(Claimed::Quarantined { reason, fresh: true });
                    }
                }
            }
        }
        Err(StoreError::Contention(Box::new(Raced)))
    }

    async fn send_claim(&self, intent: &ClaimIntent, may_take_over: bool) -> Result<Option<Answer>, StoreError> {
        let query = sqlx::query_file_as!(
            Answer,
            "src/store/postgres/claim.sql",
            intent.key.as_uuid(),
            text(intent.event_id.as_str()),
            text(&intent.event_type),
            intent.fingerprint.0.as_slice(),
            intent.nonce.as_uuid(),
            intent.strict,
            self.lease_us(),
            self.grace_us(),
            micros(intent.timeout),
            storable(intent.born),
            self.fence_us(),
            i32::from(intent.budget.max_failures),
            i32::from(intent.budget.max_lost),
            intent.suspect,
            may_take_over,
            self.holdoff.server(),
        );
        self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_optional(wire))).await
    }

    async fn mine(&self, intent: &Arc<ClaimIntent>, answer: &Answer, sent_at: Moment) -> Result<Claim, StoreError> {
        let phase = Phase::from_code(answer.phase).ok_or_else(|| meaningless("phase", answer.phase))?;
        let replies = if phase == Phase::ReplyPending { self.stored_replies(intent).await? } else { Vec::new() };
        let lost = u16::try_from(answer.lost).unwrap_or(u16::MAX);
        Ok(Claim {
            intent: Arc::clone(intent),
            epoch: answer.epoch.unsigned_abs(),
            phase,
            strict: answer.strict,
            failures: u16::try_from(answer.failures).unwrap_or(u16::MAX),
            lost,
            cut_by_drain: Row::was_cut_by_drain(&answer.note, lost),
            replies,
            fence_at: self.lease.fence_after(sent_at),
        })
    }

    async fn stored_replies(&self, intent: &ClaimIntent) -> Result<Vec<StoredReply>, StoreError> {
        let query =
            sqlx::query!("SELECT ordinal, body FROM replies WHERE key = $1 ORDER BY ordinal", intent.key.as_uuid());
        let rows = self.connections.run(Lane::Work, |wire| Box::pin(query.fetch_all(wire))).await?;
        Ok(rows
            .into_iter()
            .map(|row| StoredReply { ordinal: row.ordinal.unsigned_abs(), body: row.body.into() })
            .collect())
    }
}

impl Answer {
    /// The answer table, first row that fits.
    fn next(&self, intent: &ClaimIntent, lease: Duration, holdoff: Option<Duration>) -> Result<Next, StoreError> {
        match self.kind.as_str() {
            "mine" => return Ok(Next::Mine),
            "too_old" => return Ok(Next::TooOld),
            _ => {}
        }
        if !self.same {
            return Ok(Next::Mismatch);
        }
        let may_have_run = self.phase == Phase::MayHaveRun.code();
        let replying = self.phase == Phase::ReplyPending.code();
        let strict = self.strict || intent.strict;
        Ok(match state(self.state)? {
            State::Done => Next::Settled,
            State::Quarantined => Next::Quarantined(reason(&self.note)),
            _ if self.ok => Next::SendAgain,
            State::Running => match holdoff {
                _ if !self.stale => Next::Wait(span(self.lease_us), Wait::Running),
                Some(left) => Next::Wait(left, Wait::Running),
                None if !self.same_server => Next::OtherServer,
                None if may_have_run && strict => Next::Quarantine(Guard::Stale, Reason::OwnerLost),
                None if !replying && self.lost >= i32::from(intent.budget.max_lost) => {
                    Next::Quarantine(Guard::Stale, Reason::LostExhausted)
                }
                None => Next::Wait(lease, Wait::Suspect),
            },
            // An attempt that has ended does not begin again under its own name.
            State::Retry if self.due_us > 0 || self.nonce == intent.nonce.as_uuid() => {
                Next::Wait(span(self.due_us), Wait::NotDue)
            }
            State::Retry if may_have_run && strict => Next::Quarantine(Guard::Resting, Reason::OutcomeUnknown),
            State::Retry if !replying && self.failures >= i32::from(intent.budget.max_failures) => {
                Next::Quarantine(Guard::Resting, Reason::FailuresExhausted)
            }
            State::Retry => Next::Wait(lease, Wait::Suspect),
        })
    }
}

/// An event may say that it happened in any year; a column can not hold every one.
fn storable(born: DateTime<Utc>) -> DateTime<Utc> {
    const YEAR_3000: DateTime<Utc> = match DateTime::from_timestamp(32_503_680_000, 0) {
        Some(at) => at,
        None => DateTime::UNIX_EPOCH,
    };
    born.clamp(DateTime::UNIX_EPOCH, YEAR_3000)
}
