//! Why two events are, or are not, one: for people who look at two messages.
//!
//! Nothing here decides anything. Both sides are read again by the code that makes ids, so what is told is what was
//! hashed. Message texts, names, addresses and credentials are told by their length and digest only.

mod identity;
mod ignored;
mod opaque;
mod readable;
mod walk;

use std::collections::BTreeMap;

pub use readable::plain;

use super::{
    Event, Shape,
    chat::Interaction,
    cloudevent::CloudEvent,
    decode::{Recognised, facts, recognise},
    unwrap::{Unwrapped, unwrap},
};

/// What two events differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// Their ids are equal: what differs all the same.
    One(Listed<Other>),
    /// Their ids differ: in these parts of what they are made from. Never empty.
    Two(Listed<Part>),
}

/// A part of what an id is made from. Values are bounded and printable, and they differ as shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The field of the id, as in `docs/EVENTS.md`.
    pub field: String,
    /// What it is, in words; of a digest the part that was hashed, such as `parameter "req"`.
    pub name: String,
    /// The value in the first event.
    pub first: String,
    /// The value in the second event.
    pub second: String,
}

/// A difference between two messages with one id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Other {
    /// Why it is no part of the id.
    pub why: Why,
    /// What differs; no values.
    pub name: String,
}

/// Why a difference is no part of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Copies of one event agree in it: one of the two is forged, or they were merged wrongly.
    Content,
    /// The transport sets it anew.
    Transport,
    /// An attribute that no id is made from.
    Attribute,
    /// It may change between two copies: looked up when the event is sent, rotating, or a credential.
    Volatile,
    /// The app's own card, echoed: it may have been changed meanwhile.
    Card,
    /// The same time, printed otherwise.
    Time,
    /// The way the same payload is wrapped or written.
    Written,
}

impl Why {
    /// The name used in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Transport => "transport",
            Self::Attribute => "attribute",
            Self::Volatile => "volatile",
            Self::Card => "card",
            Self::Time => "time",
            Self::Written => "written",
        }
    }
}

/// The first of many, and how many there are beyond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The first, in order.
    pub shown: Vec<T>,
    /// How many more there are.
    pub more: usize,
}

/// Longest list. What is more than this does not help anybody.
const MOST: usize = 20;

impl<T> Listed<T> {
    const fn new() -> Self {
        Self { shown: Vec::new(), more: 0 }
    }

    /// What does not fit is counted and not made.
    fn push_with(&mut self, make: impl FnOnce() -> T) {
        if self.shown.len() == MOST {
            self.more += 1;
        } else {
            self.shown.push(make());
        }
    }

    /// True when there is nothing at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }
}

/// What two events differ in.
#[must_use]
pub fn compare(first: &Event, second: &Event) -> Comparison {
    let (a, b) = (Opened::new(first), Opened::new(second));
    let (a, b) = (a.side(), b.side());
    if first.id == second.id {
        Comparison::One(ignored::others(&a, &b))
    } else {
        Comparison::Two(identity::parts(&a, &b))
    }
}

/// What two events with different ids differ in beside the parts of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// What differs in their payloads. The reasons are those for which copies may, or may not, differ in it.
    pub payload: Listed<Other>,
    /// True for the first and the second when a message id is known.
    pub message_ids: [bool; 2],
}

/// What two events with different ids differ in where only the transport tells them apart.
#[must_use]
pub fn beside(first: &Event, second: &Event) -> Beside {
    let (a, b) = (Opened::new(first), Opened::new(second));
    let (a, b) = (a.side(), b.side());
    let message_ids = [!a.message_id.is_empty(), !b.message_id.is_empty()];
    Beside { payload: ignored::of_payload(&a, &b), message_ids }
}

/// Why a message is no Chat event, without anything of its text; `None` for one that is.
#[must_use]
pub fn why_opaque(event: &Event) -> Option<String> {
    (event.shape == Shape::Opaque).then(|| opaque::reason(&Opened::new(event).unwrapped))
}

/// The readable values behind the digest `a` of an event: what was pressed and what was entered.
#[must_use]
pub fn behind(event: &Event) -> Listed<Part> {
    let opened = Opened::new(event);
    let mut parts = Listed::new();
    if event.fields.iter().any(|(name, value)| name == "a" && value.is_some()) {
        identity::action(opened.side().interaction(), None, &mut parts);
    }
    parts
}

/// An event, unwrapped once more.
struct Opened<'e> {
    event: &'e Event,
    unwrapped: Unwrapped,
}

/// One of the two that are compared.
struct Side<'o> {
    event: &'o Event,
    unwrapped: &'o Unwrapped,
    attributes: &'o BTreeMap<String, String>,
    message_id: &'o str,
    recognised: Recognised<'o>,
}

impl<'e> Opened<'e> {
    fn new(event: &'e Event) -> Self {
        Self { event, unwrapped: unwrap(&event.raw) }
    }

    fn side(&self) -> Side<'_> {
        let (attributes, message_id) = facts(&self.event.raw, &self.unwrapped);
        let recognised = recognise(attributes, &self.unwrapped);
        Side { event: self.event, unwrapped: &self.unwrapped, attributes, message_id, recognised }
    }
}

impl<'o> Side<'o> {
    const fn interaction(&self) -> Option<&Interaction<'o>> {
        match &self.recognised {
            Recognised::Interaction(interaction) => Some(interaction),
            Recognised::CloudEvent(_) | Recognised::Opaque => None,
        }
    }

    const fn cloudevent(&self) -> Option<&CloudEvent<'o>> {
        match &self.recognised {
            Recognised::CloudEvent(event) => Some(event),
            Recognised::Interaction(_) | Recognised::Opaque => None,
        }
    }

    /// The kind of the id, in words.
    const fn kind(&self) -> &'static str {
        match self.event.shape {
            Shape::Classic | Shape::Addon => "interaction",
            Shape::CloudEvent => "CloudEvent",
            Shape::Opaque => "no Chat event",
        }
    }
}
