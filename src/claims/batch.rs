//! Sends the items of many callers to the store together.
//!
//! What comes while a statement is under way waits for it and goes out with the next, up to [`ITEMS`] at a time; there
//! is no timer. An item that finds nothing under way goes out at once, with those whose callers are about to send too.
//!
//! One item never fails its neighbours: when the store refuses a batch, or another writer is in its way, its items are
//! sent again one by one. A batch whose answer is lost is `Unknown` for each of its members.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use prometheus::Histogram;
use tokio::{runtime::Handle, sync::oneshot, task::yield_now};
use tokio_util::task::TaskTracker;

use crate::{
    claim::{ClaimRef, Key},
    metrics::Metrics,
    store::{ClaimTable, Entered, Entry, Guard, Seen, StoreError, Swap, watch::StoreWatch},
};

/// Items of one batch: 128 share a commit, and nearly its whole cost.
const ITEMS: usize = 128;
/// Batches of one kind under way. While one is at the disk, the next is on its way.
const UNDER_WAY: usize = 2;

/// A statement under way.
type Sending<'a, A> = BoxFuture<'a, Result<Vec<A>, StoreError>>;
/// What a caller waits for.
type Awaited<A> = oneshot::Receiver<Result<A, StoreError>>;
/// Items that go out together, and their place among the statements under way.
type Batch<I, A> = (Vec<Waiting<I, A>>, Place<I, A>);

/// One operation of the table, on items `I` with answers `A`.
pub(super) struct Operation<I, A> {
    /// In metrics.
    name: &'static str,
    key: fn(&I) -> Key,
    send: for<'a> fn(&'a dyn ClaimTable, &'a [I]) -> Sending<'a, A>,
    /// Whether the item is a statement of its own.
    goes_alone: fn(&I) -> bool,
    /// Whether the answer holds although the item had neighbours: a row that was locked may have been passed over.
    is_final: fn(&A) -> bool,
}

/// [`ClaimTable::enter`]
pub(super) const ENTER: Operation<Entry, Entered> = Operation {
    name: "enter",
    key: |entry| entry.intent.key(),
    send: |table, entries| table.enter(entries),
    goes_alone: |_| false,
    is_final: |_| true,
};

/// [`ClaimTable::swap`]. A rider may be as large as an event; rows are inserted and put back too seldom to be worth a batch.
pub(super) const SWAP: Operation<Swap, bool> = Operation {
    name: "swap",
    key: |swap| swap.event.key,
    send: |table, swaps| table.swap(swaps),
    goes_alone: |swap| swap.rider.is_some() || swap.guard == Guard::Absent,
    is_final: |written| *written,
};

/// [`ClaimTable::complete`]
pub(super) const COMPLETE: Operation<ClaimRef, bool> = Operation {
    name: "complete",
    key: |claim| claim.key,
    send: |table, claims| table.complete(claims),
    goes_alone: |_| false,
    is_final: |completed| *completed,
};

/// [`ClaimTable::read`]
pub(super) const READ: Operation<Key, Option<Seen>> = Operation {
    name: "read",
    key: |key| *key,
    send: |table, keys| table.read(keys),
    goes_alone: |_| false,
    is_final: |_| true,
};

/// What goes out.
pub(super) trait Item: Clone + Send + Sync + 'static {}
impl<T: Clone + Send + Sync + 'static> Item for T {}

/// What comes back.
pub(super) trait Answer: Send + 'static {}
impl<T: Send + 'static> Answer for T {}

/// Sends one operation's items.
pub(super) struct Batches<I: Item, A: Answer>(Arc<Shared<I, A>>);

struct Shared<I: Item, A: Answer> {
    operation: Operation<I, A>,
    table: Arc<dyn ClaimTable>,
    watch: Arc<StoreWatch>,
    items: Histogram,
    tasks: TaskTracker,
    line: Mutex<Line<I, A>>,
}

/// What waits, and how much is under way. Whenever something waits, something is under way that will take it along.
struct Line<I, A> {
    waiting: VecDeque<Waiting<I, A>>,
    under_way: usize,
}

