//! The `[reply]` section.

use serde::{Deserialize, Serialize};

/// What happens to a handler's answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where it goes.
    pub mode: Mode,
}

/// Where answers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nowhere: the handler posts for itself.
    #[default]
    None,
    /// To the event's space. A later version; refused by the checks with these words.
    Chat,
}
