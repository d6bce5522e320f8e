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

use super::intake::Intake;
use crate::{
    claim::{Claim, ClaimRef, Lease, Nonce, Standing},
    clock::{Clock, Moment},
    metrics::Metrics,
    store::{ClaimStore, StoreError},
};

/// How many claims one statement renews.
const CHUNK: usize = 100;

/// How often a waiting attempt looks at the suspend-proof clock: tokio's timers stand still while suspended.
const GLANCE: Duration = Duration::from_secs(1);

/// The claims of this process.
#[derive(Debug)]
pub(super) struct Renewal {
    store: Arc<dyn ClaimStore>,
    lease: Lease,
    clock: Arc<dyn Clock>,
    intake: Arc<Intake>,
    metrics: Metrics,
    held: Mutex<HashMap<Nonce, Entry>>,
}

#[derive(Debug)]
struct Entry {
    claim: ClaimRef,
    fence: watch::Sender<Fence>,
    settling: bool,
    since: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fence {
    At(Moment),
    Lost,
}

impl Renewal {
    pub(super) fn new(
        store: Arc<dyn ClaimStore>,
        lease: Lease,
        clock: Arc<dyn Clock>,
        intake: Arc<Intake>,
        metrics: Metrics,
    ) -> Arc<Self> {
        Arc::new(Self { store, lease, clock, intake, metrics, held: Mutex::default() })
    }

    /// Keeps `claim` alive until the returned guard is dropped: no lease lives for ever.
    pub(super) fn hold(self: &Arc<Self>, claim: &Claim) -> Held {
        let (fence, watching) = watch::channel(Fence::At(claim.fence_at));
        let nonce = claim.intent.nonce;
        let entry = Entry { claim: claim.reference(), fence, settling: false, since: self.clock.now().timestamp() };
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
        let mut claims: Vec<_> =
            self.lock().values().filter(|entry| !entry.settling).map(|entry| entry.claim.clone()).collect();
        claims.sort_unstable_by_key(ClaimRef::key);
        for chunk in claims.chunks(CHUNK) {
            let sent_at = self.clock.moment();
            match self.store.renew(chunk).await {
                Ok(lost) => self.renewed(chunk, lost, sent_at).await,
                Err(error) => self.failed(&error),
            }
        }
    }

    async fn renewed(&self, chunk: &[ClaimRef], lost: Vec<ClaimRef>, sent_at: Moment) {
        self.intake.store_answered();
        let fence = Fence::At(self.lease.fence_after(sent_at));
        let missing: Vec<_> = lost.iter().map(ClaimRef::nonce).collect();
        for claim in chunk.iter().filter(|claim| !missing.contains(&claim.nonce())) {
            self.set_fence(claim.nonce(), fence);
        }
        if lost.is_empty() {
            return;
        }
        // Before a handler is cut its row is looked at: it may just have been settled by its own attempt.
        let keys: Vec<_> = lost.iter().map(ClaimRef::key).collect();
        match self.store.look(&keys).await {
            Ok(views) => {
                for claim in lost {
                    let still_ours = views.iter().any(|view| {
                        view.key == claim.key()
                            && view.nonce == Some(claim.nonce())
                            && matches!(view.standing, Standing::Wait(_))
                    });
                    if !still_ours {
                        self.set_fence(claim.nonce(), Fence::Lost);
                    }
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&self, error: &StoreError) {
        match error {
            StoreError::Unknown(_) => self.intake.store_failed(),
            StoreError::Contention(_) | StoreError::Refused(_) | StoreError::ClaimLost => {}
        }
        tracing::warn!(error.kind = error.label(), "Leases could not be renewed; the next renewal tries again");
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

    /// Stops renewal: how the attempt ended is being written.
    pub(super) fn settling(&self) {
        if let Some(entry) = self.renewal.lock().get_mut(&self.nonce) {
            entry.settling = true;
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
    /// The row names another attempt, or is gone.
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