struct Waiting<I, A> {
    item: I,
    caller: oneshot::Sender<Result<A, StoreError>>,
}

/// The caller's statement went down with the task that sent it.
#[derive(Debug, thiserror::Error)]
#[error("the batch was abandoned")]
struct Abandoned;

/// The store's answer does not fit what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{answers} answers to {items} items")]
struct Miscounted {
    items: usize,
    answers: usize,
}

impl<I: Item, A: Answer> Batches<I, A> {
    pub(super) fn new(
        operation: Operation<I, A>,
        table: &Arc<dyn ClaimTable>,
        watch: &Arc<StoreWatch>,
        metrics: &Metrics,
    ) -> Self {
        let (table, watch) = (Arc::clone(table), Arc::clone(watch));
        let items = metrics.db_batch_items.with_label_values(&[operation.name]);
        let line = Mutex::new(Line { waiting: VecDeque::new(), under_way: 0 });
        Self(Arc::new(Shared { operation, table, watch, items, tasks: TaskTracker::new(), line }))
    }

    /// Sends the item, with others if there are any. A caller that goes away while it waits takes its item along, if
    /// it was not sent yet.
    pub(super) async fn send(&self, item: I) -> Result<A, StoreError> {
        let (answer, place) = self.0.join(item);
        if let Some(place) = place {
            // Callers whom one statement answered come back at the same moment, and go out together again.
            yield_now().await;
            drop(place);
        }
        answer.await.unwrap_or_else(|_gone| Err(StoreError::unknown(Abandoned)))
    }

    /// Sends all items, in as few statements as may be; each has its own answer.
    pub(super) async fn send_all(&self, items: impl IntoIterator<Item = I>) -> Vec<Result<A, StoreError>> {
        let mut answers = Vec::new();
        {
            let mut line = self.0.line();
            for item in items {
                let (caller, answer) = oneshot::channel();
                line.waiting.push_back(Waiting { item, caller });
                answers.push(answer);
            }
        }
        while let Some((batch, place)) = self.0.next_batch() {
            self.0.spawn(batch, place);
        }
        let answer = async |answer: oneshot::Receiver<_>| {
            answer.await.unwrap_or_else(|_gone| Err(StoreError::unknown(Abandoned)))
        };
        futures::future::join_all(answers.into_iter().map(answer)).await
    }
}

/// One of the statements that may be under way. When it is over, what waits goes out.
struct Place<I: Item, A: Answer>(Arc<Shared<I, A>>);

impl<I: Item, A: Answer> Drop for Place<I, A> {
    fn drop(&mut self) {
        self.0.line().under_way -= 1;
        if let Some((batch, place)) = self.0.next_batch() {
            self.0.spawn(batch, place);
        }
    }
}

impl<I: Item, A: Answer> Shared<I, A> {
    /// The item waits. Where there is room for a statement, and nobody else waits for one, its caller gets the place.
    fn join(self: &Arc<Self>, item: I) -> (Awaited<A>, Option<Place<I, A>>) {
        let (caller, answer) = oneshot::channel();
        let mut line = self.line();
        let is_first = line.under_way < UNDER_WAY && line.waiting.is_empty();
        line.under_way += usize::from(is_first);
        line.waiting.push_back(Waiting { item, caller });
        (answer, is_first.then(|| Place(Arc::clone(self))))
    }

    /// The batch that may go out now, if any: whoever still waits, each event once.
    fn next_batch(self: &Arc<Self>) -> Option<Batch<I, A>> {
        let mut line = self.line();
        line.waiting.retain(|waiting| !waiting.caller.is_closed());
        if line.under_way >= UNDER_WAY || line.waiting.is_empty() {
            return None;
        }
        let (mut batch, mut left) = (Vec::new(), VecDeque::new());
        let mut keys = HashSet::new();
        while let Some(waiting) = line.waiting.pop_front() {
            if (self.operation.goes_alone)(&waiting.item) && batch.is_empty() {
                batch.push(waiting);
                break;
            }
            if (self.operation.goes_alone)(&waiting.item) || !keys.insert((self.operation.key)(&waiting.item)) {
                left.push_back(waiting);
                continue;
            }
            batch.push(waiting);
            if batch.len() == ITEMS {
                break;
            }
        }
        left.append(&mut line.waiting);
        line.waiting = left;
        line.under_way += 1;
        Some((batch, Place(Arc::clone(self))))
    }

