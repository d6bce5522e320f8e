//! The engine on the memory store, with paused time: each test feeds deliveries and reads calls and answers.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{self, Instant},
};

use super::{Config, DrainTimeout, Drained, Parts, Worker};
use crate::{
    claim::{Key, Lease, State},
    clock::Clock,
    event::{RawEvent, decode},
    metrics::Metrics,
    retry::{self, Backoff},
    rule::{Action, Match, OnUnknown, Pattern, Rule, Rules},
    shutdown::Shutdown,
    store::{ClaimLog, ClaimStore},
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
    claims: Arc<dyn ClaimLog>,
    metrics: Metrics,
    clock: Arc<dyn Clock>,
    shutdown: Shutdown,
    running: JoinHandle<Drained>,
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
        let lease = Lease::new(LEASE);
        let memory = Arc::new(crate::store::memory::MemoryStore::new(
            lease,
            Duration::from_secs(10 * 86_400),
            Arc::clone(&clock),
        ));
        let store = Arc::new((self.faults)(FaultStore::new(Arc::clone(&memory) as Arc<dyn ClaimStore>)));
        let handler = ScriptedHandler::new(self.acts);
        let metrics = Metrics::new().unwrap();
        let retry = retry::Config { max_failures: 3, ..retry::Config::default() };
        let shutdown = Shutdown::new();
        let parts = Parts {
            store: Arc::clone(&store) as Arc<dyn ClaimStore>,
            upkeep: Arc::clone(&memory) as _,
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
        Bench { feed, log: AckLog::default(), handler, store, claims: memory, metrics, clock, shutdown, running }
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
        let row = self.claims.show(Key::derive(SCOPE, &event)).await.unwrap()?;
        Some((row.state, row.failures, row.note))
    }

    async fn stop(self) -> (Drained, Vec<String>) {
        self.shutdown.stop();
        let drained = self.running.await.unwrap();
        (drained, self.log.answers())
    }
}

