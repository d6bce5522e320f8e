//! Whether the process lives and whether it may get work, kept as flags: reading them never waits.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{Json, extract::State, http::StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::{self, Instant};

/// How often the event loop shows that it runs.
const BEAT_EVERY: Duration = Duration::from_secs(5);
/// Without a beat for so long the process counts as dead. Long: a restart is worse than a pause.
const DEAD_AFTER: Duration = Duration::from_secs(300);

/// What must be well before the process is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The store answers.
    Store,
    /// Its schema fits.
    Schema,
    /// The source's own probe succeeds.
    Source,
    /// No breaker is open.
    Breaker,
    /// No drain was ordered.
    Draining,
}

impl Check {
    /// All of them, in the order shown.
    pub const ALL: [Self; 5] = [Self::Store, Self::Schema, Self::Source, Self::Breaker, Self::Draining];

    const fn name(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Schema => "schema",
            Self::Source => "source",
            Self::Breaker => "breaker",
            Self::Draining => "draining",
        }
    }
}

/// The flags. Clones share them.
#[derive(Debug, Clone)]
pub struct Health(Arc<Flags>);

#[derive(Debug)]
struct Flags {
    born: Instant,
    /// Milliseconds from `born` to the last beat.
    beat: AtomicU64,
    task_died: AtomicBool,
    checks: [AtomicBool; 5],
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// Alive, and not ready: store, schema and source must show first that they are well.
    #[must_use]
    pub fn new() -> Self {
        let well = |check| matches!(check, Check::Breaker | Check::Draining);
        Self(Arc::new(Flags {
            born: Instant::now(),
            beat: AtomicU64::new(0),
            task_died: AtomicBool::new(false),
            checks: Check::ALL.map(|check| AtomicBool::new(well(check))),
        }))
    }

    /// Says whether one check is well.
    pub fn set(&self, check: Check, well: bool) {
        self.0.checks[check as usize].store(well, Ordering::Relaxed);
    }

    /// Says that a task which must run as long as the process has ended. For good: only a restart mends it.
    pub fn task_died(&self) {
        self.0.task_died.store(true, Ordering::Relaxed);
    }

    /// Beats until dropped. Run it on the runtime that is watched.
    pub async fn heartbeat(&self) -> Infallible {
        let mut every = time::interval(BEAT_EVERY);
        loop {
            every.tick().await;
            self.beat();
        }
    }

    /// The event loop runs.
    pub fn beat(&self) {
        let since_birth = u64::try_from(self.0.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.beat.store(since_birth, Ordering::Relaxed);
    }

    /// True while the event loop beats and no task is dead.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.beats() && !self.0.task_died.load(Ordering::Relaxed)
    }

    /// True when every check is well.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        Check::ALL.into_iter().all(|check| self.is_well(check))
    }

    fn beats(&self) -> bool {
        let last = Duration::from_millis(self.0.beat.load(Ordering::Relaxed));
        self.0.born.elapsed().saturating_sub(last) < DEAD_AFTER
    }

    fn is_well(&self, check: Check) -> bool {
        self.0.checks[check as usize].load(Ordering::Relaxed)
    }
}

/// `/healthz/live`
pub(super) async fn live(State(health): State<Health>) -> (StatusCode, Json<Value>) {
    let tasks = !health.0.task_died.load(Ordering::Relaxed);
    answer("live", [("event_loop", health.beats()), ("tasks", tasks)])
}

/// `/healthz/ready`
pub(super) async fn ready(State(health): State<Health>) -> (StatusCode, Json<Value>) {
    answer("ready", Check::ALL.map(|check| (check.name(), health.is_well(check))))
}

/// `/healthz/started`: there is an answer, so the configuration was read and the listener is up.
pub(super) async fn started() -> (StatusCode, Json<Value>) {
    answer("started", [("configuration", true), ("listener", true)])
}

/// One verdict per name; no hosts, no addresses, no error texts.
fn answer<const N: usize>(status: &str, checks: [(&'static str, bool); N]) -> (StatusCode, Json<Value>) {
    let well = checks.iter().all(|(_, well)| *well);
    let verdict = |(name, well): (&str, bool)| (name.to_owned(), Value::from(if well { "ok" } else { "failing" }));
    let checks: Map<_, _> = checks.into_iter().map(verdict).collect();
    let code = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let status = if well { status.to_owned() } else { format!("not_{status}") };
    (code, Json(json!({"status": status, "checks": checks})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_missed_beat_is_forgiven_and_five_minutes_without_one_are_not() {
        let health = Health::new();
        health.beat();

        time::advance(Duration::from_secs(299)).await;
        assert!(health.is_live());

        time::advance(Duration::from_secs(2)).await;
        assert!(!health.is_live());

        health.beat();
        assert!(health.is_live());
    }

    #[tokio::test]
    async fn a_dead_task_is_death() {
        let health = Health::new();

        health.task_died();

        assert!(!health.is_live());
    }

    #[tokio::test]
    async fn readiness_needs_every_check_and_names_the_failing_ones() {
        let health = Health::new();
        for check in [Check::Store, Check::Schema, Check::Source] {
            assert!(!health.is_ready());
            health.set(check, true);
        }
        assert!(health.is_ready());

        health.set(Check::Draining, false);

        let (code, Json(body)) = ready(State(health)).await;
        assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
        let expected = json!({"status": "not_ready", "checks": {
            "store": "ok", "schema": "ok", "source": "ok", "breaker": "ok", "draining": "failing"}});
        assert_eq!(body, expected);
    }
}
