//! Samples in the binary, by name: one of every kind that a handler meets.

use super::{RawEvent, parse};

/// A sample message that is part of the program. All names in it are invented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// `chat.message`, `addon.button_clicked`, `workspace.reaction.created`, …
    pub name: &'static str,
    /// What it is, for listings.
    pub about: &'static str,
    text: &'static str,
}

macro_rules! samples {
    ($($name:literal: $about:literal,)*) => {
        &[$(BuiltIn { name: $name, about: $about, text: include_str!(concat!("../samples/", $name, ".json")) },)*]
    };
}

const SAMPLES: &[BuiltIn] = samples! {
    "chat.message": "a message in a thread",
    "chat.message.dm": "a direct message",
    "chat.message.mention": "a message that mentions the app",
    "chat.message.slash": "a slash command",
    "chat.message.link": "a link the app could preview",
    "chat.message.attachment": "an attachment without text",
    "chat.app_command": "a quick command",
    "chat.added_to_space": "the app was added to a space",
    "chat.added_to_space.admin_installed": "an administrator installed the app for somebody",
    "chat.removed_from_space": "the app was removed from a space",
    "chat.card_clicked": "a button on a card",
    "chat.card_clicked.dialog": "a submitted dialog",
    "chat.widget_updated": "an autocomplete query; skipped unless configured",
    "chat.app_home": "the app's home was opened; skipped unless configured",
    "chat.submit_form": "a form of the app's home",
    "addon.message": "add-on: a direct message",
    "addon.added_to_space": "add-on: the app was added to a space",
    "addon.removed_from_space": "add-on: the app was removed from a space",
    "addon.button_clicked": "add-on: a button on a card",
    "addon.slash_command": "add-on: a slash command",
    "addon.quick_command": "add-on: a quick command",
    "workspace.message.created": "Workspace event: a message was posted",
    "workspace.message.updated": "Workspace event: a message was edited; only its name comes",
    "workspace.message.deleted": "Workspace event: a message was deleted",
    "workspace.message.by_app": "Workspace event: the app's own message comes back; skipped unless configured",
    "workspace.membership.created": "Workspace event: somebody joined",
    "workspace.membership.deleted": "Workspace event: somebody left",
    "workspace.reaction.created": "Workspace event: a reaction was set",
    "workspace.reaction.deleted": "Workspace event: a reaction was taken back",
    "workspace.subscription.reminder": "the Workspace subscription ends in 12 hours",
    "workspace.subscription.suspended": "the Workspace subscription is suspended",
    "noise.text": "text typed in the console: goes to quarantine",
    "noise.json": "a notification that is no Chat event: goes to quarantine",
};

/// All of them, in the order of the documentation.
#[must_use]
pub const fn built_in() -> &'static [BuiltIn] {
    SAMPLES
}

/// The one of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static BuiltIn> {
    SAMPLES.iter().find(|sample| sample.name == name)
}

impl BuiltIn {
    /// The message, with the times it was written with; see [`super::restamp()`].
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test parses every one of them")]
    pub fn raw(&self) -> RawEvent {
        parse(self.text.as_bytes()).expect("built-in samples are sample messages")
    }
}
