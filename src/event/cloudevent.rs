//! Workspace Events CloudEvents, binary mode (attributes `ce-…`) and structured mode (all in the body).

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;

use super::{
    Basis, ChatEvent,
    canonical::{Canon, Hash, Scrub, Sink, digest, hex_text},
    chat::{number_text, view_text},
    document::{Document, Kind, Value},
    id::Fields,
    splice,
    timestamp::Instant,
    unwrap,
};

/// A recognised CloudEvent.
pub(super) struct CloudEvent<'d> {
    /// Attribute names without `ce-`, lower case.
    pub(super) attributes: BTreeMap<String, String>,
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
    attributes: &BTreeMap<String, String>,
    body: &Bytes,
    document: Option<&'d Document>,
) -> Option<CloudEvent<'d>> {
    if attribute(attributes, "ce-type").is_some_and(|value| !value.is_empty()) {
        let attributes = binary(attributes);
        let data = match document {
            Some(document) => Data::Part(document.root(), body.clone()),
            None if body.is_empty() => Data::Absent,
            None => Data::Bytes(body.clone()),
        };
        return Some(CloudEvent { attributes, data });
    }
    let event = document.map(Document::root).filter(|root| root.is_object())?;
    let declared = attribute(attributes, "content-type").is_some_and(|content_type| {
        content_type.as_bytes().get(..23).is_some_and(|start| start.eq_ignore_ascii_case(b"application/cloudevents"))
    });
    let given = |name| event.get(name).is_some_and(|value| matches!(value.kind(), Kind::Text(_)));
    let complete =
        || (given("specversion") || given("spec_version")) && ["id", "source", "type"].into_iter().all(given);
    (declared || complete()).then(|| structured(event, body))
}

/// The value of an attribute, whatever the case of its name; the exact name first.
fn attribute<'a>(attributes: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    let exact = attributes.get(name);
    let other = || attributes.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    exact.or_else(other).map(String::as_str)
}

/// Attributes named `ce-…` in any case, without it; of two that differ only in case the lower one.
fn binary(attributes: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, value) in attributes {
        let lower = lower_case(name);
        if let Some(short) = lower.strip_prefix("ce-")
            && (lower == *name || !found.contains_key(short))
        {
            found.insert(short.to_owned(), value.clone());
        }
    }
    found
}

fn lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) { name.to_ascii_lowercase().into() } else { name.into() }
}

fn structured<'d>(event: Value<'d>, body: &Bytes) -> CloudEvent<'d> {
    let mut attributes = BTreeMap::new();
    for (name, value) in event.members() {
        let name = match name {
            b"data" | b"data_base64" => continue,
            b"spec_version" => "specversion",
            name => std::str::from_utf8(name).unwrap_or_default(),
        };
        let text = match value.kind() {
            Kind::Text(_) => value.text().map(str::to_owned),
            Kind::Bool(value) => Some(value.to_string()),
            _ => number_text(value),
        };
        // Given twice, the last one wins, also when it is no attribute.
        match text {
            Some(text) => attributes.insert(name.to_owned(), text),
            None => attributes.remove(name),
        };
    }
    let encoded =
        || event.get("data_base64").and_then(Value::text).and_then(|text| unwrap::base64_bytes(text.as_bytes()));
    let data = match event.get("data").filter(|data| !data.is_null()) {
        Some(data) => {
            let bytes = splice::member(body, "data").map(|range| body.slice(range));
            Data::Part(data, bytes.unwrap_or_default())
        }
        None => {
            encoded().map_or(Data::Absent, |bytes| Document::parse(bytes.clone()).map_or(Data::Bytes(bytes), Data::Own))
        }
    };
    CloudEvent { attributes, data }
}

impl CloudEvent<'_> {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The `type` attribute.
    pub(super) fn event_type(&self) -> Option<&str> {
        self.attribute("type")
    }

    /// When it happened.
    pub(super) fn time(&self) -> Option<Instant> {
        Instant::parse(self.attribute("time")?.as_bytes())
    }

    /// The fields of the id, and what they rest on.
    pub(super) fn fields(&self, message_id: &str) -> (Fields, Basis) {
        let mut fields = Fields::new();
        let (id, source) = (self.attribute("id"), self.attribute("source"));
        fields.push("t", self.event_type());
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
                let time = self.attribute("time");
                let printed = time.map(|text| match Instant::parse(text.as_bytes()) {
                    Some(instant) => instant.to_string(),
                    None => format!("raw:{text}"),
                });
                fields.push("src", source);
                fields.push("sub", self.attribute("subject"));
                fields.push("id", id);
                fields.push("time", printed.as_deref());
                fields.push("d", self.data.digest().map(|digest| hex_text(&digest)).as_deref());
                fields.push("x", Some(message_id).filter(|_| time.is_none()));
                (fields, Basis::CePartial)
            }
        }
    }

    /// The body for the fingerprint: the same bytes in either mode.
    pub(super) fn write_fingerprint<S: Sink>(&self, canon: &mut Canon<S>) {
        canon.raw(b"{");
        canon.string(b"data");
        canon.raw(b"=");
        self.data.write(canon);
        canon.raw(b",");
        canon.string(b"type");
        canon.raw(b"=");
        match self.event_type() {
            Some(event_type) => canon.string(event_type.as_bytes()),
            None => canon.raw(b"null"),
        }
        canon.raw(b"}");
    }

    /// The typed view.
    pub(super) fn view(&self) -> ChatEvent {
        let root = self.data.value();
        let data = |path: &[&str]| view_text(root?.path(path)?);
        let first = |paths: &[&[&str]]| paths.iter().find_map(|path| data(path));
        let message = data(&["message", "name"]);
        let resource = first(&[&["reaction", "name"], &["membership", "name"], &["space", "name"]]);
        let subject = self.attribute("subject").and_then(|subject| subject.strip_prefix("//chat.googleapis.com/"));
        let from_names = || {
            [message.as_deref(), resource.as_deref(), subject, self.attribute("id")]
                .into_iter()
                .flatten()
                .find_map(space_of)
        };
        ChatEvent {
            space: data(&["message", "space", "name"]).or_else(from_names),
            user: first(&[
                &["message", "sender", "name"],
                &["reaction", "user", "name"],
                &["membership", "member", "name"],
            ]),
            thread: data(&["message", "thread", "name"]),
            sender_type: data(&["message", "sender", "type"]).or_else(|| batch_sender(root?)),
            message,
            command: None,
            action: None,
        }
    }
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
    let parts = id.strip_prefix("spaces/").and_then(|rest| rest.split_once("/spaceEvents/"));
    parts.is_some_and(|(space, event)| [space, event].iter().all(|part| !part.is_empty() && !part.contains('/')))
}

fn space_of(name: &str) -> Option<String> {
    let space = name.strip_prefix("spaces/")?.split('/').next()?;
    (!space.is_empty() && space != "-").then(|| format!("spaces/{space}"))
}

/// The sender type that all messages of a batch share: a batch with one human in it is not the app's echo.
fn batch_sender(data: Value<'_>) -> Option<String> {
    let mut types = data.get("messages")?.elements().map(|one| one.path(&["message", "sender", "type"])?.text());
    let first = types.next()??;
    types.all(|other| other == Some(first)).then(|| first.to_owned())
}
