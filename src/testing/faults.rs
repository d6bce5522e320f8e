//! A claim store that fails on cue, in front of a real one.

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
    claim::{Claim, ClaimIntent, ClaimRef, ClaimView, Claimed, Key, Step},
    outcome::Outcome,
    store::{ClaimStore, Counts, Readiness, StoreError, Upkeep},
};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the call goes through. For the calls before the one that is to fail.
    None,
    /// The answer is `Unknown`; nothing was written.
    BeforeWrite,
    /// It was written; the answer is `Unknown`.
    AfterWrite,
    /// The answer is `Unknown`; it is written when [`FaultStore::deliver_late`] says so. A late look or renewal never
    /// arrives.
    Late,
    /// The answer is `ClaimLost`, for a renewal that none was renewed; nothing was written.
    ClaimLost,
    /// The answer is `Contention`; nothing was written.
    Contention,
    /// The answer is `Refused`; nothing was written.
    Refused,
    /// The call goes through after so long.
    Slow(Duration),
}

/// The calls of a claim store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `claim`
    Claim,
    /// `advance`
    Advance,
    /// `renew`
    Renew,
    /// `settle`
    Settle,
    /// `look`
    Look,
}

/// A call that was made, whatever became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `claim`
    Claim(Key),
    /// `advance`
    Advance(Key, Step),
    /// `renew`
    Renew(Vec<Key>),
    /// `settle`
    Settle(Key, Outcome),
    /// `look`
    Look(Vec<Key>),
}

/// A write that is still under way.
#[derive(Debug)]
enum Late {
    Claim(Arc<ClaimIntent>),
    Advance(Claim, Step),
    Settle(ClaimRef, Outcome),
}

#[derive(Debug, Default)]
struct Script {
    faults: HashMap<Method, VecDeque<Fault>>,
    calls: Vec<Call>,
    late: Vec<Late>,
}

/// Stands in front of a store. Each method has a queue of faults, one for each of its next calls; when it is empty,
/// calls go through.
#[derive(Debug)]
pub struct FaultStore {
    store: Arc<dyn ClaimStore>,
    upkeep: Option<Arc<dyn Upkeep>>,
    down: AtomicBool,
    script: Mutex<Script>,
}

#[derive(Debug, thiserror::Error)]
#[error("injected fault")]
struct Injected;

impl FaultStore {
    /// A store without faults so far.
    #[must_use]
    pub fn new(store: Arc<dyn ClaimStore>) -> Self {
        Self { store, upkeep: None, down: AtomicBool::new(false), script: Mutex::default() }
    }

    /// Passes upkeep on to the store's own; without it the store is always ready and counts nothing.
    #[must_use]
    pub fn with_upkeep(mut self, upkeep: Arc<dyn Upkeep>) -> Self {
        self.upkeep = Some(upkeep);
        self
    }

    /// The next call of `claim` without a fault of its own meets this one.
    #[must_use]
    pub fn on_claim(self, fault: Fault) -> Self {
        self.then(Method::Claim, fault)
    }

    /// The next call of `advance` without a fault of its own meets this one.
    #[must_use]
    pub fn on_advance(self, fault: Fault) -> Self {
        self.then(Method::Advance, fault)
    }

    /// The next call of `renew` without a fault of its own meets this one.
    #[must_use]
    pub fn on_renew(self, fault: Fault) -> Self {
        self.then(Method::Renew, fault)
    }

    /// The next call of `settle` without a fault of its own meets this one.
    #[must_use]
    pub fn on_settle(self, fault: Fault) -> Self {
        self.then(Method::Settle, fault)
    }

    /// The next call of `look` without a fault of its own meets this one.
    #[must_use]
    pub fn on_look(self, fault: Fault) -> Self {
        self.then(Method::Look, fault)
    }

    fn then(self, method: Method, fault: Fault) -> Self {
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

    /// Every call so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.script().calls.clone()
    }