    fn spawn(self: &Arc<Self>, batch: Vec<Waiting<I, A>>, place: Place<I, A>) {
        let shared = Arc::clone(self);
        // Without a runtime the process is at its end: nobody hears the answers any more.
        if let Ok(runtime) = Handle::try_current() {
            self.tasks.spawn_on(async move { shared.send_batch(batch, place).await }, &runtime);
        }
    }

    async fn send_batch(&self, batch: Vec<Waiting<I, A>>, place: Place<I, A>) {
        let items: Vec<_> = batch.iter().map(|waiting| waiting.item.clone()).collect();
        let answer = self.statement(&items).await;
        drop(items);
        // What follows item by item may wait for locks; the next batch does not wait for that.
        drop(place);
        let several = batch.len() > 1;
        let mut alone = Vec::new();
        match answer {
            Ok(answers) => {
                for (waiting, answer) in batch.into_iter().zip(answers) {
                    if several && !(self.operation.is_final)(&answer) {
                        alone.push(waiting);
                    } else {
                        waiting.answer(Ok(answer));
                    }
                }
            }
            Err(StoreError::Refused(_) | StoreError::Contention(_)) if several => alone = batch,
            Err(error) => batch.into_iter().for_each(|waiting| waiting.answer(Err(error.clone()))),
        }
        self.send_singly(alone).await;
    }

    /// One after the other. When one meets a store that does not answer, or that is contended, the rest is told so
    /// without being sent: each of them would wait for the same.
    async fn send_singly(&self, waiting: Vec<Waiting<I, A>>) {
        let mut trouble: Option<StoreError> = None;
        for one in waiting {
            let answer = match &trouble {
                Some(error) => Err(error.clone()),
                None => self.send_one(one.item.clone()).await,
            };
            if let Err(error @ (StoreError::Unknown(_) | StoreError::Contention(_))) = &answer {
                trouble = Some(error.clone());
            }
            one.answer(answer);
        }
    }

    async fn send_one(&self, item: I) -> Result<A, StoreError> {
        let mut answers = self.statement(&[item]).await?;
        answers.pop().ok_or_else(|| StoreError::unknown(Miscounted { items: 1, answers: 0 }))
    }

    async fn statement(&self, items: &[I]) -> Result<Vec<A>, StoreError> {
        #[expect(clippy::cast_precision_loss, reason = "at most 128")]
        self.items.observe(items.len() as f64);
        let answer = (self.operation.send)(&*self.table, items).await.and_then(|answers| {
            let miscounted = Miscounted { items: items.len(), answers: answers.len() };
            if answers.len() == items.len() { Ok(answers) } else { Err(StoreError::unknown(miscounted)) }
        });
        self.watch.statement(items.iter().map(self.operation.key), &answer);
        answer
    }

