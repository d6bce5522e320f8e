//! An event and an attempt for unit tests.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::DateTime;

use crate::{
    event::{Event, EventId, RawEvent, decode},
    handler::HandlerContext,
};

pub(super) fn event() -> Event {
    let data = Bytes::from_static(br#"{"type":"MESSAGE","message":{"text":"hello"}}"#);
    let mut event = decode(&Arc::new(RawEvent { data, ..RawEvent::default() }));
    event.id = EventId::new("bh1-ix-0123456789abcdef0123456789abcdef");
    event.chat.space = Some("spaces/A".to_owned());
    event
}

pub(super) fn cx() -> HandlerContext {
    HandlerContext {
        epoch: 3,
        attempt: 2,
        replay: 0,
        timeout: Duration::from_secs(60),
        deadline: DateTime::from_timestamp(1_780_000_000, 5_000_000).unwrap(),
        strict: false,
        source: "pubsub".to_owned(),
    }
}
