//! The bytes a handler gets.

use bytes::Bytes;
use serde_json::Value;

use crate::event::Event;

/// Keys whose values let their holder act for a user.
const CREDENTIALS: [&str; 3] = ["configCompleteRedirectUrl", "configCompleteRedirectUri", "authorizationEventObject"];

/// The event byte for byte; without its credentials unless they are to be passed on.
pub(super) fn of(event: &Event, pass_credentials: bool) -> Bytes {
    if pass_credentials {
        return event.body.clone();
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(&event.body) else { return event.body.clone() };
    if remove(&mut value) { Bytes::from(value.to_string()) } else { event.body.clone() }
}

fn remove(value: &mut Value) -> bool {
    match value {
        Value::Object(map) => {
            let before = map.len();
            map.retain(|key, _| !CREDENTIALS.contains(&key.as_str()));
            let removed = map.len() != before;
            map.values_mut().fold(removed, |removed, value| remove(value) | removed)
        }
        Value::Array(values) => values.iter_mut().fold(false, |removed, value| remove(value) | removed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
