//! Raw bytes to a decoded event: its kind, its id, its fingerprint.

mod addon;
mod attributes;
mod canonical;
mod chat;
mod cloudevent;
mod compare;
mod decode;
mod document;
mod id;
pub mod sample;
mod splice;
#[cfg(test)]
mod tests;
mod timestamp;
mod unwrap;

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use attributes::Attributes;
pub use compare::{Beside, Comparison, Listed, Other, Part, Why, behind, beside, compare, plain, why_opaque};
pub use decode::decode;
pub use id::Fields;

/// The `[events]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Leave credentials (redirect URLs, authorisation objects) in what handlers get.
    pub pass_credentials: bool,
    /// Skip `WIDGET_UPDATED`: it needs an answer that Pub/Sub can not carry.
    pub skip_widget_updated: bool,
    /// Skip `APP_HOME`: it needs an answer that Pub/Sub can not carry.
    pub skip_app_home: bool,
    /// Skip CloudEvent messages that an app sent: answering them would loop.
    pub skip_bot_messages: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { pass_credentials: false, skip_widget_updated: true, skip_app_home: true, skip_bot_messages: true }
    }
}

/// What came over the source, untouched.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RawEvent {
    /// The payload, byte for byte.
    pub data: Bytes,
    /// Transport attributes as delivered (names are compared case-insensitively when read).
    pub attributes: BTreeMap<String, String>,
    /// The transport's id: constant over redeliveries, new for every publish. Empty when unknown.
    pub message_id: String,
    /// When the transport accepted it.
    pub publish_time: Option<DateTime<Utc>>,
    /// The transport's ordering key, empty when none.
    pub ordering_key: String,
    /// How often the transport delivered it, where it counts that.
    pub delivery_attempt: Option<u32>,
}

impl fmt::Debug for RawEvent {
    /// Never the payload or the attributes: both are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawEvent")
            .field("bytes", &self.data.len())
            .field("attributes", &self.attributes.len())
            .field("message_id", &self.message_id)
            .field("publish_time", &self.publish_time)
            .field("delivery_attempt", &self.delivery_attempt)
            .finish_non_exhaustive()
    }
}

/// The id of an event: `bh1-<kind>-<32 hex>`. Equal for every copy of one event, different for different events.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(String);

impl EventId {
    /// Takes a text that already is an id.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the id rests on. Stored and shown next to the id, never part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basis {
    /// Interaction with an event time.
    IxTime,
    /// Interaction without a time, identified by its message.
    IxMessage,
    /// Interaction that only the transport id identifies.
    IxTransport,
    /// CloudEvent with a Chat space event id.
    CeSpaceEvent,
    /// CloudEvent with source and id.
    CeSourceId,
    /// CloudEvent that lacks one of them.
    CePartial,
    /// Not a Chat event.
    Opaque,
}

impl Basis {
    /// The name used in listings and stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IxTime => "ix-time",
            Self::IxMessage => "ix-message",
            Self::IxTransport => "ix-transport",
            Self::CeSpaceEvent => "ce-space-event",
            Self::CeSourceId => "ce-source-id",
            Self::CePartial => "ce-partial",
            Self::Opaque => "opaque",
        }
    }
}

/// Tells a forged or wrongly merged event from a copy: a version byte, then 16 bytes of SHA-256. Never identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 17]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical::hex_text(&self.0))
    }
}

/// The shape an event arrived in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Interaction event with `type` at the top level.
    Classic,
    /// Workspace add-on event: `chat` + `commonEventObject`.
    Addon,
    /// Workspace Events API CloudEvent, binary or structured.
    CloudEvent,
    /// Anything else.
    Opaque,
}

/// A slash command, quick command or message action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// `SLASH_COMMAND`, `QUICK_COMMAND`, `MESSAGE_ACTION`, or what else the event says.
    pub kind: String,
    /// The command id as configured in the Chat API console, decimal.
    pub id: String,
    /// The name as typed (`/restart`), where the event carries it.
    pub name: Option<String>,
}

/// What rules, metrics, logs and handlers' headers read from an event. Resource names only, no private text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChatEvent {
    /// `spaces/…`
    pub space: Option<String>,
    /// `users/…`
    pub user: Option<String>,
    /// `spaces/…/threads/…`
    pub thread: Option<String>,
    /// `spaces/…/messages/…`
    pub message: Option<String>,
    /// The command, when the event is one.
    pub command: Option<Command>,
    /// The name of the invoked card action or function.
    pub action: Option<String>,
    /// `HUMAN` or `BOT`: who sent the message the event is about.
    pub sender_type: Option<String>,
}

/// A decoded event.
#[derive(Clone)]
pub struct Event {
    /// The bytes and attributes it was decoded from.
    pub raw: Arc<RawEvent>,
    /// Its id.
    pub id: EventId,
    /// What the id rests on.
    pub basis: Basis,
    /// Its shape; `Opaque` events are never shown to a handler.
    pub shape: Shape,
    /// `MESSAGE`, `CARD_CLICKED`, …, a CloudEvent's `type` attribute, `addon:<key>`, or `OPAQUE`.
    pub event_type: String,
    /// Mismatch detection.
    pub fingerprint: Fingerprint,
    /// When it happened, as far as the event says so.
    pub time: Option<DateTime<Utc>>,
    /// Milliseconds since 1970 of field e for the claim key; 0 for CloudEvents, opaque payloads, no or unreadable
    /// time, or a year outside 2000..2100.
    pub key_time_ms: u64,
    /// The typed view.
    pub chat: ChatEvent,
    /// The body a handler gets: the unwrapped event byte for byte; for a CloudEvent its `data`.
    pub body: Bytes,
    /// A CloudEvent's attributes when they are not those of `raw`: they came in its body, or in an envelope.
    pub(crate) inner_attributes: Option<BTreeMap<String, String>>,
    /// What the id was made from: shows why two events did or did not merge.
    pub fields: Fields,
}

