//! The Pub/Sub source against Google's emulator, and against what is no Pub/Sub server.

mod faults;
mod fixture;
mod network;

use std::{
    sync::Arc,
    time::{Duration, Instant as Wall},
};

use bellhop::{
    clock::SystemClock,
    metrics::Metrics,
    source::{
        Delivery, Source, SourceError,
        pubsub::{Config, Limits, PubsubSource},
    },
};
use tokio::time::{self, Instant};

use self::{
    fixture::{ACK_DEADLINE, Subscription, emulator, eventually},
    network::{Door, Street},
};

/// Longer than anything that is to happen at once may take on a busy machine.
const SOON: Duration = Duration::from_secs(40);

const LIMITS: Limits = Limits { count: 100, bytes: 64 << 20, max_lease: Duration::from_secs(600) };

/// A source and what it counts.
struct Opened {
    source: Box<PubsubSource>,
    metrics: Metrics,
}

impl Opened {
    fn on(config: &Config, limits: Limits) -> Self {
        let metrics = Metrics::new().unwrap();
        let source = PubsubSource::open(config, limits, metrics.clone(), Arc::new(SystemClock)).unwrap();
        Self { source: Box::new(source), metrics }
    }

    async fn next(&mut self) -> Delivery {
        time::timeout(SOON, self.source.next()).await.expect("a delivery in time").unwrap().expect("a delivery")
    }

    /// True when nothing comes though everything that was sent had the time to.
    async fn is_quiet(&mut self) -> bool {
        time::timeout(Duration::from_secs(1), self.source.next()).await.is_err()
    }

    async fn close(self) -> Result<(), SourceError> {
        self.source.close(Instant::now() + SOON).await
    }

    fn requests(&self, operation: &str, result: &str) -> u64 {
        self.metrics.pubsub_requests.with_label_values(&[operation, result]).get()
    }

    fn restarts(&self, reason: &str) -> u64 {
        self.metrics.source_restarts.with_label_values(&["pubsub", reason]).get()
    }

    fn up(&self) -> i64 {
        self.metrics.source_up.with_label_values(&["pubsub"]).get()
    }
}

fn config(subscription: &Subscription) -> Config {
    Config {
        subscription: subscription.name.clone(),
        endpoint: emulator(),
        lease_extension: ACK_DEADLINE,
        ..Config::default()
    }
}

fn text(delivery: &Delivery) -> String {
    String::from_utf8(delivery.raw.data.to_vec()).unwrap()
}

#[tokio::test]
async fn an_acked_delivery_is_gone() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish(["a"]).await;

    let delivery = opened.next().await;
    assert_eq!(text(&delivery), "a");
    assert_eq!(delivery.raw.attributes["number"], "0");
    assert!(!delivery.raw.message_id.is_empty());
    assert!(delivery.raw.publish_time.is_some());
    delivery.acker.ack().await;

    assert_eq!(opened.requests("ack", "sent"), 1);
    assert_eq!(opened.metrics.pubsub_outstanding_messages.get(), 0);
    opened.close().await.unwrap();
    assert_eq!(subscription.leftovers().await, [] as [String; 0]);
}

#[tokio::test]
async fn a_nacked_and_a_dropped_delivery_come_again() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish(["a"]).await;

    opened.next().await.acker.nack().await;
    drop(opened.next().await);
    let third = opened.next().await;

    assert_eq!(text(&third), "a");
    assert_eq!(opened.requests("nack", "sent"), 2);
    third.acker.ack().await;
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_task_that_panics_or_is_aborted_gives_its_delivery_back() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish(["a"]).await;
    let mut tasks = tokio::task::JoinSet::new();

    let first = opened.next().await;
    tasks.spawn(async move {
        assert!(text(&first).is_empty(), "this task dies while it holds a delivery");
    });
    let second = opened.next().await;
    tasks.spawn(async move {
        std::future::pending::<()>().await;
        drop(second);
    });
    tasks.abort_all();
    let third = opened.next().await;

    third.acker.ack().await;
    opened.close().await.unwrap();
}

#[tokio::test]
async fn no_more_messages_than_the_budget_are_handed_over() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), Limits { count: 5, ..LIMITS });
    subscription.publish((0..50).map(|n| format!("m{n}"))).await;

    let mut held = Vec::new();
    for _ in 0..5 {
        held.push(opened.next().await);
    }
    assert!(opened.is_quiet().await);
    assert_eq!(opened.metrics.pubsub_outstanding_messages.get(), 5);

    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 50 {
        let delivery = match held.pop() {
            Some(delivery) => delivery,
            None => opened.next().await,
        };
        seen.insert(text(&delivery));
        delivery.acker.ack().await;
        assert!(opened.metrics.pubsub_outstanding_messages.get() <= 5);
    }
    opened.close().await.unwrap();
}

