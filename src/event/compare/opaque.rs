//! Why a message is no Chat event.

use super::super::{
    INTERACTION_TYPES,
    document::{self, Kind, Value},
    unwrap::Unwrapped,
};

/// In words, with places and nothing of the text.
pub(super) fn reason(unwrapped: &Unwrapped) -> String {
    match &unwrapped.body {
        Ok(document) => of_value(document.root()),
        Err(bytes) if bytes.is_empty() => "the payload is empty".to_owned(),
        Err(bytes) => format!("not JSON: {}", document::problem(bytes).unwrap_or_default()),
    }
}

fn of_value(root: Value<'_>) -> String {
    let kind = match root.kind() {
        Kind::Object => return of_object(root).to_owned(),
        Kind::Array => "an array",
        Kind::Text(_) => "a text",
        Kind::Null => "null",
        Kind::Bool(_) => "true or false",
        Kind::Unsigned(_) | Kind::Signed(_) | Kind::Float(_) => "a number",
    };
    format!("JSON, but {kind} and no object")
}

fn of_object(root: Value<'_>) -> &'static str {
    match root.get("type").map(Value::text) {
        None => "a JSON object without type",
        Some(None) => "a JSON object whose type is no text, or empty",
        Some(Some(name)) if INTERACTION_TYPES.contains(&name) => "a JSON object that is not read as an event",
        Some(Some(_)) => "a JSON object whose type is none of Chat's, without eventTime and a space or user",
    }
}
