//! Handlers that say no, say nothing, or are cut off.

use std::time::Duration;

use serde_json::json;

use super::{
    super::harness::{Bellhop, event::chat_message, handler::OK},
    Behaviour, Broker, World,
};

pub(super) async fn fails_twice(broker: Broker) {
    let world = World::new(broker, |call| if call.earlier < 2 { Behaviour::Status(500) } else { OK }).await;
    let mut bellhop = Bellhop::start(&world.setup(1)).await;

    world.subscription.publish(&[chat_message("third time")]).await;

    let ledger = world.settled(1).await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.done, ledger.failures), (1, 2));
    let calls = world.handler.calls();
    assert_eq!(calls.iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(calls.iter().map(|call| call.epoch).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(calls.iter().all(|call| call.event_id == calls[0].event_id));
}

pub(super) async fn timeout_under_rerun(broker: Broker) {
    let world = World::new(broker, |call| if call.earlier == 0 { Behaviour::Hang } else { OK }).await;
    let mut bellhop = Bellhop::start(&world.setup(1).set("handler.timeout", "1s")).await;

    world.subscription.publish(&[chat_message("slow")]).await;

    let ledger = world.settled(1).await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.done, ledger.failures), (1, 1));
    assert_eq!(world.handler.calls().iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2]);
}

pub(super) async fn timeout_under_strict(broker: Broker) {
    let world = World::new(broker, |_| Behaviour::Hang).await;
    let setup = world.setup(1).set("handler.timeout", "1s").set("handler.on_unknown", "quarantine");
    let mut bellhop = Bellhop::start(&setup).await;
    let event = chat_message("restart the deployment");

    world.subscription.publish(std::slice::from_ref(&event)).await;
    let ledger = world.settled(1).await;
    world.subscription.publish(&[event]).await;

    bellhop.acked(2).await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.quarantined, ledger.reason("outcome_unknown")), (1, 1));
    assert_eq!(world.handler.count(), 1);
}

pub(super) async fn cut_answer(broker: Broker) {
    let cut = Behaviour::CutAfter(Duration::from_millis(50));
    let world = World::new(broker, move |call| if call.earlier == 0 { cut } else { OK }).await;
    let strict = json!({ "match": { "type": "MESSAGE", "user": "users/2" }, "on_unknown": "quarantine" });
    let mut bellhop = Bellhop::start(&world.setup(1).rule(strict)).await;

    let mut dangerous = chat_message("dangerous");
    let text = String::from_utf8(dangerous.data).expect("JSON is text");
    dangerous.data = text.replace("users/100000000000000000101", "users/2").into_bytes();
    world.subscription.publish(&[chat_message("harmless"), dangerous]).await;

    let ledger = world.settled(2).await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.done, ledger.reason("outcome_unknown")), (1, 1));
    assert_eq!(world.handler.calls_of("harmless").len(), 2);
    assert_eq!(world.handler.calls_of("dangerous").len(), 1);
}
