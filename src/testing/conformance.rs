//! One suite over every store: the claims in it, and the guards of its writes.
//!
//! A store's tests implement [`Bench`] and call [`run`]. Every case claims keys of its own, so that cases may run at
//! the same time, in any order, on one database; only those marked `alone` look at or delete what others wrote.
//! Time is let pass by the bench: a store with its own clock waits for short leases, the memory store moves a paused
//! clock. No case asserts that something happened fast enough: what must be alive has a long lease, what must be stale
//! a short one.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a suite is test code")]

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::{FutureExt, StreamExt, future::LocalBoxFuture, stream};

use crate::{
    claim::Lease,
    claims::{Claims, Tables},
    clock::Clock,
    metrics::Metrics,
    store::{ClaimTable, Quarantine, Upkeep},
};
pub use subject::Subject;

mod answers;
mod crashes;
mod guards;
mod hostile;
mod operators;
mod processes;
mod races;
mod retention;
mod subject;
mod writes;

/// How many processes may use a store. The only exceptions a store may claim from the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// It dies with its process: no case with a crash or a second process.
    OneProcess,
    /// One after the other: no case with two processes at once.
    Successors,
    /// Any number at once: no exception.
    ManyProcesses,
}

/// What a process opens its store with.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The lease.
    pub lease: Lease,
    /// How long finished events are remembered.
    pub retention: Duration,
}

/// One process's view of a store.
#[derive(Debug, Clone)]
pub struct Process {
    /// As worker, operators and upkeep use it.
    pub claims: Arc<Claims>,
    /// The rows themselves.
    pub table: Arc<dyn ClaimTable>,
}

impl Process {
    /// A process that has opened `store`.
    ///
    /// # Panics
    /// Never: fresh metrics have no names in common.
    pub fn of<S>(store: S, settings: Settings, clock: Arc<dyn Clock>) -> Self
    where
        S: ClaimTable + Quarantine + Upkeep + 'static,
    {
        let tables = Tables::of(store);
        let table = Arc::clone(&tables.claims);
        let metrics = Metrics::new().expect("fresh collectors have no names in common");
        Self { claims: Arc::new(Claims::new(tables, settings.lease, clock, metrics)), table }
    }
}

/// Where one case runs: a database (which other cases may use too), a file, nothing.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens the store as a new process would, ready to use. With `Reach::Successors` the suite has dropped the
    /// earlier process before it asks for the next.
    async fn process(&self, settings: Settings) -> Process;

    /// Lets time pass, for the store and its leases.
    async fn pass(&self, span: Duration);
}

/// A store under test.
#[async_trait]
pub trait Bench: Send + Sync {
    /// What the store promises about processes.
    fn reach(&self) -> Reach;

    /// A lease that is waited for. Long enough that the client timeout derived from it (a sixth) is not met by chance.
    fn short_lease(&self) -> Duration;

    /// The clock its stores are given.
    fn clock(&self) -> Arc<dyn Clock>;

    /// A place for one case.
    async fn place(&self) -> Box<dyn Place>;
}

/// A step of a case: gives the subject back.
type Done = LocalBoxFuture<'static, Subject>;

/// A sentence that must hold for every store.
#[derive(Clone, Copy)]
pub struct Case {
    /// The sentence.
    pub name: &'static str,
    /// What it needs of the store.
    pub needs: Reach,
    /// It looks at or deletes what others wrote: nothing else may use the place meanwhile.
    pub alone: bool,
    lease: Span,
    retention: Duration,
    run: fn(Subject) -> LocalBoxFuture<'static, ()>,
}

#[derive(Debug, Clone, Copy)]
enum Span {
    /// Never ends within a case.
    Long,
    /// Waited for.
    Short,
    /// Exactly this.
    Of(Duration),
}

const DAY: Duration = Duration::from_secs(86_400);

impl Case {
    const fn new(name: &'static str, run: fn(Subject) -> LocalBoxFuture<'static, ()>) -> Self {
        Self { name, needs: Reach::OneProcess, alone: false, lease: Span::Long, retention: DAY.saturating_mul(10), run }
    }

    /// With a lease that the case waits for.
    const fn short(mut self) -> Self {
        self.lease = Span::Short;
        self
    }

    const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Span::Of(lease);
        self
    }

    const fn needs(mut self, reach: Reach) -> Self {
        self.needs = reach;
        self
    }

    /// Alone, with finished events forgotten after `retention`.
    const fn alone(mut self, retention: Duration) -> Self {
        self.alone = true;
        self.retention = retention;
        self
    }

    /// Runs it on a place of `bench`. Panics where the sentence does not hold.
    pub async fn run(&self, bench: &dyn Bench) {
        let lease = match self.lease {
            Span::Long => Duration::from_secs(600),
            Span::Short => bench.short_lease(),
            Span::Of(lease) => lease,
        };
        let settings = Settings { lease: Lease::new(lease), retention: self.retention };
        let subject = Subject::open(bench.place().await, settings, bench.clock()).await;
        (self.run)(subject).await;
    }
}

/// Every case, whatever it needs.
#[must_use]
pub fn cases() -> Vec<Case> {
    [
        answers::cases(),
        writes::cases(),
        crashes::cases(),
        guards::cases(),
        races::cases(),
        operators::cases(),
        hostile::cases(),
        processes::cases(),
        retention::cases(),
    ]
    .concat()
}

/// Runs every case the store does not except itself from, `at_once` at a time, those that need to be alone at the end.
///
/// # Panics
/// When a case failed, after all have run, naming each with its message.
pub async fn run(bench: &dyn Bench, at_once: usize) {
    let cases: Vec<_> = cases().into_iter().filter(|case| case.needs <= bench.reach()).collect();
    let (alone, together): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.alone);
    let attempt = async |case: Case| {
        let outcome = AssertUnwindSafe(case.run(bench)).catch_unwind().await;
        outcome.err().map(|panic| format!("- {}: {}", case.name, message(&*panic)))
    };
    let mut failed: Vec<_> = stream::iter(together).map(attempt).buffer_unordered(at_once).collect().await;
    for case in alone {
        failed.push(attempt(case).await);
    }
    let failed: Vec<_> = failed.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked")
}
