//! Workspace Events CloudEvents, binary mode (attributes `ce-…`) and structured mode (all in the body).

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;

use super::{
    Basis, ChatEvent,
    attributes::{Attributes, lookup},
    canonical::{Canon, Hash, Scrub, Sink, digest, hex_text},
    chat::fits_view,
    document::{Document, Kind, Value},
    id::Fields,
    splice,
    timestamp::Instant,
    unwrap,
};

/// A recognised CloudEvent. An empty attribute counts as absent.
pub(super) struct CloudEvent<'d> {
    /// All attributes.
    pub(super) attributes: Attributes<'d>,
    /// The `type` attribute.
    pub(super) event_type: Option<Cow<'d, str>>,
    id: Option<Cow<'d, str>>,
    source: Option<Cow<'d, str>>,
    subject: Option<Cow<'d, str>>,
    time: Option<Cow<'d, str>>,
    /// What the event carries.
    pub(super) data: Data<'d>,
}

/// The data of a CloudEvent: the same in either mode.
pub(super) enum Data<'d> {
    /// Nothing.
    Absent,
    /// A part of the document, and its bytes.
    Part(Value<'d>, Bytes),
    /// JSON of its own, out of `data_base64`.
    Own(Document),
    /// Bytes that are not JSON.
    Bytes(Bytes),
}

/// Recognises a CloudEvent by the attribute `ce-type`, else by the content type or the body.
pub(super) fn recognise<'d>(
    attributes: &'d BTreeMap<String, String>,
    body: &Bytes,
    document: Option<&'d Document>,
) -> Option<CloudEvent<'d>> {
    let binary = Attributes::Binary(attributes);
    if binary.get("ce-type").is_some() {
        let data = match document {
            Some(document) => Data::Part(document.root(), body.clone()),
            None if body.is_empty() => Data::Absent,
            None => Data::Bytes(body.clone()),
        };
        return Some(CloudEvent::new(binary, data));
    }
    let event = document.map(Document::root).filter(|root| root.is_object())?;
    let declared = lookup(attributes, "content-type").is_some_and(|content_type| {
        content_type.as_bytes().get(..23).is_some_and(|start| start.eq_ignore_ascii_case(b"application/cloudevents"))
    });
    let given = |name| event.get(name).is_some_and(|value| matches!(value.kind(), Kind::Text(_)));
    let complete =
        || (given("specversion") || given("spec_version")) && ["id", "source", "type"].into_iter().all(given);
    (declared || complete()).then(|| CloudEvent::new(Attributes::Structured(event), structured_data(event, body)))
}

fn structured_data<'d>(event: Value<'d>, body: &Bytes) -> Data<'d> {
    if let Some(data) = event.get("data").filter(|data| !data.is_null()) {
        let bytes = splice::member(body, "data").map(|range| body.slice(range));
        return Data::Part(data, bytes.unwrap_or_default());
    }
    let encoded = event.get("data_base64").and_then(Value::text);
    match encoded.and_then(|text| unwrap::base64_bytes(text.as_bytes())) {
        Some(bytes) => Document::parse(bytes).map_or_else(Data::Bytes, Data::Own),
        None => Data::Absent,
    }
}

impl<'d> CloudEvent<'d> {
    fn new(attributes: Attributes<'d>, data: Data<'d>) -> Self {
        Self {
            attributes,
            event_type: attributes.get("ce-type"),
            id: attributes.get("ce-id"),
            source: attributes.get("ce-source"),
            subject: attributes.get("ce-subject"),
            time: attributes.get("ce-time"),
            data,
        }
    }

    /// When it happened.
    pub(super) fn time(&self) -> Option<Instant> {
        Instant::parse(self.time.as_ref()?.as_bytes())
    }

    /// The fields of the id, and what they rest on.
    pub(super) fn fields(&self, message_id: &str) -> (Fields, Basis) {
        let mut fields = Fields::new();
        let (id, source) = (self.id.as_deref(), self.source.as_deref());
        fields.push("t", self.event_type.as_deref());
        match (id, source) {
            // Two overlapping Workspace subscriptions deliver one Chat event under different sources.
            (Some(name), _) if is_space_event(name) => {
                fields.push("id", id);
                (fields, Basis::CeSpaceEvent)
            }
            (Some(_), Some(_)) => {
                fields.push("src", source);
                fields.push("id", id);
                (fields, Basis::CeSourceId)
            }
            _ => {
                let printed = self.time.as_deref().map(|text| match Instant::parse(text.as_bytes()) {
                    Some(instant) => instant.to_string(),
                    None => format!("raw:{text}"),
                });
                fields.push("src", source);
                fields.push("sub", self.subject.as_deref());
                fields.push("id", id);
                fields.push("time", printed.as_deref());
                fields.push("d", self.data.digest().map(|digest| hex_text(&digest)).as_deref());
                fields.push("x", Some(message_id).filter(|_| self.time.is_none()));
                (fields, Basis::CePartial)
            }
        }
    }

