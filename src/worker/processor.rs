//! One event end to end: slot, claim, handler, settle, answer. The unit under test.
//!
//! The outcome is written before the source is answered; while a write is not confirmed the delivery is held, and it
//! is never acked.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{self, Instant},
};

use super::{
    call,
    claiming::Answer,
    flights::Flight,
    intake::{Admission, Intake},
    parking::Lot,
    renewal::{Held, Renewal},
    report::Reporter,
    verdict::{Terms, Verdict},
};
use crate::{
    claim::{Claim, Key, Lease, Phase, Step, Wait},
    event::{Event, Shape},
    handler::Handler,
    outcome::{Certainty, Detail, Note, Outcome, Reason},
    retry::Backoff,
    rule::{Action, Ruling},
    shutdown::Shutdown,
    store::{ClaimStore, StoreError},
};

/// How long an event that the store refuses is held before it is tried again.
const HOLD: Duration = Duration::from_secs(60);
/// How long a copy waits before it asks what became of an event that somebody else took.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long replies wait for a process that can post them.
const REPLY_HAND_BACK: Duration = Duration::from_secs(30);
/// Delays between repetitions of a write that was not confirmed.
pub(super) const REPEAT: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
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
    pub(super) store: Arc<dyn ClaimStore>,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) intake: Arc<Intake>,
    pub(super) lot: Arc<Lot>,
    pub(super) renewal: Arc<Renewal>,
    pub(super) report: Reporter,
    pub(super) lease: Lease,
    pub(super) backoff: Backoff,
    /// Handlers that may run at once.
    pub(super) slots: Semaphore,
    /// The one permit for events whose owner died: poison must not spend the budgets of innocents.
    pub(super) suspects: Arc<Semaphore>,
    pub(super) source: String,
    pub(super) shutdown: Shutdown,
}

/// How an owned attempt ended.
enum Ending {
    Settled(Outcome),
    /// Somebody else owns the event now.
    Lost,
    /// The store refuses to take the outcome.
    Held,
    /// The drain's time is over and the write was not confirmed.
    Unconfirmed,
}

impl Processor {
    /// Takes one event from its slot to its answer.
    pub(super) async fn process(&self, attempt: Attempt) {
        let Some((slot, admission)) = self.enter().await else { return attempt.flight.nack().await };
        match self.claim(&attempt).await {
            Answer::Mine(claim, suspect) => {
                self.report.mine(&attempt.event, &claim);
                self.own(attempt, &claim, admission).await;
                drop(suspect);
            }
            Answer::Settled => {
                self.report.duplicate(&attempt.event);
                attempt.flight.ack().await;
            }
            Answer::Quarantined(reason) => {
                admission.report(attempt.key, None, Some(true), &self.intake);
                self.report.found_in_quarantine(&attempt, reason);
                attempt.flight.ack().await;
            }
            Answer::Wait(wake_in, why) => {
                self.report.parked(&attempt.event, why);
                self.park(attempt, wake_in, why).await;
            }
            Answer::Refused => self.park(attempt, HOLD, Wait::NotDue).await,
            Answer::Stopping => attempt.flight.nack().await,
        }
        drop(slot);
    }

