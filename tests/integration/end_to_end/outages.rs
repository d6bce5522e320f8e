//! The store or the handler is away for a while.

use std::time::Duration;

use super::{
    super::harness::{
        Bellhop,
        event::chat_message,
        eventually,
        handler::OK,
        wait::{throughout, when},
    },
    Behaviour, Broker, Postgres, SETTLED_WITHIN, World,
};

pub(super) async fn postgres_down(broker: Broker) {
    const BEFORE: usize = 10;
    const DURING: usize = 20;
    let world = World::with(broker, Postgres::own().await, |_| Behaviour::After(Duration::from_millis(300), 200)).await;
    let mut bellhop = Bellhop::start(&world.setup(1)).await;
    let publish = async |from: usize, count: usize| {
        let events: Vec<_> = (from..from + count).map(|n| chat_message(&format!("event {n}"))).collect();
        world.subscription.publish(&events).await;
    };
    publish(0, BEFORE).await;
    world.called(BEFORE).await;

    // Handlers are running now; what they did must not be forgotten.
    world.postgres.stop();
    publish(BEFORE, DURING).await;
    eventually("intake to pause", SETTLED_WITHIN, async || {
        when(bellhop.metrics().await.sum("bellhop_intake_paused", &[("reason", "store")]) > 0.0)
    })
    .await;
    eventually("readiness to go", SETTLED_WITHIN, async || when(!bellhop.is("ready").await)).await;
    throughout("alive and not ready", Duration::from_secs(20), async || {
        bellhop.runs() && bellhop.is("live").await && !bellhop.is("ready").await
    })
    .await;
    assert_eq!(world.handler.count(), BEFORE, "no call without a claim");
    world.postgres.start();

    let ledger = world.settled(BEFORE + DURING).await;
    bellhop.ready().await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.done, ledger.failures), (BEFORE + DURING, 0));
    for n in 0..BEFORE + DURING {
        assert_eq!(world.handler.calls_of(&format!("event {n}")).len(), 1, "calls for event {n}");
    }
}

pub(super) async fn handler_down(broker: Broker) {
    const EVENTS: usize = 20;
    let mut world = World::new(broker, |_| OK).await;
    let mut bellhop = Bellhop::start(&world.setup(1)).await;
    world.handler.down().await;

    let events: Vec<_> = (0..EVENTS).map(|n| chat_message(&format!("event {n}"))).collect();
    world.subscription.publish(&events).await;

    eventually("the breaker to open", SETTLED_WITHIN, async || {
        when(bellhop.metrics().await.sum("bellhop_intake_paused", &[("reason", "breaker")]) > 0.0)
    })
    .await;
    throughout("alive", Duration::from_secs(30), async || bellhop.is("live").await && bellhop.runs()).await;
    let meanwhile = world.ledger().await;
    assert_eq!((meanwhile.settled(), meanwhile.failures), (0, 0));
    world.handler.up().await;

    let ledger = world.settled(EVENTS).await;
    bellhop.ready().await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.done, ledger.failures), (EVENTS, 0));
    assert_eq!(world.handler.count(), EVENTS);
}
