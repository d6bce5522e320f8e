//! The one place where what happened to an event becomes a metric, a log line, and news for an observer.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use tracing::{debug, error, info, warn};

use super::{answer::End, processor::Attempt};
use crate::{
    claim::{Claim, Wait},
    clock::Clock,
    event::Event,
    metrics::Metrics,
    outcome::{Outcome, Reason},
    rule::{OnUnknown, Ruling},
    store::StoreError,
};

/// What happened to an event, for whoever watches (the demo's terminal).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// It is the first copy this process holds, and its attempt begins.
    Taken,
    /// A rule skipped it.
    Skipped,
    /// The handler did its work.
    Handled {
        /// Which attempt did.
        attempt: u32,
    },
    /// A copy of a settled event was acked without calling the handler.
    Duplicate,
    /// A copy joined the one this process already holds.
    Merged,
    /// A copy waits for another attempt, or for its time.
    Parked,
    /// It will be tried again.
    Retried {
        /// After how long.
        after: Duration,
        /// Whether it cost a failure.
        counted: bool,
    },
    /// It was put aside.
    Quarantined(Reason),
}

/// Watches what happens to events. Called on the hot path: return at once.
pub trait Observer: Send + Sync {
    /// Something happened to an event.
    fn happened(&self, event: &Event, what: Happening);
}

