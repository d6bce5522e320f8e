//! The parking lot: copies of events that are running elsewhere, or not yet due.
//!
//! Acking such a copy would lose the event if its owner dies; nacking it would spend delivery attempts and loop. So it
//! keeps its acker, gives its handler slot back, and waits here until its wake time.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{self, Instant},
};

use super::processor::Attempt;
use crate::{
    claim::{Key, Wait},
    metrics::Metrics,
};

/// A parked event with all its copies.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) attempt: Attempt,
    pub(super) wake_at: Instant,
    pub(super) why: Wait,
}

/// All parked events of this process.
pub(super) struct Lot {
    places: usize,
    parked: Mutex<Vec<Parked>>,
    closed: AtomicBool,
    changed: Notify,
    suspects: Notify,
    metrics: Metrics,
}

/// Who has no place in the lot.
#[derive(Debug)]
pub(super) enum Turned {
    /// Over the number of places the latest due goes.
    Surplus(Attempt),
    /// The lot is closed.
    Closed(Attempt),
}

impl Lot {
    pub(super) fn new(places: usize, metrics: Metrics) -> Arc<Self> {
        Arc::new(Self {
            places,
            parked: Mutex::default(),
            closed: AtomicBool::new(false),
            changed: Notify::new(),
            suspects: Notify::new(),
            metrics,
        })
    }

    /// Parks an event. Whoever has no place is returned, to be nacked.
    pub(super) fn park(&self, attempt: Attempt, wake_in: Duration, why: Wait) -> Option<Turned> {
        let mut parked = self.lock();
        if self.closed.load(Ordering::SeqCst) {
            return Some(Turned::Closed(attempt));
        }
        parked.push(Parked { attempt, wake_at: Instant::now() + wake_in, why });
        let latest = (parked.len() > self.places)
            .then(|| parked.iter().enumerate().max_by_key(|(_, one)| one.wake_at).map(|(at, _)| at))
            .flatten();
        let surplus = latest.map(|at| Turned::Surplus(parked.swap_remove(at).attempt));
        self.count(&parked);
        drop(parked);
        self.changed.notify_one();
        if why == Wait::Suspect {
            self.suspects.notify_one();
        }
        surplus
    }

    /// The suspect that waits longest; waits for one. Cancel-safe.
    pub(super) async fn suspect(&self) -> Attempt {
        loop {
            if let Some(suspect) = self.take_suspect() {
                return suspect;
            }
            self.suspects.notified().await;
        }
    }

    fn take_suspect(&self) -> Option<Attempt> {
        let mut parked = self.lock();
        let suspects = parked.iter().enumerate().filter(|(_, one)| one.why == Wait::Suspect);
        let (at, _) = suspects.min_by_key(|(_, one)| one.attempt.received_at)?;
        let suspect = parked.swap_remove(at).attempt;
        self.count(&parked);
        Some(suspect)
    }

    /// The events that are due, at least one; waits for the next. Cancel-safe.
    pub(super) async fn due(&self) -> Vec<Parked> {
        loop {
            let next = {
                let mut parked = self.lock();
                let now = Instant::now();
                let due: Vec<_> = parked.extract_if(.., |one| one.wake_at <= now).collect();
                if !due.is_empty() {
                    self.count(&parked);
                    return due;
                }
                parked.iter().map(|one| one.wake_at).min()
            };
            match next {
                Some(next) => tokio::select! {
                    () = self.changed.notified() => {}
                    () = time::sleep_until(next) => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    /// Wakes the copies of an event that this process has settled.
    pub(super) fn wake(&self, key: Key) {
        let mut parked = self.lock();
        for one in parked.iter_mut().filter(|one| one.attempt.key == key) {
            one.wake_at = Instant::now();
        }
        drop(parked);
        self.changed.notify_one();
    }

    /// Empties the lot; nobody parks any more.
    pub(super) fn close(&self) -> Vec<Attempt> {
        let mut parked = self.lock();
        self.closed.store(true, Ordering::SeqCst);
        let all = parked.drain(..).map(|one| one.attempt).collect();
        self.count(&parked);
        all
    }

    fn count(&self, parked: &[Parked]) {
        self.metrics.parked_events.set(i64::try_from(parked.len()).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lot").field("places", &self.places).finish_non_exhaustive()
    }
}