#[tokio::test]
async fn no_more_bytes_than_the_budget_are_handed_over_and_a_larger_message_comes_alone() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), Limits { bytes: 100_000, ..LIMITS });
    subscription.publish((0..6).map(|n| format!("{n}{}", "x".repeat(40_000)))).await;
    subscription.publish([format!("L{}", "x".repeat(300_000))]).await;

    let mut most = 0;
    let mut seen = std::collections::BTreeSet::new();
    let mut held: Vec<Delivery> = Vec::new();
    while seen.len() < 7 {
        match time::timeout(Duration::from_millis(500), opened.source.next()).await {
            Ok(next) => {
                held.push(next.unwrap().unwrap());
                let total: usize = held.iter().map(|delivery| delivery.raw.data.len()).sum();
                assert!(total <= 100_000 || held.len() == 1, "{total} bytes in {} deliveries", held.len());
                most = most.max(held.len());
            }
            Err(_) => {
                for delivery in held.drain(..) {
                    seen.insert(text(&delivery)[..1].to_owned());
                    delivery.acker.ack().await;
                }
            }
        }
    }

    assert_eq!(most, 2);
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_subscription_that_does_not_exist_yet_is_waited_for() {
    let subscription = Subscription::not_yet();
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    let health = opened.source.health();

    eventually("the probe to miss it", || opened.requests("probe", "not_found") >= 2).await;
    assert!(!health());
    assert_eq!(opened.up(), 0);
    subscription.create().await;
    subscription.publish(["a"]).await;

    opened.next().await.acker.ack().await;
    assert!(health());
    assert_eq!(opened.up(), 1);
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_subscription_that_is_deleted_and_made_again_is_pulled_from_again() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    let health = opened.source.health();
    subscription.publish(["a"]).await;
    opened.next().await.acker.ack().await;

    subscription.delete().await;
    eventually("the stream to end", || opened.restarts("not_found") >= 1).await;
    eventually("the source to count as bad", || !health()).await;
    subscription.create().await;
    subscription.publish(["b"]).await;

    assert_eq!(text(&opened.next().await), "b");
    assert!(health());
    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_down_at_start_is_waited_for() {
    let subscription = Subscription::new().await;
    let street = Street::new(emulator(), Door::Shut).await;
    let mut opened = Opened::on(&Config { endpoint: street.address(), ..config(&subscription) }, LIMITS);
    let health = opened.source.health();
    subscription.publish(["a"]).await;

    eventually("two failed probes", || opened.requests("probe", "unreachable") >= 2).await;
    assert!(!health());
    street.becomes(Door::Open);

    opened.next().await.acker.ack().await;
    assert!(health());
    opened.close().await.unwrap();
}

#[tokio::test]
async fn what_does_not_speak_grpc_is_asked_seldom() {
    for door in [Door::Shut, Door::HttpNo, Door::HttpYes] {
        let street = Street::new(emulator(), door).await;
        let subscription = Subscription::not_yet();
        let opened = Opened::on(&Config { endpoint: street.address(), ..config(&subscription) }, LIMITS);
        let begun = Wall::now();

        eventually("three failed probes", || opened.requests("probe", "unreachable") >= 3).await;

        assert!(begun.elapsed() > Duration::from_millis(500), "{door:?}");
        assert!(street.visits() < 20, "{door:?}: {} connections", street.visits());
        assert_eq!(opened.up(), 0);
        opened.close().await.unwrap();
    }
}

#[tokio::test]
async fn next_loses_nothing_when_it_is_cut() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    let mut seen = std::collections::BTreeSet::new();

    for round in 0..5 {
        subscription.publish([format!("m{round}")]).await;
        for _ in 0..20 {
            if let Ok(next) = time::timeout(Duration::from_millis(5), opened.source.next()).await {
                let delivery = next.unwrap().unwrap();
                seen.insert(text(&delivery));
                delivery.acker.ack().await;
            }
        }
    }
    while seen.len() < 5 {
        let delivery = opened.next().await;
        seen.insert(text(&delivery));
        delivery.acker.ack().await;
    }

    assert_eq!(opened.metrics.pubsub_messages_received.with_label_values(&["unknown"]).get(), 5);
    opened.close().await.unwrap();
}

