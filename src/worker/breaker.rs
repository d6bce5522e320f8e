//! A breaker: after too much trouble nothing passes but a probe now and then, until probes go well.
//!
//! Two use it. The target's breaker trips after five troubles in a row and sends a probe after 1 s, doubling to 60 s.
//! The quarantine brake trips when more events than allowed end in quarantine within a minute, sends a probe a minute
//! and is lifted by three good ones in a row: a bad deployment must not empty the subscription into quarantine.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus::IntGauge;
use tokio::{
    sync::Notify,
    time::{self, Instant},
};

use crate::claim::Key;

/// When a breaker trips and how it closes again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    /// Troubles that trip it.
    pub(super) trips_at: usize,
    /// Count troubles within this time; `None` = in a row.
    pub(super) within: Option<Duration>,
    /// The wait for the first probe; doubled after each bad one.
    pub(super) first_wait: Duration,
    /// The longest wait for a probe.
    pub(super) longest_wait: Duration,
    /// Good probes in a row that close it.
    pub(super) closes_after: u32,
    /// Troubles must come from so many events: one event that always fails must not hold up the others.
    pub(super) events: usize,
}

impl Policy {
    /// Troubles kept: without a window, only those that can still decide.
    fn remembered(&self) -> usize {
        if self.within.is_some() { usize::MAX } else { self.trips_at }
    }
}

/// Shared by all attempts of a process.
#[derive(Debug)]
pub(super) struct Breaker {
    policy: Policy,
    state: Mutex<State>,
    changed: Notify,
    /// 1 while it is open.
    shown: IntGauge,
}

#[derive(Debug)]
enum State {
    /// The troubles still counted.
    Closed(VecDeque<(Instant, Key)>),
    Open {
        wait: Duration,
        probe_at: Instant,
        good: u32,
        probing: bool,
    },
}

/// Leave to claim one event. A probe that ends without a report is replaced by the next attempt.
#[derive(Debug)]
#[must_use = "a probe must report"]
pub(super) struct Pass {
    breaker: Arc<Breaker>,
    probe: bool,
}

/// What a report changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    Opened,
    Closed,
}

impl Breaker {
    pub(super) fn new(policy: Policy, shown: IntGauge) -> Arc<Self> {
        Arc::new(Self { policy, state: Mutex::new(State::Closed(VecDeque::new())), changed: Notify::new(), shown })
    }

