//! From raw bytes to an event: unwrap, recognise, identify.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Basis, ChatEvent, Event, Fingerprint, RawEvent, Shape,
    attributes::Attributes,
    canonical::{Canon, Hash, Scrub, hash, hex_text},
    chat::{self, Interaction},
    cloudevent::{self, CloudEvent},
    id::Fields,
    timestamp::Instant,
    unwrap::{Unwrapped, unwrap},
};

/// Decodes a raw event. Total: every input gives an event with an id; what is not a Chat event is `Shape::Opaque`.
///
/// Work is bounded by the size of the input: at most five parses, 127 levels, one pass per hash.
#[must_use]
pub fn decode(raw: &Arc<RawEvent>) -> Event {
    let unwrapped = unwrap(raw);
    let (attributes, message_id) = facts(raw, &unwrapped);
    match recognise(attributes, &unwrapped) {
        Recognised::CloudEvent(event) => of_cloudevent(raw, event, &unwrapped, message_id),
        Recognised::Interaction(interaction) => of_interaction(raw, &interaction, &unwrapped, message_id),
        Recognised::Opaque => opaque(raw, attributes, message_id),
    }
}

/// What an event is.
pub(super) enum Recognised<'d> {
    CloudEvent(CloudEvent<'d>),
    Interaction(Interaction<'d>),
    Opaque,
}

/// The attributes and the message id that count: those of a push envelope stand for those of the delivery.
pub(super) fn facts<'d>(raw: &'d RawEvent, unwrapped: &'d Unwrapped) -> (&'d BTreeMap<String, String>, &'d str) {
    match &unwrapped.envelope {
        Some(envelope) => (&envelope.attributes, &*envelope.message_id),
        None => (&raw.attributes, &*raw.message_id),
    }
}

/// Tries the shapes in their order.
pub(super) fn recognise<'d>(attributes: &'d BTreeMap<String, String>, unwrapped: &'d Unwrapped) -> Recognised<'d> {
    let document = unwrapped.document();
    if let Some(event) = cloudevent::recognise(attributes, unwrapped.bytes(), document) {
        return Recognised::CloudEvent(event);
    }
    document.and_then(|document| chat::recognise(document.root())).map_or(Recognised::Opaque, Recognised::Interaction)
}

fn of_cloudevent(raw: &Arc<RawEvent>, event: CloudEvent<'_>, unwrapped: &Unwrapped, message_id: &str) -> Event {
    let (fields, basis) = event.fields(message_id);
    let in_raw = unwrapped.envelope.is_none() && matches!(event.attributes, Attributes::Binary(_));
    let owned = || event.attributes.all().into_iter().map(|(name, value)| (name.into_owned(), value.into_owned()));
    Event {
        raw: Arc::clone(raw),
        id: fields.id("ce"),
        basis,
        shape: Shape::CloudEvent,
        event_type: shown(event.event_type.as_deref().unwrap_or("UNKNOWN")),
        fingerprint: fingerprint(false, |canon| event.write_fingerprint(canon)),
        time: event.time().and_then(Instant::to_utc),
        // The key's time would have to come from a field of the id; a CloudEvent's time is none.
        key_time_ms: 0,
        chat: event.view(),
        inner_attributes: (!in_raw).then(|| owned().collect()),
        body: event.data.into_bytes(),
        fields,
    }
}

fn of_interaction(
    raw: &Arc<RawEvent>,
    interaction: &Interaction<'_>,
    unwrapped: &Unwrapped,
    message_id: &str,
) -> Event {
    let (fields, basis) = interaction.fields(message_id, unwrapped.bytes());
    let time = interaction.time();
    Event {
        raw: Arc::clone(raw),
        id: fields.id("ix"),
        basis,
        shape: interaction.shape,
        event_type: shown(&interaction.event_type),
        fingerprint: fingerprint(interaction.echoes_card(), |canon| canon.value(interaction.root)),
        time: time.and_then(Instant::to_utc),
        key_time_ms: time.map_or(0, Instant::key_millis),
        chat: interaction.view(),
        inner_attributes: None,
        body: unwrapped.bytes().clone(),
        fields,
    }
}

/// What is not a Chat event: identified by transport id and bytes, so that two equal texts stay two events.
fn opaque(raw: &Arc<RawEvent>, attributes: &BTreeMap<String, String>, message_id: &str) -> Event {
    let mut fields = Fields::new();
    fields.push("x", Some(message_id));
    fields.push("d", Some(&hex_text(&hash(&raw.data))));
    let attributes = message_id.is_empty().then(|| hex_text(&attributes_digest(attributes)));
    fields.push("at", attributes.as_deref());
    Event {
        raw: Arc::clone(raw),
        id: fields.id("op"),
        basis: Basis::Opaque,
        shape: Shape::Opaque,
        event_type: "OPAQUE".to_owned(),
        fingerprint: fingerprint(false, |canon| canon.raw(&raw.data)),
        time: None,
        key_time_ms: 0,
        chat: ChatEvent::default(),
        inner_attributes: None,
        body: raw.data.clone(),
        fields,
    }
}

/// SHA-256 over the attributes as a canonical object. The map is sorted already.
fn attributes_digest(attributes: &BTreeMap<String, String>) -> [u8; 32] {
    let mut canon = Canon::new(Hash::new(), Scrub::default());
    canon.raw(b"{");
    for (index, (name, value)) in attributes.iter().enumerate() {
        if index > 0 {
            canon.raw(b",");
        }
        canon.string(name.as_bytes());
        canon.raw(b"=");
        canon.string(value.as_bytes());
    }
    canon.raw(b"}");
    canon.into_sink().finish()
}

/// Version 1: a hash of what must be equal in two copies of one event.
fn fingerprint(echoes_card: bool, write: impl FnOnce(&mut Canon<Hash>)) -> Fingerprint {
    let mut canon = Canon::new(Hash::new(), Scrub { volatile: true, times: true, messages: echoes_card });
    canon.raw(b"bellhop.fp.v1\0");
    write(&mut canon);
    let mut fingerprint = [1; 17];
    fingerprint[1..].copy_from_slice(&canon.into_sink().finish()[..16]);
    Fingerprint(fingerprint)
}

/// Longest type kept, in bytes: it goes to stores, headers and logs, and a publisher can invent it.
const MAX_TYPE: usize = 200;

/// A type as shown: cut to a bound, control characters replaced.
fn shown(event_type: &str) -> String {
    if event_type.len() <= MAX_TYPE && !chat::has_controls(event_type) {
        return event_type.to_owned();
    }
    let end = event_type.floor_char_boundary(MAX_TYPE);
    event_type[..end].chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