/// The event's space, when it is the resource name it should be: a publisher may write anything there.
fn space(event: &Event) -> &str {
    let named = |space: &&str| {
        space.strip_prefix("spaces/").is_some_and(|id| {
            (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        })
    };
    event.chat.space.as_deref().filter(named).unwrap_or_default()
}

/// Counts, logs and tells.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) metrics: Metrics,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl Reporter {
    pub(super) fn skipped(&self, event: &Event, ruling: &Ruling) {
        self.metrics.events_skipped.with_label_values(&[event.type_label()]).inc();
        let rule = ruling.rule;
        debug!(event_id = %event.id, event_type = event.type_label(), %rule, "Skipped by {rule}");
        self.tell(event, Happening::Skipped);
    }

    /// An attempt begins; what is odd about an event that will be handled like any other.
    pub(super) fn noticed(&self, event: &Event) {
        self.tell(event, Happening::Taken);
        if let Some(warning) = event.lifecycle_warning() {
            let warning = warning.as_str();
            self.metrics.workspace_subscription_warnings.with_label_values(&[warning]).inc();
            let attributes = event.ce_attributes();
            let subscription = attributes.get("source").map(|source| &**source).unwrap_or_default();
            warn!(event_id = %event.id, warning, subscription, "The Workspace Events subscription is {warning}: renew it");
        }
    }

    pub(super) fn merged(&self, event: &Event) {
        self.claimed(event, "duplicate");
        self.tell(event, Happening::Merged);
    }

    pub(super) fn mine(&self, event: &Event, claim: &Claim) {
        self.claimed(event, if claim.lost > 0 { "takeover" } else { "claimed" });
        if claim.follows_a_drain() {
            self.metrics.drain_aborted.inc();
        }
    }

    /// How an event ended here.
    pub(super) fn ended(&self, attempt: &Attempt, end: &End) {
        let event = &attempt.event;
        match end {
            End::Settled { claim, outcome, took } => self.settled(attempt, claim, outcome, *took),
            End::Duplicate => self.duplicate(event),
            End::PutAside(reason) => self.put_aside(attempt, *reason),
            End::Waits { why, .. } => self.parked(event, *why),
            End::Lost { epoch } => {
                self.metrics.claims_lost.with_label_values(&["expired"]).inc();
                warn!(event_id = %event.id, epoch, "Somebody else owns the event now; this copy waits for their outcome");
            }
            End::Expired => self.metrics.parked_expired.inc(),
            // Each was told when it happened.
            End::Refused | End::Held | End::Unconfirmed | End::Stopped => {}
        }
    }

    fn duplicate(&self, event: &Event) {
        self.claimed(event, "duplicate");
        debug!(event_id = %event.id, "Copy of a settled event; acked");
        self.tell(event, Happening::Duplicate);
    }

    fn parked(&self, event: &Event, why: Wait) {
        self.claimed(event, if why == Wait::NotDue { "not_due" } else { "parked" });
        debug!(event_id = %event.id, ?why, "Parked");
        if why == Wait::Mismatch {
            self.metrics.quarantined.with_label_values(&[Reason::Mismatch.as_str()]).inc();
            error!(event_id = %event.id, "Another event holds this id; this payload is in quarantine");
        }
        self.tell(event, Happening::Parked);
    }

    /// The claim itself put the event in quarantine.
    fn put_aside(&self, attempt: &Attempt, reason: Reason) {
        let (event, rule) = (&attempt.event, attempt.ruling.rule);
        self.claimed(event, "quarantined");
        self.metrics.quarantined.with_label_values(&[reason.as_str()]).inc();
        let space = space(event);
        error!(event_id = %event.id, event_type = event.type_label(), space, %rule, outcome = "quarantined",
            reason = reason.as_str(), "Settled event {} as quarantined: {reason}", event.id);
        self.tell(event, Happening::Quarantined(reason));
    }

    pub(super) fn store_trouble(&self, event: &Event, error: &StoreError) {
        self.claimed(event, "error");
        match error {
            StoreError::Refused(_) => {
                error!(event_id = %event.id, error.kind = error.label(), cause = error.cause().as_str(),
                    "Store refuses this event; it is held for a minute, then tried again");
            }
            StoreError::Unknown(_) | StoreError::Contention(_) | StoreError::ClaimLost => {
                debug!(event_id = %event.id, error.kind = error.label(), "Claim was not answered; it is sent again");
            }
        }
    }

    pub(super) fn settle_trouble(&self, event: &Event, error: &StoreError) {
        warn!(event_id = %event.id, error.kind = error.label(), cause = error.cause().as_str(), "Outcome is not confirmed yet; the delivery is held");
    }

    pub(super) fn called(&self, event: &Event) {
        if let Some(delay) = self.since(event.raw.publish_time) {
            self.metrics.event_queue_delay.with_label_values(&[event.type_label()]).observe(delay.as_secs_f64());
        }
    }

    fn settled(&self, attempt: &Attempt, claim: &Claim, outcome: &Outcome, took: Duration) {
        let event = &attempt.event;
        let number = u32::from(claim.failures) + u32::from(claim.lost) + 1;
        let (label, happening) = match outcome {
            Outcome::Done => ("done", Happening::Handled { attempt: number }),
            Outcome::Retry { counts: false, after, .. } => {
                ("handed_back", Happening::Retried { after: after.unwrap_or_default(), counted: false })
            }
            Outcome::Retry { after, .. } => {
                ("retried", Happening::Retried { after: after.unwrap_or_default(), counted: true })
            }
            Outcome::Quarantine { reason, .. } => ("quarantined", Happening::Quarantined(*reason)),
        };
        self.metrics.events_finished.with_label_values(&[event.type_label(), label]).inc();
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let space = space(event);
        let rule = attempt.ruling.rule;
        // The row's word, not the rule's: once strict, always strict.
        let on_unknown = if claim.strict { OnUnknown::Quarantine } else { OnUnknown::Rerun }.as_str();
        match outcome {
            Outcome::Done => {
                self.finished(event, number);
                info!(event_id = %event.id, event_type = event.type_label(), space, %rule, on_unknown, attempt = number,
                    epoch = claim.epoch, outcome = label, duration_ms, "Settled event {} as done", event.id);
            }
            Outcome::Retry { after, note, .. } => {
                let after_ms = u64::try_from(after.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
                warn!(event_id = %event.id, event_type = event.type_label(), space, %rule, on_unknown, attempt = number,
                    epoch = claim.epoch, outcome = label, duration_ms, after_ms, why = note.as_str(),
                    "Event {} will be tried again", event.id);
            }
            Outcome::Quarantine { reason, detail, .. } => {
                self.finished(event, number);
                // The first line is bellhop's own words; what the handler said may be private.
                let why = detail.as_str().lines().next().unwrap_or_default();
                self.metrics.quarantined.with_label_values(&[reason.as_str()]).inc();
                error!(event_id = %event.id, event_type = event.type_label(), space, %rule, on_unknown, attempt = number,
                    epoch = claim.epoch, outcome = label, duration_ms, reason = reason.as_str(), why,
                    "Settled event {} as quarantined: {reason}", event.id);
            }
        }
        self.tell(event, happening);
    }

    fn finished(&self, event: &Event, attempts: u32) {
        self.metrics.event_attempts.observe(f64::from(attempts));
        if let Some(age) = self.since(event.raw.publish_time) {
            self.metrics.event_end_to_end.with_label_values(&[event.type_label()]).observe(age.as_secs_f64());
        }
    }

    fn since(&self, published: Option<DateTime<Utc>>) -> Option<Duration> {
        published.map(|published| (self.clock.now() - published).to_std().unwrap_or_default())
    }

    fn claimed(&self, event: &Event, result: &str) {
        self.metrics.events_claimed.with_label_values(&[event.type_label(), result]).inc();
    }

    fn tell(&self, event: &Event, what: Happening) {
        if let Some(observer) = &self.observer {
            observer.happened(event, what);
        }
    }
}
