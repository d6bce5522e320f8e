//! Workspace add-on events: no type field, the payload's key is the type.

use std::borrow::Cow;

use super::document::Value;

/// Payload keys and the types they stand for, in the order they are looked at.
const PAYLOADS: [(&str, &str); 6] = [
    ("appCommandPayload", "APP_COMMAND"),
    ("buttonClickedPayload", "CARD_CLICKED"),
    ("widgetUpdatedPayload", "WIDGET_UPDATED"),
    ("messagePayload", "MESSAGE"),
    ("addedToSpacePayload", "ADDED_TO_SPACE"),
    ("removedFromSpacePayload", "REMOVED_FROM_SPACE"),
];

/// What the `chat` object says.
pub(super) struct Addon<'d> {
    pub(super) chat: Value<'d>,
    pub(super) event_type: Cow<'d, str>,
    pub(super) payload: Option<Value<'d>>,
    /// All payload keys, sorted.
    pub(super) payload_keys: Vec<&'d str>,
}

/// Recognises an add-on event: `chat` with an object under a key that ends in `Payload`, or with a `type` of its own.
pub(super) fn recognise(root: Value<'_>) -> Option<Addon<'_>> {
    let chat = root.get("chat").filter(|chat| chat.is_object())?;
    let payload_keys = payload_keys(chat);
    let known = PAYLOADS.iter().find(|(key, _)| payload_keys.binary_search(key).is_ok());
    let (key, event_type) = match (known, payload_keys.first()) {
        (Some((key, event_type)), _) => (*key, Cow::Borrowed(*event_type)),
        (None, Some(key)) => (*key, Cow::Owned(format!("addon:{key}"))),
        (None, None) => {
            let event_type = Cow::Borrowed(chat.get("type")?.text()?);
            return Some(Addon { chat, event_type, payload: None, payload_keys });
        }
    };
    Some(Addon { chat, event_type, payload: chat.get(key), payload_keys })
}

/// The keys ending in `Payload` whose (last) value is an object, sorted.
fn payload_keys(chat: Value<'_>) -> Vec<&str> {
    let objects = chat.last_members().into_iter().filter(|(key, value)| key.ends_with(b"Payload") && value.is_object());
    objects.filter_map(|(key, _)| std::str::from_utf8(key).ok()).collect()
}
