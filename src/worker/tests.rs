//! The engine on the memory store, with paused time: each test feeds deliveries and reads calls and answers.

mod answers;
mod failures;
mod measures;
mod owners;
mod stopping;
mod store;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{self, Instant},
};

use super::{Config, DrainTimeout, Drained, Parts, Worker};
use crate::{
    claim::{Key, Lease, State},
    claims::{Claims, Tables},
    clock::Clock,
    event::{RawEvent, decode},
    metrics::{Metrics, tests::undeclared},
    retry::{self, Backoff},
    rule::{Action, Match, OnUnknown, Pattern, Rule, Rules},
    shutdown::Shutdown,
    store::{ClaimTable, memory::MemoryStore},
    testing::{
        clock::TestClock,
        faults::{Fault, FaultStore, Method},
        handler::{Act, ScriptedHandler},
        source::{AckLog, FedSource, Feed},
    },
};

const LEASE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(30);
const SCOPE: &str = "projects/p/subscriptions/s";

/// A running worker with everything around it.
struct Bench {
    feed: Feed,
    log: AckLog,
    handler: ScriptedHandler,
    store: Arc<FaultStore>,
    memory: Arc<MemoryStore>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    shutdown: Shutdown,
    running: JoinHandle<Drained>,
    _labels: Labels,
}

/// Fails the test that used a label's value that nobody declared.
struct Labels(Metrics);

impl Drop for Labels {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(undeclared(&self.0), BTreeSet::new());
        }
    }
}

struct Setup {
    acts: Vec<Act>,
    rule: Rule,
    on_unknown: OnUnknown,
    concurrency: usize,
    parking: usize,
    faults: fn(FaultStore) -> FaultStore,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            acts: vec![],
            rule: Rule { matches: never(), ..Rule::default() },
            on_unknown: OnUnknown::Rerun,
            concurrency: 4,
            parking: 0,
            faults: |store| store,
        }
    }
}

fn never() -> Match {
    Match { event_type: Some(Pattern::One("NO_SUCH_TYPE".into())), ..Match::default() }
}

impl Setup {
    fn acts(acts: impl IntoIterator<Item = Act>) -> Self {
        Self { acts: acts.into_iter().collect(), ..Self::default() }
    }

    fn strict(self) -> Self {
        Self { on_unknown: OnUnknown::Quarantine, ..self }
    }

    fn start(self) -> Bench {
        let clock: Arc<dyn Clock> = Arc::new(TestClock::starting_at(start_of_time()));
        let retention = Duration::from_secs(10 * 86_400);
        let memory = Arc::new(MemoryStore::new(Lease::new(LEASE), retention, Arc::clone(&clock)));
        self.start_on(memory, clock)
    }

    /// A process on a store that another one used before.
    fn start_on(self, memory: Arc<MemoryStore>, clock: Arc<dyn Clock>) -> Bench {
        let lease = Lease::new(LEASE);
        let store = Arc::new((self.faults)(FaultStore::new(Tables::shared(&memory))));
        let handler = ScriptedHandler::new(self.acts);
        let metrics = Metrics::new().unwrap();
        let claims = Arc::new(Claims::new(store.tables(), lease, Arc::clone(&clock), metrics.clone()));
        let retry = retry::Config { max_failures: 3, ..retry::Config::default() };
        let shutdown = Shutdown::new();
        let parts = Parts {
            claims,
            handler: Arc::new(handler.clone()),
            rules: Rules::new(vec![self.rule], TIMEOUT, self.on_unknown, &retry),
            config: Config {
                concurrency: self.concurrency,
                parking: self.parking,
                drain_timeout: DrainTimeout::Auto,
                drain_may_cut: false,
            },
            lease,
            backoff: Backoff::from(&retry),
            scope: SCOPE.into(),
            max_quarantined_per_minute: 60,
            clock: Arc::clone(&clock),
            metrics: metrics.clone(),
            observer: None,
        };
        let (feed, source) = FedSource::new();
        let worker = Worker::new(parts, "fed", shutdown.clone());
        #[expect(clippy::disallowed_methods, reason = "the test awaits the handle")]
        let running = tokio::spawn(async move { worker.run(Box::new(source)).await.unwrap() });
        let _labels = Labels(metrics.clone());
        Bench { feed, log: AckLog::default(), handler, store, memory, metrics, clock, shutdown, running, _labels }
    }
}

fn start_of_time() -> DateTime<Utc> {
    DateTime::from_timestamp(1_780_000_000, 0).unwrap()
}

impl Bench {
    /// Delivers a copy of event `number` with this transport id.
    fn deliver(&self, number: u32, message_id: &str) {
        self.feed.send(self.log.delivery(self.raw(number, message_id))).unwrap();
    }

    fn raw(&self, number: u32, message_id: &str) -> RawEvent {
        let time = (start_of_time() - TimeDelta::seconds(60)).to_rfc3339();
        let event = json!({
            "type": "MESSAGE", "eventTime": time,
            "space": { "name": "spaces/S" }, "user": { "name": "users/1" },
            "message": { "name": format!("spaces/S/messages/{number}") },
        });
        RawEvent {
            data: event.to_string().into(),
            message_id: message_id.into(),
            publish_time: Some(self.clock.now()),
            ..RawEvent::default()
        }
    }

    /// Waits (in paused time) until so many answers were given.
    async fn answers(&self, count: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(3_600);
        while self.log.answers().len() < count {
            assert!(Instant::now() < deadline, "{count} answers expected, got {:?}", self.log.answers());
            time::sleep(Duration::from_millis(10)).await;
        }
        self.log.answers()
    }

    async fn calls(&self, count: usize) -> Vec<(u32, u32)> {
        let deadline = Instant::now() + Duration::from_secs(3_600);
        while self.handler.calls().len() < count {
            assert!(Instant::now() < deadline, "{count} calls expected, got {:?}", self.handler.calls());
            time::sleep(Duration::from_millis(10)).await;
        }
        self.handler.calls().into_iter().map(|(_, epoch, attempt)| (epoch, attempt)).collect()
    }

    async fn state(&self, number: u32) -> Option<(State, u16, String)> {
        let event = decode(&Arc::new(self.raw(number, "m")));
        let row = self.memory.read(&[Key::derive(SCOPE, &event)]).await.unwrap().remove(0)?.row;
        Some((row.state, row.failures, row.note))
    }

    async fn stop(self) -> (Drained, Vec<String>) {
        self.shutdown.stop();
        let drained = self.running.await.unwrap();
        (drained, self.log.answers())
    }
}
