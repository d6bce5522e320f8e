//! Copies of one event, in one process and over two.

use super::{
    super::harness::{Bellhop, event::chat_message, handler::OK},
    Broker, SETTLED_WITHIN, World, eventually, when,
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
    const EVENTS: usize = 40;
    let world = World::new(broker, |_| OK).await;
    let names = ["a", "b"];
    let setup = |name: &&str| world.setup(2).handler(&world.handler.url_of(name));
    let mut replicas: Vec<_> = names.iter().map(|name| Bellhop::spawn(&setup(name))).collect();
    for replica in &mut replicas {
        replica.ready().await;
    }

    let events: Vec<_> = (0..EVENTS).map(|n| chat_message(&format!("event {n}"))).collect();
    for event in &events {
        // One by one: whoever asks first gets it.
        world.subscription.publish(std::slice::from_ref(event)).await;
    }
    world.subscription.publish(&events).await;

    let ledger = world.settled_within(EVENTS, SETTLED_WITHIN).await;
    eventually("an ack for every copy", SETTLED_WITHIN, async || {
        when(replicas[0].acks().await + replicas[1].acks().await >= 2 * EVENTS)
    })
    .await;
    for replica in &mut replicas {
        replica.drain().await;
    }
    world.assert_all_acked().await;
    assert_eq!(ledger.done, EVENTS);
    for n in 0..EVENTS {
        assert_eq!(world.handler.calls_of(&format!("event {n}")).len(), 1, "calls for event {n}");
    }
}
