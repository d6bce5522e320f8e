//! One event end to end: slot, claim, handler, settle. The unit under test.
//!
//! It says how the event ended and answers nobody: the slot is free again before the source hears of it.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{self, Instant},
};

use super::{
    answer::End,
    call,
    flights::Flight,
    intake::{Admission, Intake},
    renewal::{Held, Renewal},
    report::Reporter,
    verdict::{Terms, Verdict},
};
use crate::{
    claim::{Claim, Key, Lease, Phase},
    claims::Claims,
    event::{Event, Shape},
    handler::Handler,
    outcome::{Certainty, Detail, Note, Outcome, Reason},
    retry::Backoff,
    rule::{Action, Ruling},
    shutdown::Shutdown,
    store::StoreError,
};

/// Delays between repetitions of a write that was not confirmed.
const REPEAT: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
/// How long unconfirmed writes are repeated once the drain's time is over.
const LAST_WORD: Duration = Duration::from_secs(2);

/// A delivery on its way: the event, what applies to it, its copies.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) event: Arc<Event>,
    pub(super) key: Key,
    pub(super) ruling: Ruling,
    pub(super) flight: Flight,
    pub(super) received_at: Instant,
}

/// What every attempt of a process shares.
pub(super) struct Processor {
    pub(super) claims: Arc<Claims>,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) intake: Arc<Intake>,
    pub(super) renewal: Arc<Renewal>,
    pub(super) report: Reporter,
    pub(super) lease: Lease,
    pub(super) backoff: Backoff,
    /// Handlers that may run at once.
    pub(super) slots: Semaphore,
    pub(super) source: String,
    pub(super) shutdown: Shutdown,
}

impl Processor {
    /// Takes one event from its slot to its end. `suspect`: the process's one permit for an event whose owner died.
    pub(super) async fn process(&self, attempt: &Attempt, suspect: Option<OwnedSemaphorePermit>) -> End {
        let Some((_slot, admission)) = self.enter().await else { return End::Stopped };
        match self.claim(attempt, suspect.is_some()).await {
            Ok(claim) => {
                self.report.mine(&attempt.event, &claim);
                self.own(attempt, claim, admission).await
            }
            Err(end) => end,
        }
    }

    /// A handler slot, and leave to claim; `None` when a drain begins first.
    async fn enter(&self) -> Option<(SemaphorePermit<'_>, Admission)> {
        let entry = async {
            let slot = self.slots.acquire().await.ok()?;
            Some((slot, self.intake.admit().await))
        };
        tokio::select! {
            biased;
            () = self.shutdown.stopping() => None,
            entry = entry => entry,
        }
    }

    /// Deals with an event that is ours, to its end.
    async fn own(&self, attempt: &Attempt, mut claim: Claim, admission: Admission) -> End {
        let mut held = self.renewal.hold(&claim);
        let began = Instant::now();
        let (outcome, trouble) = self.outcome(attempt, &mut claim, &mut held).await;
        let settled = self.settle(attempt, &claim, outcome).await;
        drop(held);
        let quarantined = match &settled {
            // What never reaches the handler says nothing about it: noise on the topic must not stop everything else.
            Ok(_) if unhandled(attempt).is_some() => None,
            Ok(outcome) => Some(matches!(outcome, Outcome::Quarantine { .. })),
            Err(_) => None,
        };
        admission.report(attempt.key, trouble, quarantined);
        match settled {
            Ok(outcome) => End::Settled { claim, outcome, took: began.elapsed() },
            Err(end) => end,
        }
    }

    /// What is to be written for a claimed event, and whether the target was in trouble; calls the handler if it is
    /// to be called.
    async fn outcome(&self, attempt: &Attempt, claim: &mut Claim, held: &mut Held) -> (Outcome, Option<bool>) {
        if let Some(reason) = unhandled(attempt) {
            let detail = Detail::new(b"not shown to the handler");
            return (Outcome::Quarantine { reason, counts: false, certainty: Certainty::NotRun, detail }, None);
        }
        let began = Instant::now();
        let begun = claim.phase == Phase::MayHaveRun || self.start(attempt, claim, held).await;
        let verdict = if begun && held.is_live() && !self.shutdown.is_stopping() {
            self.call(attempt, claim, held).await
        } else {
            Verdict::NotCalled
        };
        let trouble = verdict.target_trouble();
        let promised = self.lease.promise(attempt.ruling.timeout).saturating_sub(began.elapsed());
        let terms = Terms::of(claim, attempt.ruling.budget, self.backoff, rand::random(), promised);
        (terms.conclude(verdict), trouble)
    }

