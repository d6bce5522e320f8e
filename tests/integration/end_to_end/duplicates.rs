//! Copies of one event, in one process and over two.

use std::{collections::HashSet, sync::Mutex, time::Duration};

use super::{
    super::harness::{Bellhop, event::chat_message, handler::OK},
    Behaviour, Broker, SETTLED_WITHIN, World, eventually, when,
};

pub(super) async fn published_twice(broker: Broker) {
    let world = World::new(broker, |_| OK).await;
    let event = chat_message("late checkout");
    let mut bellhop = Bellhop::start(&world.setup(1)).await;

    world.subscription.publish(std::slice::from_ref(&event)).await;
    world.settled(1).await;
    world.subscription.publish(&[event]).await;

    bellhop.acked(2).await;
    assert_eq!(world.handler.count(), 1);
    assert_eq!(world.ledger().await.done, 1);
    bellhop.drain().await;
    world.assert_all_acked().await;
}

pub(super) async fn two_replicas(broker: Broker) {
    const EVENTS: usize = 80;
    // More at a time than one replica holds, and often enough that no broker gives all of it to one.
    const ROUND: usize = 4;
    // As long as only one replica was given anything, it is slow: what it cannot hold has to go to the other.
    let callers = Mutex::new(HashSet::new());
    let world = World::new(broker, move |call| {
        let mut callers = callers.lock().expect("no script panics");
        callers.insert(call.caller.clone());
        Behaviour::After(Duration::from_millis(if callers.len() == 2 { 50 } else { 2_000 }), 200)
    })
    .await;
    let names = ["a", "b"];
    let setup = |name: &&str| {
        let setup = world.setup(2).handler(&world.handler.url_of(name));
        setup.set("worker.concurrency", 1).set("worker.parking", 1)
    };
    let mut replicas: Vec<_> = names.iter().map(|name| Bellhop::spawn(&setup(name))).collect();
    for replica in &mut replicas {
        replica.ready().await;
    }

    let events: Vec<_> = (0..EVENTS).map(|n| chat_message(&format!("event {n}"))).collect();
    for (before, round) in events.chunks(ROUND).enumerate() {
        world.subscription.publish(round).await;
        world.called((before + 1) * ROUND).await;
    }
    world.subscription.publish(&events).await;

    let ledger = world.settled(EVENTS).await;
    eventually("an ack for every copy", SETTLED_WITHIN, async || {
        when(replicas[0].acks().await + replicas[1].acks().await >= 2 * EVENTS)
    })
    .await;
    for replica in &mut replicas {
        replica.drain().await;
    }
    world.assert_all_acked().await;
    assert_eq!(ledger.done, EVENTS);
    let calls = world.handler.calls();
    assert!(names.iter().all(|name| calls.iter().any(|call| call.caller == *name)), "both replicas work");
    for n in 0..EVENTS {
        assert_eq!(world.handler.calls_of(&format!("event {n}")).len(), 1, "calls for event {n}");
    }
}