#[tokio::test]
async fn close_gives_up_at_its_deadline_while_a_delivery_is_held() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish(["a"]).await;
    let held = opened.next().await;

    let begun = Wall::now();
    let closed = opened.source.close(Instant::now() + Duration::from_secs(1)).await;

    assert!(matches!(closed, Err(SourceError::Unconfirmed { unconfirmed: 1 })), "{closed:?}");
    assert!((Duration::from_secs(1)..Duration::from_secs(3)).contains(&begun.elapsed()));
    drop(held);
}

#[tokio::test]
async fn close_waits_for_the_last_answer() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish(["a"]).await;
    let held = opened.next().await;
    let mut closing = tokio::task::JoinSet::new();
    closing.spawn(opened.close());

    assert!(time::timeout(Duration::from_secs(1), closing.join_next()).await.is_err());
    held.acker.ack().await;
    closing.join_next().await.unwrap().unwrap().unwrap();

    assert_eq!(subscription.leftovers().await, [] as [String; 0]);
}

#[tokio::test]
async fn an_idle_source_closes_at_once() {
    let subscription = Subscription::new().await;
    let opened = Opened::on(&config(&subscription), LIMITS);
    let health = opened.source.health();
    eventually("the source to be good", || health()).await;

    let begun = Wall::now();
    opened.close().await.unwrap();

    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_drain_gives_back_what_was_not_handed_over_while_handlers_still_run() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), Limits { count: 5, ..LIMITS });
    subscription.publish((0..50).map(|n| format!("m{n}"))).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(opened.next().await);
    }
    let requests = opened.metrics.pubsub_requests.clone();
    let given_back =
        || ["drained", "sent"].iter().map(|result| requests.with_label_values(&["nack", *result]).get()).sum::<u64>();
    let mut closing = tokio::task::JoinSet::new();
    closing.spawn(opened.close());

    // As long as a handler runs, the client extends the lease of all that was not given back.
    let others = subscription.take(47).await;

    assert_eq!(given_back(), 47);
    for delivery in held {
        assert!(!others.contains(&text(&delivery)));
        delivery.acker.ack().await;
    }
    closing.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn acks_of_an_exactly_once_subscription_are_confirmed_before_close_returns() {
    let subscription = Subscription::exactly_once().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish((0..20).map(|n| format!("m{n}"))).await;

    for _ in 0..20 {
        opened.next().await.acker.ack().await;
    }
    // The place in the budget is not kept for the confirmation.
    assert_eq!(opened.metrics.pubsub_outstanding_messages.get(), 0);
    let metrics = opened.metrics.clone();
    opened.close().await.unwrap();

    assert_eq!(metrics.pubsub_requests.with_label_values(&["ack", "ok"]).get(), 20);
    assert_eq!(subscription.leftovers().await, [] as [String; 0]);
}

#[tokio::test]
async fn a_dropped_delivery_of_an_exactly_once_subscription_comes_again() {
    let subscription = Subscription::exactly_once().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish(["a"]).await;

    drop(opened.next().await);
    let again = opened.next().await;

    assert_eq!(text(&again), "a");
    again.acker.ack().await;
    opened.close().await.unwrap();
}

#[tokio::test]
async fn several_streams_share_one_budget() {
    let subscription = Subscription::new().await;
    let config = Config { streams: 3, ..config(&subscription) };
    let mut opened = Opened::on(&config, Limits { count: 4, ..LIMITS });
    subscription.publish((0..30).map(|n| format!("m{n}"))).await;

    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(opened.next().await);
    }
    assert!(opened.is_quiet().await);
    let mut seen: std::collections::BTreeSet<_> = held.iter().map(text).collect();
    for delivery in held {
        delivery.acker.ack().await;
    }
    while seen.len() < 30 {
        let delivery = opened.next().await;
        seen.insert(text(&delivery));
        delivery.acker.ack().await;
    }

    opened.close().await.unwrap();
}

#[tokio::test]
async fn a_source_that_is_dropped_gives_back_what_it_held() {
    let subscription = Subscription::new().await;
    let mut opened = Opened::on(&config(&subscription), LIMITS);
    subscription.publish(["a", "b"]).await;
    drop(opened.next().await);

    drop(opened);

    let mut others = subscription.take(2).await;
    others.sort();
    assert_eq!(others, ["a", "b"]);
}