    /// Records durably that the handler may be called; false = do not call it. Tried for one lease at most: then the
    /// event is better off with somebody whose writes are confirmed.
    async fn start(&self, attempt: &Attempt, claim: &mut Claim, held: &Held) -> bool {
        let end = Instant::now() + self.lease.length();
        let mut tries = 0_u16;
        while held.is_live() && Instant::now() < end && !self.shutdown.is_stopping() {
            let sent_at = self.report.clock.moment();
            // From here on the row may say so, whatever is answered.
            claim.phase = Phase::MayHaveRun;
            claim.deadline_at = Some(sent_at + self.lease.promise(claim.intent.timeout));
            held.started(claim);
            match self.claims.start(claim).await {
                Ok(()) => {
                    held.renewed(sent_at);
                    return true;
                }
                Err(error @ (StoreError::Unknown(_) | StoreError::Contention(_))) => {
                    self.report.store_trouble(&attempt.event, &error);
                    tries = tries.saturating_add(1);
                    if !self.pause(tries).await {
                        return false;
                    }
                }
                Err(error @ (StoreError::ClaimLost | StoreError::Refused(_))) => {
                    self.report.store_trouble(&attempt.event, &error);
                    return false;
                }
            }
        }
        false
    }

    async fn call(&self, attempt: &Attempt, claim: &Claim, held: &mut Held) -> Verdict {
        let metrics = &self.report.metrics;
        let event = &attempt.event;
        let cx = call::context(claim, self.report.clock.now(), attempt.ruling.timeout, &self.source);
        let _running = InFlight::enter(&metrics.handlers_in_flight);
        self.report.called(event);
        let began = Instant::now();
        let (verdict, loss) = call::handler(&self.handler, event, claim, &cx, held, &self.shutdown).await;
        let took = began.elapsed();
        metrics.handler_duration.with_label_values(&[event.type_label(), verdict.label()]).observe(took.as_secs_f64());
        metrics.handler_timeout_used.observe(took.div_duration_f64(cx.timeout));
        if let Some(loss) = loss {
            metrics.claims_lost.with_label_values(&[loss.label()]).inc();
        }
        match &verdict {
            Verdict::Answered(Ok(handled)) if handled.reply_unreadable => metrics.handler_replies_unreadable.inc(),
            Verdict::Panicked => tracing::error!(event_id = %event.id, "Handler panicked"),
            _ => {}
        }
        verdict
    }

    /// Writes the outcome until the write is confirmed, refused, or no longer ours. Meanwhile the lease is renewed: the
    /// event is safe with whoever knows how it ended.
    async fn settle(&self, attempt: &Attempt, claim: &Claim, mut outcome: Outcome) -> Result<Outcome, End> {
        let mut tries = 0_u16;
        let mut last_word = None;
        loop {
            let error = match self.claims.settle(claim, &outcome).await {
                Ok(()) => return Ok(outcome),
                Err(StoreError::ClaimLost) => return Err(End::Lost { epoch: claim.epoch }),
                Err(error) => error,
            };
            self.report.settle_trouble(&attempt.event, &error);
            if let StoreError::Refused(_) = error {
                outcome = plain(outcome).ok_or(End::Held)?;
                continue;
            }
            tries = tries.saturating_add(1);
            if self.shutdown.is_aborting() {
                let end = *last_word.get_or_insert_with(|| Instant::now() + LAST_WORD);
                if Instant::now() >= end {
                    return Err(End::Unconfirmed);
                }
                time::sleep(LAST_WORD / 10).await;
            } else {
                tokio::select! {
                    () = time::sleep(REPEAT.delay(tries, rand::random())) => {}
                    () = self.shutdown.aborting() => {}
                }
            }
        }
    }

    /// Waits before a repetition; false when a drain began.
    pub(super) async fn pause(&self, tries: u16) -> bool {
        tokio::select! {
            biased;
            () = self.shutdown.stopping() => false,
            () = time::sleep(REPEAT.delay(tries, rand::random())) => true,
        }
    }
}

/// Why an event is put in quarantine without being shown to the handler.
pub(super) fn unhandled(attempt: &Attempt) -> Option<Reason> {
    match (attempt.event.shape, attempt.ruling.action) {
        (Shape::Opaque, _) => Some(Reason::Undecodable),
        (_, Action::Quarantine) => Some(Reason::Operator),
        (Shape::Classic | Shape::Addon | Shape::CloudEvent, Action::Handle | Action::Skip) => None,
    }
}

/// The same outcome without the texts a store may have refused; `None` when it has none any more.
fn plain(outcome: Outcome) -> Option<Outcome> {
    const FIXED: &str = "text refused by the store";
    match outcome {
        Outcome::Retry { counts, after, certainty, note } if note.as_str() != FIXED => {
            Some(Outcome::Retry { counts, after, certainty, note: Note::new(FIXED) })
        }
        Outcome::Quarantine { reason, counts, certainty, detail } if detail.as_str() != FIXED => {
            Some(Outcome::Quarantine { reason, counts, certainty, detail: Detail::new(FIXED.as_bytes()) })
        }
        Outcome::Done | Outcome::Retry { .. } | Outcome::Quarantine { .. } => None,
    }
}

/// Counts a running handler, also when its task is dropped.
struct InFlight<'a>(&'a prometheus::IntGauge);

impl<'a> InFlight<'a> {
    fn enter(gauge: &'a prometheus::IntGauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
