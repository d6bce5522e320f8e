//! One loop renews the leases of everything this process runs.
//!
//! It renews four times per lease, so one lost renewal is harmless. An attempt that was not renewed in time must
//! consider itself lost before anybody else may take over: that moment is its fence.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{self, MissedTickBehavior},
};

use crate::{
    claim::{Claim, ClaimRef, Lease, Nonce, row::SETTLE_TIME},
    claims::Claims,
    clock::{Clock, Moment},
    metrics::Metrics,
};

/// How often a waiting attempt looks at the suspend-proof clock: tokio's timers stand still while suspended.
const GLANCE: Duration = Duration::from_secs(1);

/// The claims of this process.
#[derive(Debug)]
pub(super) struct Renewal {
    claims: Arc<Claims>,
    lease: Lease,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    held: Mutex<HashMap<Nonce, Entry>>,
}

#[derive(Debug)]
struct Entry {
    claim: Claim,
    fence: watch::Sender<Fence>,
    since: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    At(Moment),
    Lost,
}

impl Renewal {
    pub(super) fn new(claims: Arc<Claims>, lease: Lease, clock: Arc<dyn Clock>, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self { claims, lease, clock, metrics, held: Mutex::default() })
    }

    /// Keeps `claim` alive until the returned guard is dropped: no lease lives for ever.
    pub(super) fn hold(self: &Arc<Self>, claim: &Claim) -> Held {
        let (fence, watching) = watch::channel(Fence::At(claim.fence_at));
        let nonce = claim.intent.nonce;
        let entry = Entry { claim: claim.clone(), fence, since: self.clock.now().timestamp() };
        self.lock().insert(nonce, entry);
        self.publish();
        Held { nonce, fence: watching, renewal: Arc::clone(self) }
    }

    /// Renews until dropped.
    pub(super) async fn run(&self) {
        let mut ticks = time::interval(self.lease.renew_every());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.renew_all().await;
        }
    }

    async fn renew_all(&self) {
        let held: Vec<_> = self.lock().values().map(|entry| entry.claim.clone()).collect();
        if held.is_empty() {
            return;
        }
        let sent_at = self.clock.moment();
        match self.claims.renew(&held).await {
            Ok(answer) => {
                for claim in answer.renewed {
                    self.renewed(claim, sent_at);
                }
                for claim in answer.lost {
                    self.set_fence(claim.nonce, Fence::Lost);
                }
            }
            Err(error) => {
                tracing::warn!(
                    error.kind = error.label(),
                    cause = error.cause().as_str(),
                    "Leases could not be renewed; the next renewal tries again"
                );
            }
        }
    }

    /// The lease counts from when its renewal was sent, and reaches no further than the row's own limit.
    fn renewed(&self, claim: ClaimRef, sent_at: Moment) {
        let fence = self.lease.fence_after(sent_at);
        if let Some(entry) = self.lock().get(&claim.nonce) {
            let limit =
                entry.claim.deadline_at.map(|deadline| deadline + SETTLE_TIME.saturating_sub(self.lease.grace()));
            entry.fence.send_replace(Fence::At(limit.map_or(fence, |limit| fence.min(limit))));
        }
    }

    fn set_fence(&self, nonce: Nonce, fence: Fence) {
        if let Some(entry) = self.lock().get(&nonce) {
            entry.fence.send_replace(fence);
        }
    }

    fn publish(&self) {
        let oldest = self.lock().values().map(|entry| entry.since).min().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit a float exactly")]
        self.metrics.oldest_running_timestamp.set(oldest as f64);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Nonce, Entry>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim that is being renewed.
#[derive(Debug)]
pub(super) struct Held {
    nonce: Nonce,
    fence: watch::Receiver<Fence>,
    renewal: Arc<Renewal>,
}

impl Held {
    /// True while nobody else can have taken over.
    pub(super) fn is_live(&self) -> bool {
        match *self.fence.borrow() {
            Fence::At(fence) => self.renewal.clock.moment() < fence,
            Fence::Lost => false,
        }
    }

    /// A write of ours was confirmed: the lease counts from when it was sent.
    pub(super) fn renewed(&self, sent_at: Moment) {
        self.renewal.set_fence(self.nonce, Fence::At(self.renewal.lease.fence_after(sent_at)));
    }

    /// The start is being written: from now on a row that is gone is put back as begun.
    pub(super) fn started(&self, claim: &Claim) {
        if let Some(entry) = self.renewal.lock().get_mut(&self.nonce) {
            entry.claim = claim.clone();
        }
    }

    /// Resolves when the claim must be considered lost; says whether somebody else has it for certain. Cancel-safe.
    pub(super) async fn lost(&mut self) -> Loss {
        loop {
            let left = match *self.fence.borrow_and_update() {
                Fence::Lost => return Loss::Taken,
                Fence::At(fence) => fence.since(self.renewal.clock.moment()),
            };
            if left.is_zero() {
                return Loss::Fenced;
            }
            tokio::select! {
                _ = self.fence.changed() => {}
                () = time::sleep(left.min(GLANCE)) => {}
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.renewal.lock().remove(&self.nonce);
        self.renewal.publish();
    }
}

/// How a claim was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// It was not renewed in time.
    Fenced,
    /// The row names another attempt.
    Taken,
}

impl Loss {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Fenced => "fenced",
            Self::Taken => "expired",
        }
    }
}