    fn line(&self) -> MutexGuard<'_, Line<I, A>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I, A> Waiting<I, A> {
    /// A caller that went away meanwhile hears nothing.
    fn answer(self, answer: Result<A, StoreError>) {
        let _ = self.caller.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use tokio::{sync::Semaphore, task::JoinSet};
    use uuid::Uuid;

    use super::*;
    use crate::{
        claim::{ClaimRef, Nonce},
        store::Cause,
    };

    type Kind = fn(Cause) -> StoreError;

    /// Answers completions as it is told, each when it is let through.
    #[derive(Debug)]
    struct Scripted {
        sent: Mutex<Vec<Vec<u128>>>,
        let_through: Semaphore,
        /// Fails every statement that such an item is part of.
        fails: Option<(u128, Kind)>,
        /// Passed over unless it is alone.
        locked: Option<u128>,
    }

    #[async_trait]
    impl ClaimTable for Scripted {
        async fn complete(&self, claims: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
            let numbers: Vec<_> = claims.iter().map(|claim| claim.key.as_uuid().as_u128()).collect();
            self.sent.lock().unwrap().push(numbers.clone());
            self.let_through.acquire().await.unwrap().forget();
            if let Some((_, fails)) = self.fails.filter(|(number, _)| numbers.contains(number)) {
                return Err(fails(Arc::new(std::io::Error::other("scripted"))));
            }
            Ok(numbers.iter().map(|number| numbers.len() == 1 || self.locked != Some(*number)).collect())
        }

        async fn enter(&self, _: &[Entry]) -> Result<Vec<Entered>, StoreError> {
            unreachable!("completions only")
        }

        async fn swap(&self, _: &[Swap]) -> Result<Vec<bool>, StoreError> {
            unreachable!("completions only")
        }

        async fn renew(&self, _: &[ClaimRef]) -> Result<Vec<bool>, StoreError> {
            unreachable!("completions only")
        }

        async fn read(&self, _: &[Key]) -> Result<Vec<Option<Seen>>, StoreError> {
            unreachable!("completions only")
        }
    }

    struct Setup {
        table: Arc<Scripted>,
        batches: Arc<Batches<ClaimRef, bool>>,
        metrics: Metrics,
        callers: JoinSet<(u128, Result<bool, StoreError>)>,
    }

    impl Setup {
        fn new(change: impl FnOnce(&mut Scripted)) -> Self {
            let mut table =
                Scripted { sent: Mutex::default(), let_through: Semaphore::new(0), fails: None, locked: None };
            change(&mut table);
            let (table, metrics) = (Arc::new(table), Metrics::new().unwrap());
            let watch = StoreWatch::new(metrics.clone());
            let batches = Arc::new(Batches::new(COMPLETE, &(Arc::<Scripted>::clone(&table) as _), &watch, &metrics));
            Self { table, batches, metrics, callers: JoinSet::new() }
        }

        /// Two statements that are under way until they are let through.
        async fn busy(change: impl FnOnce(&mut Scripted)) -> Self {
            let mut setup = Self::new(change);
            setup.send([1_001, 1_002]).await;
            assert_eq!(setup.sent(), [[1_001], [1_002]]);
            setup
        }

        async fn send(&mut self, numbers: impl IntoIterator<Item = u128>) {
            for number in numbers {
                let batches = Arc::clone(&self.batches);
                let claim = ClaimRef { key: Key::from(Uuid::from_u128(number)), nonce: Nonce::random() };
                self.callers.spawn(async move { (number, batches.send(claim).await) });
                settle().await;
            }
        }

        /// Lets every statement through; returns who was answered otherwise than "completed".
        async fn finish(mut self) -> (Vec<Vec<u128>>, Vec<(u128, &'static str)>, Metrics) {
            self.table.let_through.add_permits(1_000);
            let mut others = Vec::new();
            while let Some(answer) = self.callers.join_next().await {
                let (number, answer) = answer.unwrap();
                match answer {
                    Ok(true) => {}
                    Ok(false) => others.push((number, "false")),
                    Err(error) => others.push((number, error.label())),
                }
            }
            others.sort_unstable();
            (self.sent(), others, self.metrics)
        }

        fn sent(&self) -> Vec<Vec<u128>> {
            self.table.sent.lock().unwrap().clone()
        }
    }

    /// Lets every task run until it waits for something.
    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_comes_meanwhile_shares_the_next_statement() {
        let mut setup = Setup::busy(|_| ()).await;

        setup.send(1..=130).await;
        let (sent, others, metrics) = setup.finish().await;

        assert_eq!(sent[2], (1..=128).collect::<Vec<_>>());
        assert_eq!((sent[3].clone(), others), (vec![129, 130], vec![]));
        assert_eq!(metrics.db_batch_items.with_label_values(&["complete"]).get_sample_count(), 4);
    }

    #[tokio::test]
    async fn an_event_is_in_a_batch_once() {
        let mut setup = Setup::busy(|_| ()).await;

        setup.send([1, 2, 1, 3]).await;
        let (sent, others, _) = setup.finish().await;

        assert_eq!((&sent[2..], others), (&[vec![1, 2, 3], vec![1]][..], vec![]));
    }

    #[tokio::test]
    async fn a_row_that_was_passed_over_is_asked_for_alone() {
        let mut setup = Setup::busy(|table| table.locked = Some(2)).await;

        setup.send(1..=3).await;
        let (sent, others, _) = setup.finish().await;

        assert_eq!((&sent[2..], others), (&[vec![1, 2, 3], vec![2]][..], vec![]));
    }

    #[tokio::test]
    async fn one_bad_item_does_not_fail_its_neighbours() {
        let mut setup = Setup::busy(|table| table.fails = Some((2, StoreError::Refused))).await;

        setup.send(1..=3).await;
        let (sent, others, metrics) = setup.finish().await;

        assert_eq!(&sent[2..], [vec![1, 2, 3], vec![1], vec![2], vec![3]]);
        assert_eq!(others, [(2, "refused")]);
        assert_eq!(metrics.db_errors.with_label_values(&["refused"]).get(), 2);
    }

    #[tokio::test]
    async fn a_lost_answer_is_unknown_for_each_and_one_failure() {
        let mut setup = Setup::busy(|table| table.fails = Some((2, StoreError::Unknown))).await;

        setup.send(1..=3).await;
        let (sent, others, metrics) = setup.finish().await;

        assert_eq!((sent.len(), others), (3, vec![(1, "unknown"), (2, "unknown"), (3, "unknown")]));
        assert_eq!(metrics.db_errors.with_label_values(&["unknown"]).get(), 1);
    }

    #[tokio::test]
    async fn after_contention_the_rest_is_not_sent_into_it() {
        let mut setup = Setup::busy(|table| table.fails = Some((2, StoreError::Contention))).await;

        setup.send(1..=40).await;
        let (sent, others, metrics) = setup.finish().await;

        assert_eq!((sent.len(), others.len()), (5, 39), "the batch, 1 and 2");
        assert_eq!(metrics.db_errors.with_label_values(&["contention"]).get(), 2);
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_takes_its_item_along() {
        let mut setup = Setup::busy(|_| ()).await;
        setup.send([1]).await;
        let batches = Arc::clone(&setup.batches);
        let gone = ClaimRef { key: Key::from(Uuid::from_u128(2)), nonce: Nonce::random() };
        {
            let mut waiting = std::pin::pin!(batches.send(gone));
            assert!(futures::poll!(&mut waiting).is_pending());
        }
        setup.send([3]).await;

        let (sent, others, _) = setup.finish().await;

        assert_eq!((&sent[2..], others), (&[vec![1, 3]][..], vec![]));
    }

    #[tokio::test]
    async fn a_sender_that_goes_away_leaves_nobody_waiting() {
        let mut setup = Setup::new(|_| ());
        let batches = Arc::clone(&setup.batches);
        let sender =
            |number| batches.send(ClaimRef { key: Key::from(Uuid::from_u128(number)), nonce: Nonce::random() });
        {
            let (mut one, mut two) = (std::pin::pin!(sender(1)), std::pin::pin!(sender(2)));
            assert!(futures::poll!(&mut one).is_pending() && futures::poll!(&mut two).is_pending());
            setup.send([3]).await;
            assert_eq!(setup.sent(), [[]; 0], "all wait for the first, who is about to send");
        }

        let (sent, others, _) = setup.finish().await;

        assert!(sent.concat().contains(&3), "{sent:?}");
        assert_eq!(others, []);
    }

    #[tokio::test(start_paused = true)]
    async fn asking_for_many_at_once_fills_statements() {
        let setup = Setup::new(|table| table.let_through = Semaphore::new(1_000));
        let claims = (0..300).map(|n| ClaimRef { key: Key::from(Uuid::from_u128(n)), nonce: Nonce::random() });

        let answers = tokio::time::timeout(Duration::from_secs(1), setup.batches.send_all(claims)).await.unwrap();

        assert_eq!((answers.len(), setup.sent().len()), (300, 3));
    }
}
