//! What is not an event at all.

use super::{
    super::harness::{
        Bellhop,
        event::{Message, chat_message},
        handler::OK,
    },
    Broker, World,
};

pub(super) async fn malformed(broker: Broker) {
    let payloads: [&[u8]; 6] = [b"not json", b"\xff\xfe\x00", b"[1,2,3]", b"{\"type\":", b"\"text\"", b"{}"];
    let mut messages = payloads.map(Message::raw).to_vec();
    let mut empty = Message::raw([]);
    empty.attributes.insert("reason".to_owned(), "an empty payload needs an attribute".to_owned());
    messages.push(empty);
    let world = World::new(broker, |_| OK).await;
    let mut bellhop = Bellhop::start(&world.setup(1)).await;

    world.subscription.publish(&messages).await;
    world.subscription.publish(&[chat_message("well-formed")]).await;

    let ledger = world.settled(messages.len() + 1).await;
    bellhop.drain().await;
    world.assert_all_acked().await;
    assert_eq!((ledger.done, ledger.reason("undecodable")), (1, messages.len()));
    assert_eq!(world.handler.count(), 1);
    assert_eq!(world.handler.calls_of("well-formed").len(), 1);
}