    /// What was settled so far, in order, repeated and failed calls included.
    #[must_use]
    pub fn settled(&self) -> Vec<(Key, Outcome)> {
        let settled = |call| match call {
            Call::Settle(key, outcome) => Some((key, outcome)),
            Call::Claim(_) | Call::Advance(..) | Call::Renew(_) | Call::Look(_) => None,
        };
        self.calls().into_iter().filter_map(settled).collect()
    }

    /// The late writes arrive, in the order they were sent; nobody hears their answers.
    pub async fn deliver_late(&self) {
        let late = std::mem::take(&mut self.script().late);
        for write in late {
            match write {
                Late::Claim(intent) => drop(self.store.claim(&intent).await),
                Late::Advance(claim, step) => drop(self.store.advance(&claim, &step).await),
                Late::Settle(claim, outcome) => drop(self.store.settle(&claim, &outcome).await),
            }
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the call down and says what becomes of it: an error without a call, or the fault to apply around it.
    async fn meet(&self, method: Method, call: Call, late: Option<Late>) -> Result<After, StoreError> {
        let fault = {
            let mut script = self.script();
            script.calls.push(call);
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
            Fault::ClaimLost => Err(StoreError::ClaimLost),
            Fault::Contention => Err(StoreError::Contention(Box::new(Injected))),
            Fault::Refused => Err(StoreError::Refused(Box::new(Injected))),
        }
    }

    /// The upkeep behind it, unless there is an outage.
    fn reach_upkeep(&self) -> Result<Option<&dyn Upkeep>, StoreError> {
        if self.down.load(Ordering::SeqCst) { Err(unknown()) } else { Ok(self.upkeep.as_deref()) }
    }
}

fn unknown() -> StoreError {
    StoreError::Unknown(Box::new(Injected))
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
impl ClaimStore for FaultStore {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> Result<Claimed, StoreError> {
        let late = Late::Claim(Arc::clone(intent));
        let after = self.meet(Method::Claim, Call::Claim(intent.key), Some(late)).await?;
        after.pass(self.store.claim(intent).await)
    }

    async fn advance(&self, claim: &Claim, step: &Step) -> Result<(), StoreError> {
        let call = Call::Advance(claim.intent.key, step.clone());
        let late = Late::Advance(claim.clone(), step.clone());
        let after = self.meet(Method::Advance, call, Some(late)).await?;
        after.pass(self.store.advance(claim, step).await)
    }

    async fn renew(&self, claims: &[ClaimRef]) -> Result<Vec<ClaimRef>, StoreError> {
        let call = Call::Renew(claims.iter().map(ClaimRef::key).collect());
        match self.meet(Method::Renew, call, None).await {
            Ok(after) => after.pass(self.store.renew(claims).await),
            Err(StoreError::ClaimLost) => Ok(claims.to_vec()),
            Err(error) => Err(error),
        }
    }

    async fn settle(&self, claim: &ClaimRef, outcome: &Outcome) -> Result<(), StoreError> {
        let call = Call::Settle(claim.key(), outcome.clone());
        let late = Late::Settle(claim.clone(), outcome.clone());
        let after = self.meet(Method::Settle, call, Some(late)).await?;
        after.pass(self.store.settle(claim, outcome).await)
    }

    async fn look(&self, keys: &[Key]) -> Result<Vec<ClaimView>, StoreError> {
        let after = self.meet(Method::Look, Call::Look(keys.to_vec()), None).await?;
        after.pass(self.store.look(keys).await)
    }
}

#[async_trait]
impl Upkeep for FaultStore {
    async fn prepare(&self) -> Result<Readiness, StoreError> {
        match self.reach_upkeep()? {
            Some(upkeep) => upkeep.prepare().await,
            None => Ok(Readiness::Ready),
        }
    }

    async fn expire(&self, quarantine_retention: Duration) -> Result<u64, StoreError> {
        match self.reach_upkeep()? {
            Some(upkeep) => upkeep.expire(quarantine_retention).await,
            None => Ok(0),
        }
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        match self.reach_upkeep()? {
            Some(upkeep) => upkeep.counts().await,
            None => Ok(Counts::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        claim::{Budget, Lease, Nonce, Standing},
        clock::SystemClock,
        event::{EventId, Fingerprint, RawEvent},
        outcome::{Certainty, Note},
        store::memory::MemoryStore,
    };

    fn store() -> FaultStore {
        let (lease, retention) = (Lease::new(Duration::from_secs(60)), Duration::from_secs(864_000));
        FaultStore::new(Arc::new(MemoryStore::new(lease, retention, Arc::new(SystemClock))))
    }

    fn intent() -> Arc<ClaimIntent> {
        let key = uuid::Uuid::new_v4();
        Arc::new(ClaimIntent {
            key: Key::from(key),
            event_id: EventId::new(key.to_string()),
            event_type: "MESSAGE".to_owned(),
            fingerprint: Fingerprint([1; 17]),
            nonce: Nonce::random(),
            strict: false,
            budget: Budget { max_failures: 8, max_lost: 3 },
            timeout: Duration::from_secs(60),
            born: chrono::Utc::now(),
            suspect: false,
            raw: Arc::new(RawEvent::default()),
        })
    }

    async fn standing(store: &FaultStore, intent: &ClaimIntent) -> Standing {
        store.look(&[intent.key]).await.unwrap()[0].standing
    }

    #[tokio::test]
    async fn a_fault_before_the_write_writes_nothing_and_one_after_it_does() {
        let store = store().on_claim(Fault::BeforeWrite).on_claim(Fault::AfterWrite);
        let intent = intent();

        assert!(matches!(store.claim(&intent).await, Err(StoreError::Unknown(_))));
        assert_eq!(standing(&store, &intent).await, Standing::Absent);
        assert!(matches!(store.claim(&intent).await, Err(StoreError::Unknown(_))));
        assert!(matches!(standing(&store, &intent).await, Standing::Wait(_)));
        assert!(matches!(store.claim(&intent).await, Ok(Claimed::Mine(_))));

        assert_eq!(store.calls().iter().filter(|call| **call == Call::Claim(intent.key)).count(), 3);
    }

    #[tokio::test]
    async fn a_late_write_arrives_when_it_is_told_to() {
        let store = store().on_settle(Fault::Late).on_settle(Fault::None).on_settle(Fault::ClaimLost);
        let intent = intent();
        let claim = ClaimRef::unanswered(Arc::clone(&intent));
        assert!(matches!(store.claim(&intent).await, Ok(Claimed::Mine(_))));
        let retry = Outcome::Retry { counts: true, after: None, certainty: Certainty::Over, note: Note::default() };

        assert!(matches!(store.settle(&claim, &Outcome::Done).await, Err(StoreError::Unknown(_))));
        store.settle(&claim, &retry).await.unwrap();
        assert!(matches!(store.settle(&claim, &retry).await, Err(StoreError::ClaimLost)));
        assert_eq!(standing(&store, &intent).await, Standing::Claimable);
        store.deliver_late().await;

        assert_eq!(standing(&store, &intent).await, Standing::Settled);
        assert_eq!(store.settled().len(), 3);
    }

    #[tokio::test]
    async fn an_outage_answers_nothing_and_leaves_the_queues() {
        let store = store().on_renew(Fault::ClaimLost);
        let intent = intent();
        let claim = ClaimRef::unanswered(Arc::clone(&intent));

        store.set_down(true);
        assert!(matches!(store.claim(&intent).await, Err(StoreError::Unknown(_))));
        assert!(matches!(store.renew(std::slice::from_ref(&claim)).await, Err(StoreError::Unknown(_))));
        assert!(store.prepare().await.is_err());
        store.set_down(false);

        assert_eq!(store.prepare().await.unwrap(), Readiness::Ready);
        assert_eq!(store.renew(&[claim]).await.unwrap().len(), 1);
        assert_eq!(standing(&store, &intent).await, Standing::Absent);
    }
}