    /// Waits until an event may be claimed. Cancel-safe.
    pub(super) async fn pass(self: &Arc<Self>) -> Pass {
        loop {
            // Registered before the look, so that no change between look and wait is missed.
            let changed = self.changed.notified();
            let probe_at = match &mut *self.lock() {
                State::Closed(_) => return Pass { breaker: Arc::clone(self), probe: false },
                State::Open { probe_at, probing, .. } if !*probing && *probe_at <= Instant::now() => {
                    *probing = true;
                    return Pass { breaker: Arc::clone(self), probe: true };
                }
                State::Open { probe_at, probing, .. } => (!*probing).then_some(*probe_at),
            };
            match probe_at {
                Some(probe_at) => tokio::select! {
                    () = changed => {}
                    () = time::sleep_until(probe_at) => {}
                },
                None => changed.await,
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(*self.lock(), State::Open { .. })
    }

    fn report(&self, key: Key, trouble: bool, probe: bool) -> Change {
        let policy = self.policy;
        let now = Instant::now();
        let mut state = self.lock();
        let was_open = matches!(*state, State::Open { .. });
        match &mut *state {
            State::Closed(troubles) if trouble => {
                if let Some(within) = policy.within {
                    troubles.retain(|(at, _)| now.duration_since(*at) < within);
                }
                troubles.push_back((now, key));
                troubles.drain(..troubles.len().saturating_sub(policy.remembered()));
                let events = troubles.iter().map(|(_, key)| key).collect::<HashSet<_>>().len();
                if troubles.len() >= policy.trips_at && events >= policy.events {
                    let wait = policy.first_wait;
                    *state = State::Open { wait, probe_at: now + wait, good: 0, probing: false };
                }
            }
            State::Closed(troubles) if policy.within.is_none() => troubles.clear(),
            State::Open { wait, probe_at, good, probing } if probe => {
                *probing = false;
                if trouble {
                    *wait = (*wait * 2).min(policy.longest_wait);
                    *good = 0;
                } else {
                    *good += 1;
                }
                *probe_at = now + *wait;
                if *good >= policy.closes_after {
                    *state = State::Closed(VecDeque::new());
                }
            }
            // Attempts that began before it tripped say nothing new.
            State::Closed(_) | State::Open { .. } => {}
        }
        let is_open = matches!(*state, State::Open { .. });
        if is_open != was_open {
            self.shown.set(i64::from(is_open));
        }
        drop(state);
        self.changed.notify_waiters();
        match (was_open, is_open) {
            (false, true) => Change::Opened,
            (true, false) => Change::Closed,
            (true, true) | (false, false) => Change::None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    /// How it went.
    pub(super) fn report(mut self, key: Key, trouble: bool) -> Change {
        let probe = std::mem::take(&mut self.probe);
        self.breaker.report(key, trouble, probe)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.probe {
            return;
        }
        if let State::Open { probing, .. } = &mut *self.breaker.lock() {
            *probing = false;
        }
        self.breaker.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn key(event: u128) -> Key {
        Key::from(uuid::Uuid::from_u128(event))
    }

    fn breaker(policy: Policy) -> Arc<Breaker> {
        Breaker::new(policy, IntGauge::new("open", "1 while it is open.").unwrap())
    }

    fn in_a_row() -> Arc<Breaker> {
        breaker(Policy {
            trips_at: 5,
            within: None,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            closes_after: 1,
            events: 2,
        })
    }

    async fn trip(breaker: &Arc<Breaker>) {
        for event in 0..5 {
            breaker.pass().await.report(key(event), true);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn five_troubles_in_a_row_open_it() {
        let breaker = in_a_row();

        for event in 0..4 {
            breaker.pass().await.report(key(event), true);
        }
        breaker.pass().await.report(key(9), false);
        for event in 0..4 {
            breaker.pass().await.report(key(event), true);
        }

        assert!(!breaker.is_open());
        breaker.pass().await.report(key(7), true);
        assert!(breaker.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn one_event_that_always_fails_does_not_open_it() {
        let breaker = in_a_row();

        for _ in 0..50 {
            breaker.pass().await.report(key(1), true);
        }
        assert!(!breaker.is_open());

        breaker.pass().await.report(key(2), true);
        assert!(breaker.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn one_probe_passes_after_the_wait_and_closes_it() {
        let breaker = in_a_row();
        trip(&breaker).await;
        let tripped = Instant::now();

        let probe = breaker.pass().await;

        assert_eq!(tripped.elapsed(), Duration::from_secs(1));
        assert!(breaker.pass().now_or_never().is_none(), "only one probe at a time");
        probe.report(key(7), false);
        assert!(!breaker.is_open());
        assert!(breaker.pass().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn bad_probes_double_the_wait_up_to_the_longest() {
        let breaker = in_a_row();
        trip(&breaker).await;

        let mut waits = vec![];
        for _ in 0..8 {
            let before = Instant::now();
            breaker.pass().await.report(key(7), true);
            waits.push(before.elapsed().as_secs());
        }

        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_never_reports_is_replaced() {
        let breaker = in_a_row();
        trip(&breaker).await;

        drop(breaker.pass().await);

        assert!(breaker.pass().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn troubles_older_than_the_window_do_not_count() {
        let brake = breaker(Policy {
            trips_at: 3,
            within: Some(Duration::from_secs(60)),
            first_wait: Duration::from_secs(60),
            longest_wait: Duration::from_secs(60),
            closes_after: 3,
            events: 1,
        });

        brake.pass().await.report(key(7), true);
        brake.pass().await.report(key(7), true);
        time::advance(Duration::from_secs(61)).await;
        brake.pass().await.report(key(7), true);
        brake.pass().await.report(key(7), false);
        assert!(!brake.is_open());
        brake.pass().await.report(key(7), true);
        brake.pass().await.report(key(7), true);
        assert!(brake.is_open());

        for left in [true, true, false] {
            brake.pass().await.report(key(7), false);
            assert_eq!(brake.is_open(), left);
        }
    }
}