impl fmt::Debug for Event {
    /// Never the payload: it is private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("id", &self.id)
            .field("basis", &self.basis)
            .field("shape", &self.shape)
            .field("event_type", &self.event_type)
            .field("time", &self.time)
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}

/// An id without times and without the transport's id. Two events with one soft key within minutes *may* be one event
/// published twice with a fresh time: worth counting, never a reason to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SoftKey([u8; 16]);

impl fmt::Display for SoftKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical::hex_text(&self.0))
    }
}

/// What a Workspace Events subscription says about its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LifecycleWarning {
    /// It ends within hours unless renewed.
    Expiring,
    /// It ended: create it anew.
    Expired,
    /// It is suspended: nothing comes until it is reactivated.
    Suspended,
}

impl LifecycleWarning {
    /// The name used in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expiring => "expiring",
            Self::Expired => "expired",
            Self::Suspended => "suspended",
        }
    }
}

/// Values that let their holder act for a user or the app, or make a private message public.
const CREDENTIALS: [&str; 3] = ["configCompleteRedirectUrl", "configCompleteRedirectUri", "authorizationEventObject"];

/// The interaction types there are.
pub const INTERACTION_TYPES: [&str; 8] = [
    "MESSAGE",
    "ADDED_TO_SPACE",
    "REMOVED_FROM_SPACE",
    "CARD_CLICKED",
    "WIDGET_UPDATED",
    "APP_COMMAND",
    "APP_HOME",
    "SUBMIT_FORM",
];

/// What else metrics may be labelled with. A publisher can invent types, so anything else is `other`.
const OTHER_LABELS: [&str; 23] = [
    "OPAQUE",
    "google.workspace.chat.message.v1.created",
    "google.workspace.chat.message.v1.updated",
    "google.workspace.chat.message.v1.deleted",
    "google.workspace.chat.message.v1.batchCreated",
    "google.workspace.chat.message.v1.batchUpdated",
    "google.workspace.chat.message.v1.batchDeleted",
    "google.workspace.chat.reaction.v1.created",
    "google.workspace.chat.reaction.v1.deleted",
    "google.workspace.chat.reaction.v1.batchCreated",
    "google.workspace.chat.reaction.v1.batchDeleted",
    "google.workspace.chat.membership.v1.created",
    "google.workspace.chat.membership.v1.updated",
    "google.workspace.chat.membership.v1.deleted",
    "google.workspace.chat.membership.v1.batchCreated",
    "google.workspace.chat.membership.v1.batchUpdated",
    "google.workspace.chat.membership.v1.batchDeleted",
    "google.workspace.chat.space.v1.updated",
    "google.workspace.chat.space.v1.deleted",
    "google.workspace.chat.space.v1.batchUpdated",
    "google.workspace.events.subscription.v1.expirationReminder",
    "google.workspace.events.subscription.v1.expired",
    "google.workspace.events.subscription.v1.suspended",
];

/// The label of a type that is in no list.
const UNLISTED: &str = "other";

/// Everything that [`Event::type_label`] can be.
pub fn type_labels() -> impl Iterator<Item = &'static str> {
    INTERACTION_TYPES.into_iter().chain(OTHER_LABELS).chain([UNLISTED])
}

impl Event {
    /// A CloudEvent's attributes without their `ce-` prefix (`id`, `source`, `type`, …); empty for other shapes.
    #[must_use]
    pub fn ce_attributes(&self) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
        match &self.inner_attributes {
            Some(inner) => inner.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            None if self.shape == Shape::CloudEvent => Attributes::Binary(&self.raw.attributes).all(),
            None => BTreeMap::new(),
        }
    }

    /// The type, out of a closed set; `other` for what is not in it.
    #[must_use]
    pub fn type_label(&self) -> &'static str {
        type_labels().find(|label| *label == self.event_type).unwrap_or(UNLISTED)
    }

    /// The body without redirect URLs and authorisation objects, wherever they stand. Everything else stays byte for
    /// byte; a body that has none of them is the same memory.
    #[must_use]
    pub fn body_without_credentials(&self) -> Bytes {
        if self.shape == Shape::Opaque {
            return self.body.clone();
        }
        splice::without(&self.body, &CREDENTIALS).map_or_else(|| self.body.clone(), Bytes::from)
    }

    /// What a subscription says about its own end, when the event is that.
    #[must_use]
    pub fn lifecycle_warning(&self) -> Option<LifecycleWarning> {
        match self.event_type.strip_prefix("google.workspace.events.subscription.v1.")? {
            _ if self.shape != Shape::CloudEvent => None,
            "expirationReminder" => Some(LifecycleWarning::Expiring),
            "expired" => Some(LifecycleWarning::Expired),
            "suspended" => Some(LifecycleWarning::Suspended),
            _ => None,
        }
    }

    /// The id without times and transport id, for interactions: the only events whose publisher may stamp a copy anew.
    #[must_use]
    pub fn soft_key(&self) -> Option<SoftKey> {
        matches!(self.shape, Shape::Classic | Shape::Addon).then(|| self.fields.soft_key())
    }

    /// The earlier of event time and publish time; `now` when the event has neither.
    #[must_use]
    pub fn born(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        match (self.time, self.raw.publish_time) {
            (Some(time), Some(published)) => time.min(published),
            (None, Some(published)) => published,
            (Some(time), None) => time,
            (None, None) => now,
        }
    }
}
