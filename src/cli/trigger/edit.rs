//! Replaces one value in an event.

use std::str::FromStr;

use bytes::Bytes;
use serde_json::Value;

/// `message.text="hello"`, `space.type=DM`, `message.annotations.0.startIndex=0`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    path: String,
    value: Value,
}

impl FromStr for Edit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, value) = text.split_once('=').ok_or("give PATH=VALUE, such as message.text=hello")?;
        if path.split('.').any(str::is_empty) {
            return Err(format!("\"{path}\" is no path"));
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok(Self { path: path.to_owned(), value })
    }
}

impl Edit {
    /// The payload with the value in it. The place must exist, but for its last step: a new key may be added there.
    pub(super) fn apply(&self, data: &[u8]) -> Result<Bytes, String> {
        let mut event: Value = serde_json::from_slice(data).map_err(|_| "only a JSON payload can be edited")?;
        let mut steps = self.path.split('.').peekable();
        let mut place = &mut event;
        while let Some(step) = steps.next() {
            let known = keys(place);
            let is_last = steps.peek().is_none();
            place = match place {
                Value::Object(members) => {
                    if is_last && !members.contains_key(step) {
                        members.insert(step.to_owned(), Value::Null);
                    }
                    members.get_mut(step).ok_or(unknown(&self.path, step, &known))?
                }
                Value::Array(elements) => {
                    let element = step.parse::<usize>().ok().and_then(|index| elements.get_mut(index));
                    element.ok_or(unknown(&self.path, step, &known))?
                }
                _ => return Err(unknown(&self.path, step, &known)),
            };
        }
        *place = self.value.clone();
        serde_json::to_vec(&event).map(Bytes::from).map_err(|error| error.to_string())
    }
}

fn unknown(path: &str, step: &str, known: &str) -> String {
    format!("there is no \"{step}\" for {path}; there is {known}")
}

fn keys(place: &Value) -> String {
    match place {
        Value::Object(members) => members.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        Value::Array(elements) => format!("a list of {}", elements.len()),
        _ => "a plain value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(edit: &str) -> Result<String, String> {
        let data = br#"{"type":"MESSAGE","message":{"text":"x","tags":[1,2]}}"#;
        let edited = edit.parse::<Edit>()?.apply(data)?;
        Ok(String::from_utf8(edited.to_vec()).unwrap())
    }

    #[test]
    fn values_are_replaced_and_keys_added_in_place() {
        assert_eq!(edited("type=X").unwrap(), r#"{"type":"X","message":{"text":"x","tags":[1,2]}}"#);
        assert_eq!(
            edited(r#"message.text="a=b""#).unwrap(),
            r#"{"type":"MESSAGE","message":{"text":"a=b","tags":[1,2]}}"#
        );
        assert_eq!(edited("message.tags.1=7").unwrap(), r#"{"type":"MESSAGE","message":{"text":"x","tags":[1,7]}}"#);
        assert_eq!(
            edited("new={\"a\":1}").unwrap(),
            r#"{"type":"MESSAGE","message":{"text":"x","tags":[1,2]},"new":{"a":1}}"#
        );
    }

    #[test]
    fn a_path_that_leads_nowhere_names_what_there_is() {
        assert_eq!(
            edited("mesage.text=1").unwrap_err(),
            "there is no \"mesage\" for mesage.text; there is type, message"
        );
        assert!(edited("message.tags.9=1").unwrap_err().ends_with("there is a list of 2"));
        assert!(edited("type.x=1").unwrap_err().ends_with("there is a plain value"));
        assert!(edited("message").is_err());
        assert!(edited("a..b=1").is_err());
    }
}
