//! An event and an attempt for unit tests.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use chrono::DateTime;

use crate::{
    event::{Basis, ChatEvent, Event, EventId, Fields, Fingerprint, RawEvent, Shape},
    handler::HandlerContext,
};

pub(super) fn event() -> Event {
    Event {
        raw: Arc::new(RawEvent::default()),
        id: EventId::new("bh1-ix-0123456789abcdef0123456789abcdef"),
        basis: Basis::IxTime,
        shape: Shape::Classic,
        event_type: "MESSAGE".to_owned(),
        fingerprint: Fingerprint([0; 17]),
        time: None,
        key_time_ms: 0,
        chat: ChatEvent { space: Some("spaces/A".to_owned()), ..ChatEvent::default() },
        body: Bytes::from_static(br#"{"type":"MESSAGE","message":{"text":"hello"}}"#),
        ce_attributes: BTreeMap::new(),
        fields: Fields::default(),
    }
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