#[tokio::test(start_paused = true)]
async fn a_handled_event_is_settled_then_acked() {
    let bench = Setup::default().start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.calls(1).await, [(1, 1)]);
    assert_eq!(bench.state(1).await.unwrap().0, State::Done);
    assert_eq!(bench.stop().await.0, Drained::Clean);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_settled_event_is_acked_without_a_call() {
    let bench = Setup::default().start();
    bench.deliver(1, "m1");
    bench.answers(1).await;

    bench.deliver(1, "m2");

    assert_eq!(bench.answers(2).await, ["ack m1", "ack m2"]);
    assert_eq!(bench.handler.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn copies_that_arrive_while_it_runs_get_one_answer_newest_first() {
    let bench = Setup::acts([Act::SucceedAfter(Duration::from_secs(5))]).start();
    bench.deliver(1, "m1");
    bench.calls(1).await;

    bench.deliver(1, "m1-again");
    bench.deliver(1, "m2");

    assert_eq!(bench.answers(3).await, ["ack m2", "ack m1-again", "ack m1"]);
    assert_eq!(bench.handler.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_clean_failure_is_nacked_and_an_early_copy_waits_for_its_time() {
    let bench = Setup::acts([Act::Fail]).start();
    bench.deliver(1, "m1");
    assert_eq!(bench.answers(1).await, ["nack m1"]);
    let nacked = Instant::now();

    bench.deliver(1, "m1-early");

    assert_eq!(bench.answers(2).await, ["nack m1", "ack m1-early"]);
    assert!(nacked.elapsed() >= Duration::from_secs(5), "called again after {:?}", nacked.elapsed());
    assert_eq!(bench.calls(2).await, [(1, 1), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn the_spent_budget_quarantines_and_acks() {
    let bench = Setup::acts([Act::Fail, Act::Fail, Act::Fail]).start();

    for copy in 1..=3 {
        bench.deliver(1, &format!("m{copy}"));
        bench.answers(copy).await;
    }

    assert_eq!(bench.log.answers(), ["nack m1", "nack m2", "ack m3"]);
    assert_eq!(bench.state(1).await, Some((State::Quarantined, 3, "failures_exhausted".into())));
}

#[tokio::test(start_paused = true)]
async fn what_the_handler_refuses_is_quarantined_at_once() {
    let bench = Setup::acts([Act::Refuse]).start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.state(1).await.unwrap().2, "permanent");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_run_again_or_quarantined_by_its_rule() {
    for act in [Act::Hang, Act::Panic, Act::HangUp] {
        let rerun = Setup::acts([act.clone()]).start();
        rerun.deliver(1, "m1");
        assert_eq!(rerun.answers(1).await, ["nack m1"], "{act:?}");
        assert_eq!(rerun.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 1)), "{act:?}");

        let strict = Setup::acts([act.clone()]).strict().start();
        strict.deliver(1, "m1");
        assert_eq!(strict.answers(1).await, ["ack m1"], "{act:?}");
        assert_eq!(strict.state(1).await.unwrap().2, "outcome_unknown", "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_strict_event_whose_handler_did_nothing_is_tried_again() {
    let bench = Setup::acts([Act::NotRun]).strict().start();
    bench.deliver(1, "m1");
    bench.answers(1).await;

    bench.deliver(1, "m2");

    assert_eq!(bench.answers(2).await, ["nack m1", "ack m2"]);
    assert_eq!(bench.calls(2).await, [(1, 1), (2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn target_trouble_costs_no_failure_and_opens_the_breaker() {
    let bench = Setup { concurrency: 1, ..Setup::acts(vec![Act::Unreachable; 6]) }.start();
    for event in 1..=5 {
        bench.deliver(event, "m");
        bench.answers(event as usize).await;
    }
    assert_eq!(bench.metrics.intake_paused.with_label_values(&["breaker"]).get(), 1);
    let opened = Instant::now();

    bench.deliver(6, "probe");
    bench.calls(6).await;
    assert_eq!(opened.elapsed().as_secs(), 1, "the first probe goes after a second");
    bench.deliver(7, "good");
    bench.calls(7).await;

    assert!(opened.elapsed().as_secs() >= 3, "the second probe waits twice as long");
    bench.answers(7).await;
    assert_eq!(bench.metrics.intake_paused.with_label_values(&["breaker"]).get(), 0);
    for event in 1..=6 {
        assert_eq!(bench.state(event).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_a_chat_event_is_quarantined_without_a_call() {
    let bench = Setup::default().start();
    let raw = RawEvent {
        data: "not json".into(),
        message_id: "m1".into(),
        publish_time: Some(bench.clock.now()),
        ..RawEvent::default()
    };

    bench.feed.send(bench.log.delivery(raw)).unwrap();

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.handler.calls().len(), 0);
    assert_eq!(bench.metrics.quarantined.with_label_values(&["undecodable"]).get(), 1);
}

#[tokio::test(start_paused = true)]
async fn rules_skip_and_put_aside_without_a_call() {
    let rule = |action| Rule { action, ..Rule::default() };
    let skips = Setup { rule: rule(Action::Skip), ..Setup::default() }.start();
    skips.deliver(1, "m1");
    assert_eq!(skips.answers(1).await, ["ack m1"]);
    assert_eq!(skips.state(1).await, None);

    let puts_aside = Setup { rule: rule(Action::Quarantine), ..Setup::default() }.start();
    puts_aside.deliver(1, "m1");
    assert_eq!(puts_aside.answers(1).await, ["ack m1"]);
    assert_eq!(puts_aside.state(1).await.unwrap().2, "operator");
    assert_eq!(skips.handler.calls().len() + puts_aside.handler.calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_a_claim_is_asked_for_again_and_the_handler_runs_once() {
    let bench = Setup { faults: |store| store.on_claim(Fault::AfterWrite), ..Setup::default() }.start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.calls(1).await, [(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_settle_is_repeated_and_acked_only_when_confirmed() {
    for fault in [Fault::BeforeWrite, Fault::AfterWrite, Fault::Contention] {
        let bench = Setup::default().start();
        for _ in 0..20 {
            bench.store.push(Method::Settle, fault);
        }
        bench.deliver(1, "m1");
        bench.calls(1).await;

        time::sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.log.answers(), [] as [&str; 0], "{fault:?}");

        assert_eq!(bench.answers(1).await, ["ack m1"], "{fault:?}");
        assert_eq!(bench.handler.calls().len(), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_settle_that_is_never_confirmed_is_never_acked() {
    let bench = Setup::default().start();
    for _ in 0..10_000 {
        bench.store.push(Method::Settle, Fault::BeforeWrite);
    }
    bench.deliver(1, "m1");
    bench.calls(1).await;

    let (drained, answers) = bench.stop().await;

    assert_eq!(drained, Drained::Abandoned);
    assert_eq!(answers, ["nack m1"]);
}

#[tokio::test(start_paused = true)]
async fn a_strict_event_is_not_run_before_its_start_is_confirmed() {
    let bench = Setup { faults: |store| store.on_advance(Fault::AfterWrite), ..Setup::default() }.strict().start();
    for _ in 0..10_000 {
        bench.store.push(Method::Advance, Fault::BeforeWrite);
    }

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["nack m1"], "handed back when the lease was over");
    assert_eq!(bench.handler.calls().len(), 0);
    assert_eq!(bench.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_claim_the_store_refuses_holds_that_event_and_lets_others_flow() {
    let bench = Setup { faults: |store| store.on_claim(Fault::Refused), ..Setup::default() }.start();
    bench.deliver(1, "refused");
    time::sleep(Duration::from_secs(1)).await;

    bench.deliver(2, "m2");

    assert_eq!(bench.answers(1).await, ["ack m2"]);
    assert_eq!(bench.answers(2).await, ["ack m2", "ack refused"], "tried again after the hold");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_pauses_intake_and_costs_nothing() {
    let bench = Setup::default().start();
    for _ in 0..10 {
        bench.store.push(Method::Claim, Fault::BeforeWrite);
    }

    for event in 1..=3 {
        bench.deliver(event, &format!("m{event}"));
    }
    bench.answers(3).await;

    assert_eq!(bench.handler.calls().len(), 3);
    for event in 1..=3 {
        assert_eq!(bench.state(event).await.map(|row| (row.0, row.1)), Some((State::Done, 0)));
    }
    assert_eq!(bench.metrics.intake_paused.with_label_values(&["store"]).get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_rerun_handler_whose_lease_is_lost_is_cut_and_a_strict_one_is_not() {
    let long = Duration::from_secs(300);
    let rule = || Rule { timeout: Some(Duration::from_secs(600)), ..Rule::default() };
    let outage = |store: FaultStore| (0..40).fold(store, |store, _| store.on_renew(Fault::BeforeWrite));

    let rerun = Setup { rule: rule(), faults: outage, ..Setup::acts([Act::SucceedAfter(long)]) }.start();
    rerun.deliver(1, "m1");
    let called = Instant::now();
    assert_eq!(rerun.answers(1).await, ["nack m1"]);
    assert!(called.elapsed() <= LEASE, "cut after {:?}, before anybody may take over", called.elapsed());
    assert_eq!(rerun.handler.cut(), 1);
    assert_eq!(rerun.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));

    let strict = Setup { rule: rule(), faults: outage, ..Setup::acts([Act::SucceedAfter(long)]) }.strict().start();
    strict.deliver(1, "m1");
    assert_eq!(strict.answers(1).await, ["ack m1"]);
    assert_eq!(strict.handler.cut(), 0);
    assert_eq!(strict.state(1).await.unwrap().0, State::Done);
}

#[tokio::test(start_paused = true)]
async fn leases_of_long_handlers_are_renewed() {
    let rule = Rule { timeout: Some(Duration::from_secs(900)), ..Rule::default() };
    let bench = Setup { rule, ..Setup::acts([Act::SucceedAfter(Duration::from_secs(600))]) }.start();

    bench.deliver(1, "m1");

    assert_eq!(bench.answers(1).await, ["ack m1"]);
    assert_eq!(bench.calls(1).await, [(1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_finishes_what_runs_and_hands_back_what_has_not_begun() {
    let bench = Setup { concurrency: 1, ..Setup::acts([Act::SucceedAfter(Duration::from_secs(20))]) }.start();
    bench.deliver(1, "running");
    bench.calls(1).await;
    bench.deliver(2, "waiting");
    time::sleep(Duration::from_millis(10)).await;

    let (drained, answers) = bench.stop().await;

    assert_eq!(drained, Drained::Clean);
    assert_eq!(answers, ["nack waiting", "ack running"]);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_of_a_drain_rerun_is_handed_back_and_strict_quarantined() {
    let rerun = Setup::acts([Act::Hang]).start();
    rerun.deliver(1, "m1");
    rerun.calls(1).await;
    rerun.shutdown.abort();
    assert_eq!(rerun.answers(1).await, ["nack m1"]);
    assert_eq!(rerun.state(1).await.map(|row| (row.0, row.1)), Some((State::Retry, 0)));
    assert_eq!(rerun.stop().await.0, Drained::Abandoned);

    let strict = Setup::acts([Act::Hang]).strict().start();
    strict.deliver(1, "m1");
    strict.calls(1).await;
    strict.shutdown.abort();
    assert_eq!(strict.answers(1).await, ["ack m1"]);
    assert_eq!(strict.state(1).await.unwrap().2, "outcome_unknown");
}

#[tokio::test(start_paused = true)]
async fn a_drain_nacks_parked_copies_at_once() {
    let bench = Setup::acts([Act::Fail]).start();
    bench.deliver(1, "m1");
    bench.answers(1).await;
    bench.deliver(1, "parked");
    time::sleep(Duration::from_millis(100)).await;

    let stopped = Instant::now();
    let (drained, answers) = bench.stop().await;

    assert_eq!((drained, answers), (Drained::Clean, vec!["nack m1".into(), "nack parked".into()]));
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn over_the_lot_s_size_the_latest_due_is_nacked_after_a_second() {
    let bench = Setup { parking: 2, ..Setup::acts(vec![Act::Fail; 3]) }.start();
    for event in 1..=3 {
        bench.deliver(event, "m");
    }
    bench.answers(3).await;

    for event in 1..=3 {
        bench.deliver(event, &format!("early{event}"));
    }
    let surplus = bench.answers(4).await;

    assert!(surplus[3].starts_with("nack early"), "{surplus:?}");
    assert_eq!(bench.metrics.parked_over_cap.get(), 1);
    let all = bench.answers(6).await;
    assert_eq!(all.iter().filter(|answer| answer.starts_with("ack early")).count(), 2);
}