    /// Parks an event's copies; what is over the lot's size is held a moment, then nacked.
    pub(super) async fn park(&self, attempt: Attempt, wake_in: Duration, why: Wait) {
        if self.shutdown.is_stopping() {
            return attempt.flight.nack().await;
        }
        let Some(surplus) = self.lot.park(attempt, wake_in, why) else { return };
        self.report.metrics.parked_over_cap.inc();
        tokio::select! {
            () = time::sleep(Duration::from_secs(1)) => {}
            () = self.shutdown.stopping() => {}
        }
        surplus.flight.nack().await;
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

    /// Deals with an event that is ours, to the answer.
    async fn own(&self, attempt: Attempt, claim: &Claim, admission: Admission) {
        let mut held = self.renewal.hold(claim);
        let began = Instant::now();
        let (outcome, trouble) = self.outcome(&attempt, claim, &mut held).await;
        let ending = self.settle(&attempt, claim, outcome, &held).await;
        drop(held);
        let quarantined = match &ending {
            // What never reaches the handler says nothing about it: noise on the topic must not stop everything else.
            Ending::Settled(_) if put_aside(&attempt).is_some() => None,
            Ending::Settled(outcome) => Some(matches!(outcome, Outcome::Quarantine { .. })),
            Ending::Lost | Ending::Held | Ending::Unconfirmed => None,
        };
        admission.report(attempt.key, trouble, quarantined, &self.intake);
        let key = attempt.key;
        match ending {
            Ending::Settled(outcome) => {
                self.report.settled(&attempt, claim, &outcome, began.elapsed());
                match outcome {
                    Outcome::Done | Outcome::Quarantine { .. } => attempt.flight.ack().await,
                    Outcome::Retry { .. } => attempt.flight.nack().await,
                }
                self.lot.wake(key);
            }
            Ending::Lost => {
                self.report.claim_lost(&attempt.event, claim.epoch);
                self.park(attempt, LOOK_AGAIN, Wait::Running).await;
            }
            Ending::Held => self.park(attempt, HOLD, Wait::Running).await,
            Ending::Unconfirmed => attempt.flight.nack().await,
        }
    }

    /// What is to be written for a claimed event, and whether the target was in trouble; calls the handler if it is
    /// to be called.
    async fn outcome(&self, attempt: &Attempt, claim: &Claim, held: &mut Held) -> (Outcome, Option<bool>) {
        if let Some(reason) = put_aside(attempt) {
            let detail = Detail::new(b"not shown to the handler");
            return (Outcome::Quarantine { reason, counts: false, certainty: Certainty::NotRun, detail }, None);
        }
        let began = Instant::now();
        let verdict = match claim.phase {
            // No process posts replies yet, so a reply that an operator's store holds waits for one that does.
            Phase::ReplyPending => {
                let note = Note::new("waits for a process that posts replies");
                let after = Some(REPLY_HAND_BACK);
                return (Outcome::Retry { counts: false, after, certainty: Certainty::Over, note }, None);
            }
            Phase::NotBegun if !self.start(attempt, claim, held).await => Verdict::NotCalled,
            Phase::NotBegun | Phase::MayHaveRun if self.shutdown.is_stopping() || !held.is_live() => Verdict::NotCalled,
            Phase::NotBegun | Phase::MayHaveRun => self.call(attempt, claim, held).await,
        };
        let trouble = verdict.target_trouble();
        let promised = (attempt.ruling.timeout + self.lease.grace()).saturating_sub(began.elapsed());
        let terms = Terms::of(claim, attempt.ruling.budget, self.backoff, rand::random(), promised);
        (terms.conclude(verdict), trouble)
    }

    /// Records durably that the handler may be called; false = do not call it. Tried for one lease at most: then the
    /// event is better off with somebody whose writes are confirmed.
    async fn start(&self, attempt: &Attempt, claim: &Claim, held: &Held) -> bool {
        let end = Instant::now() + self.lease.length();
        let mut tries = 0_u16;
        while held.is_live() && Instant::now() < end && !self.shutdown.is_stopping() {
            let sent_at = self.report.clock.moment();
            match self.store.advance(claim, &Step::Started).await {
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

    /// Writes the outcome until the write is confirmed, refused, or no longer ours.
    async fn settle(&self, attempt: &Attempt, claim: &Claim, mut outcome: Outcome, held: &Held) -> Ending {
        held.settling();
        let reference = claim.reference();
        let mut tries = 0_u16;
        let mut last_word = None;
        loop {
            match self.store.settle(&reference, &outcome).await {
                Ok(()) => {
                    self.intake.store_answered();
                    return Ending::Settled(outcome);
                }
                Err(StoreError::ClaimLost) => return Ending::Lost,
                Err(error @ StoreError::Refused(_)) => {
                    self.report.settle_trouble(&attempt.event, &error);
                    match plain(outcome) {
                        Some(plainer) => outcome = plainer,
                        None => return Ending::Held,
                    }
                    continue;
                }
                Err(error @ StoreError::Unknown(_)) => {
                    self.report.settle_trouble(&attempt.event, &error);
                    self.intake.store_failed();
                }
                Err(error @ StoreError::Contention(_)) => self.report.settle_trouble(&attempt.event, &error),
            }
            tries = tries.saturating_add(1);
            if self.shutdown.is_aborting() {
                let end = *last_word.get_or_insert_with(|| Instant::now() + LAST_WORD);
                if Instant::now() >= end {
                    return Ending::Unconfirmed;
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
}

/// Why an event is put in quarantine without being shown to the handler.
pub(super) fn put_aside(attempt: &Attempt) -> Option<Reason> {
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
