//! A store that fails on cue, in front of a real one.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    claim::{ClaimRef, Key},
    claims::Tables,
    store::{ClaimTable, Counts, Entered, Entry, Readiness, Seen, StoreError, Swap, Upkeep},
};

#[derive(Debug, thiserror::Error)]
#[error("injected fault")]
struct Injected;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the call goes through. For the calls before the one that is to fail.
    None,
    /// The answer is `Unknown`; nothing was written.
    BeforeWrite,
    /// It was written; the answer is `Unknown`.
    AfterWrite,
    /// The answer is `Unknown`; it is written when [`FaultStore::deliver_late`] says so. A late read never arrives.
    Late,
    /// The answer is `Contention`; nothing was written.
    Contention,
    /// The answer is `Refused`; nothing was written.
    Refused,
    /// The call goes through after this time.
    Slow(Duration),
}

/// The operations of a claim table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are named as they are there")]
pub enum Method {
    Enter,
    Swap,
    Complete,
    Renew,
    Read,
}

/// A write that is still under way.
#[derive(Debug)]
enum Late {
    Enter(Vec<Entry>),
    Swap(Vec<Swap>),
    Complete(Vec<ClaimRef>),
    Renew(Vec<ClaimRef>),
}

#[derive(Debug, Default)]
struct Script {
    faults: HashMap<Method, VecDeque<Fault>>,
    calls: HashMap<Method, usize>,
    late: Vec<Late>,
}

/// Stands in front of a store. Each operation has a queue of faults, one for each of its next calls; when it is empty,
/// calls go through.
#[derive(Debug)]
pub struct FaultStore {
    tables: Tables,
    down: AtomicBool,
    script: Mutex<Script>,
}

impl FaultStore {
    /// A store without faults so far.
    #[must_use]
    pub fn new(tables: Tables) -> Self {
        Self { tables, down: AtomicBool::new(false), script: Mutex::default() }
    }

    /// The store as others use it. Quarantine rows are read and closed without faults.
    #[must_use]
    pub fn tables(self: &Arc<Self>) -> Tables {
        let quarantine = Arc::clone(&self.tables.quarantine);
        Tables { claims: Arc::<Self>::clone(self), quarantine, upkeep: Arc::<Self>::clone(self) }
    }

    /// The next call of `method` without a fault of its own meets this one.
    #[must_use]
    pub fn on(self, method: Method, fault: Fault) -> Self {
        self.push(method, fault);
        self
    }

    /// The same while the store is in use.
    pub fn push(&self, method: Method, fault: Fault) {
        self.script().faults.entry(method).or_default().push_back(fault);
    }

    /// An outage: while it lasts every call, upkeep included, is `Unknown` and writes nothing; queues stand still.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Calls of `method` so far, failed ones included.
    #[must_use]
    pub fn calls(&self, method: Method) -> usize {
        self.script().calls.get(&method).copied().unwrap_or_default()
    }

    /// The late writes arrive, in the order they were sent; nobody hears their answers.
    pub async fn deliver_late(&self) {
        let late = std::mem::take(&mut self.script().late);
        let table = &self.tables.claims;
        for write in late {
            match write {
                Late::Enter(entries) => drop(table.enter(&entries).await),
                Late::Swap(swaps) => drop(table.swap(&swaps).await),
                Late::Complete(claims) => drop(table.complete(&claims).await),
                Late::Renew(claims) => drop(table.renew(&claims).await),
            }
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of this call: an error without a call, or what is done with the answer.
    async fn meet(&self, method: Method, late: Option<Late>) -> Result<After, StoreError> {
        let fault = {
            let mut script = self.script();
            *script.calls.entry(method).or_default() += 1;
            if self.down.load(Ordering::SeqCst) {
                return Err(unknown());
            }
            let fault = script.faults.get_mut(&method).and_then(VecDeque::pop_front).unwrap_or(Fault::None);
            if fault == Fault::Late {
                script.late.extend(late);
            }
            fault
        };
        match fault {
            Fault::None => Ok(After::Answer),
            Fault::AfterWrite => Ok(After::Unknown),
            Fault::Slow(span) => {
                tokio::time::sleep(span).await;
                Ok(After::Answer)
            }
            Fault::BeforeWrite | Fault::Late => Err(unknown()),
            Fault::Contention => Err(StoreError::contention(Injected)),
            Fault::Refused => Err(StoreError::refused(Injected)),
        }
    }

    /// The upkeep behind it, unless there is an outage.
    fn reach_upkeep(&self) -> Result<&dyn Upkeep, StoreError> {
        if self.down.load(Ordering::SeqCst) { Err(unknown()) } else { Ok(&*self.tables.upkeep) }
    }
}

fn unknown() -> StoreError {
    StoreError::unknown(Injected)
}

/// What is done with the store's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Answer,
    Unknown,
}

impl After {
    fn pass<T>(self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        match self {
            Self::Answer => answer,
            Self::Unknown => Err(unknown()),
        }
    }
}

#[async_trait]
impl ClaimTable for FaultStore {
    async fn enter(&self, entries: &[Entry]) -> Result<Vec<Entered>, StoreError> {
        let after = self.meet(Method::Enter, Some(Late::Enter(entries.to_vec()))).await?;
        after.pass(self.tables.claims.enter(entries).await)
    }

    async fn swap(&self, swaps: &[Swap]) -> Result<Vec<bool>, StoreError> {
        let after = self.meet(Method::Swap, Some(Late::Swap(swaps.to_vec()))).await?;
        after.pass(self.tables.claims.swap(swaps).await)
    }

    async fn complete(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let after = self.meet(Method::Complete, Some(Late::Complete(claims.to_vec()))).await?;
        after.pass(self.tables.claims.complete(claims).await)
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
        let after = self.meet(Method::Renew, Some(Late::Renew(claims.to_vec()))).await?;
        after.pass(self.tables.claims.renew(claims).await)
    }

    async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Seen>>, StoreError> {
        let after = self.meet(Method::Read, None).await?;
        after.pass(self.tables.claims.read(keys).await)
    }
}

#[async_trait]
impl Upkeep for FaultStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        self.reach_upkeep()?.prepare().await
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        self.reach_upkeep()?.expire(quarantine_retention).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.reach_upkeep()?.counts().await
    }
}
