//! The effective values, one by one, for whoever shows them.

use serde_json::Value;

use super::{
    Loaded,
    problem::Origin,
    schema::{self, join},
    tree,
};

/// One effective value. Secrets are `***`.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// `section.key`.
    pub key: String,
    /// As the configuration writes it.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
    /// Its value is not shown.
    pub is_secret: bool,
}

impl Loaded {
    /// Every key in the order of the sections, rules as one list.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let sections = serde_json::to_value(&self.config).unwrap_or_default();
        for (section, value) in sections.as_object().into_iter().flatten() {
            match value {
                Value::Object(keys) => {
                    entries.extend(keys.iter().map(|(key, value)| self.entry(join(section, key), value)));
                }
                list => entries.push(self.entry(section.clone(), list)),
            }
        }
        entries
    }

    fn entry(&self, key: String, value: &Value) -> Entry {
        Entry {
            origin: tree::exact_origin(&self.origins, &key),
            value: value.clone(),
            is_secret: schema::is_secret(&key),
            key,
        }
    }
}
