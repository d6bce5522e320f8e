//! Events to publish: new ones made up here, and the sample files.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};

/// What a publisher hands to the broker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    pub(crate) data: Vec<u8>,
    pub(crate) attributes: HashMap<String, String>,
}

impl Message {
    /// Any bytes.
    pub(crate) fn raw(data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into(), attributes: HashMap::new() }
    }
}

/// A direct message to the app, sent now. `label` is its text: tests find the call of the handler by it. Publishing
/// the same value twice is the same event twice; two calls of this are two events, even with one label.
pub(crate) fn chat_message(label: &str) -> Message {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let id = format!("t{}-{number}", std::process::id());
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
    let user = json!({ "name": "users/100000000000000000101", "displayName": "Ana Ferris", "type": "HUMAN" });
    let space = json!({ "name": "spaces/bellDmAAAAE", "type": "DM", "singleUserBotDm": true });
    let event = json!({
        "type": "MESSAGE",
        "eventTime": now,
        "message": {
            "name": format!("spaces/bellDmAAAAE/messages/{id}.{id}"),
            "sender": user,
            "createTime": now,
            "text": label,
            "argumentText": label,
            "thread": { "name": format!("spaces/bellDmAAAAE/threads/{id}") },
            "space": space,
        },
        "user": user,
        "space": space,
        "thread": { "name": format!("spaces/bellDmAAAAE/threads/{id}") },
    });
    Message::raw(serde_json::to_vec(&event).expect("JSON can be written"))
}

/// The text of the event in a handler's request body; empty when it has none.
pub(crate) fn label(body: &[u8]) -> String {
    let event: Value = serde_json::from_slice(body).unwrap_or_default();
    event.pointer("/message/text").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The sample files, in order.
pub(crate) fn sample_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/events");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    files
}