    /// The body for the fingerprint: the same bytes in either mode.
    pub(super) fn write_fingerprint<S: Sink>(&self, canon: &mut Canon<S>) {
        canon.raw(b"{s4:data=");
        self.data.write(canon);
        canon.raw(b",s4:type=");
        match &self.event_type {
            Some(event_type) => canon.string(event_type.as_bytes()),
            None => canon.raw(b"null"),
        }
        canon.raw(b"}");
    }

    /// The typed view.
    pub(super) fn view(&self) -> ChatEvent {
        let data = self.data.value();
        let part = |name: &str| data?.get(name);
        let (message, reaction, membership) = (part("message"), part("reaction"), part("membership"));
        let name = text(message, &["name"]);
        let from_names = || {
            let resource = [reaction, membership, part("space")].into_iter().find_map(|part| text(part, &["name"]));
            let subject = self.subject.as_deref().and_then(|subject| subject.strip_prefix("//chat.googleapis.com/"));
            [name, resource, subject, self.id.as_deref()].into_iter().flatten().find_map(space_of)
        };
        let user = || text(reaction, &["user", "name"]).or_else(|| text(membership, &["member", "name"]));
        ChatEvent {
            space: text(message, &["space", "name"]).or_else(from_names).map(str::to_owned),
            user: text(message, &["sender", "name"]).or_else(user).map(str::to_owned),
            thread: text(message, &["thread", "name"]).map(str::to_owned),
            message: name.map(str::to_owned),
            command: None,
            action: None,
            sender_type: text(message, &["sender", "type"]).or_else(|| batch_sender(data?)).map(str::to_owned),
        }
    }
}

/// A string for the typed view.
fn text<'d>(part: Option<Value<'d>>, path: &[&str]) -> Option<&'d str> {
    part?.path(path)?.text().filter(|text| fits_view(text))
}

impl Data<'_> {
    /// As JSON, when it is that.
    pub(super) fn value(&self) -> Option<Value<'_>> {
        match self {
            Self::Part(value, _) => Some(*value),
            Self::Own(document) => Some(document.root()),
            Self::Absent | Self::Bytes(_) => None,
        }
    }

    fn write<S: Sink>(&self, canon: &mut Canon<S>) {
        match self {
            Self::Absent => canon.raw(b"null"),
            Self::Part(value, _) => canon.value(*value),
            Self::Own(document) => canon.value(document.root()),
            Self::Bytes(bytes) => canon.string(bytes),
        }
    }

    /// SHA-256 of its canonical bytes.
    pub(super) fn digest(&self) -> Option<[u8; 32]> {
        match self {
            Self::Absent => None,
            Self::Part(value, _) => Some(digest(*value, Scrub::default())),
            Self::Own(document) => Some(digest(document.root(), Scrub::default())),
            Self::Bytes(bytes) => {
                let mut canon = Canon::new(Hash::new(), Scrub::default());
                canon.string(bytes);
                Some(canon.into_sink().finish())
            }
        }
    }

    /// The data as it came.
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Absent => Bytes::new(),
            Self::Part(_, bytes) | Self::Bytes(bytes) => bytes,
            Self::Own(document) => document.text().clone(),
        }
    }
}

/// `spaces/S/spaceEvents/E`: names the event for everybody, whichever subscription brings it.
fn is_space_event(id: &str) -> bool {
    let mut parts = id.as_bytes().split(|byte| *byte == b'/');
    let mut next = || parts.next();
    matches!(
        (next(), next(), next(), next(), next()),
        (Some(b"spaces"), Some([_, ..]), Some(b"spaceEvents"), Some([_, ..]), None)
    )
}

/// The space that a name begins with, as a name for the typed view.
fn space_of(name: &str) -> Option<&str> {
    let space = name.strip_prefix("spaces/")?.split('/').next()?;
    let name = name.get(.."spaces/".len() + space.len())?;
    (!space.is_empty() && space != "-" && fits_view(name)).then_some(name)
}

/// The sender type that all messages of a batch share: a batch with one human in it is not the app's echo.
fn batch_sender(data: Value<'_>) -> Option<&str> {
    let mut types = data.get("messages")?.elements().map(|one| one.path(&["message", "sender", "type"])?.text());
    let first = types.next()??;
    types.all(|other| other == Some(first)).then_some(first)
}
