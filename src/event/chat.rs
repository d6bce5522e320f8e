//! Chat interaction events, classic and add-on: what they are, what identifies them, what is read from them.

use std::{borrow::Cow, cmp::Ordering};

use super::{
    Basis, ChatEvent, Command, INTERACTION_TYPES, Shape, addon,
    canonical::{Canon, Hash, Scrub, digest, hash, hex_text},
    document::{Kind, Value},
    id::Fields,
    timestamp::Instant,
};

/// A recognised interaction.
pub(super) struct Interaction<'d> {
    pub(super) shape: Shape,
    pub(super) event_type: Cow<'d, str>,
    pub(super) root: Value<'d>,
    /// Where values are looked up, in this order: the payload, then `chat` or the top level.
    places: [Option<Value<'d>>; 2],
    payload_keys: Vec<&'d str>,
}

/// Recognises an add-on event, else a classic one.
pub(super) fn recognise(root: Value<'_>) -> Option<Interaction<'_>> {
    if let Some(addon) = addon::recognise(root) {
        let places = [addon.payload, Some(addon.chat)];
        let (event_type, payload_keys) = (addon.event_type, addon.payload_keys);
        return Some(Interaction { shape: Shape::Addon, event_type, root, places, payload_keys });
    }
    let event_type = root.get("type")?.text()?;
    let object = |key| root.get(key).is_some_and(Value::is_object);
    let timed = || root.get("eventTime").is_some_and(is_given) && (object("space") || object("user"));
    (INTERACTION_TYPES.contains(&event_type) || timed()).then(|| Interaction {
        shape: Shape::Classic,
        event_type: Cow::Borrowed(event_type),
        root,
        places: [None, Some(root)],
        payload_keys: Vec::new(),
    })
}

/// Neither `null` nor the empty string.
fn is_given(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::Text(text) => !text.is_empty(),
        _ => true,
    }
}

impl<'d> Interaction<'d> {
    /// What `find` gives for the first place where it gives something.
    fn look<T>(&self, find: impl Fn(Value<'d>) -> Option<T>) -> Option<T> {
        self.places.iter().flatten().find_map(|place| find(*place))
    }

    /// Like `look`, and in the message at last.
    fn look_deep<T>(&self, find: impl Fn(Value<'d>) -> Option<T>) -> Option<T> {
        self.look(&find).or_else(|| self.in_message(find))
    }

    fn in_message<T>(&self, find: impl Fn(Value<'d>) -> Option<T>) -> Option<T> {
        self.look(|place| find(place.get("message")?))
    }

    fn name_of(&self, key: &str) -> Option<&'d str> {
        self.look_deep(|place| place.path(&[key, "name"])?.text())
    }

    fn user(&self) -> Option<&'d str> {
        let sender = || self.in_message(|message| message.path(&["sender", "name"])?.text());
        self.name_of("user").or_else(|| if self.event_type == "MESSAGE" { sender() } else { None })
    }

    fn message_name(&self) -> Option<&'d str> {
        self.in_message(|message| message.get("name")?.text())
    }

    fn event_time(&self) -> Option<Value<'d>> {
        self.look_deep(|place| place.get("eventTime").filter(|value| is_given(*value)))
    }

    /// When it happened.
    pub(super) fn time(&self) -> Option<Instant> {
        Instant::read(self.event_time()?)
    }

    /// The echoed card of such an event may have been patched between two copies of it.
    pub(super) fn echoes_card(&self) -> bool {
        matches!(&*self.event_type, "CARD_CLICKED" | "WIDGET_UPDATED")
    }

    fn is_known(&self) -> bool {
        INTERACTION_TYPES.contains(&&*self.event_type)
    }

    /// The fields of the id, and what they rest on. `body` stands in for a transport id that is missing.
    pub(super) fn fields(&self, message_id: &str, body: &[u8]) -> (Fields, Basis) {
        let is_message = self.event_type == "MESSAGE";
        let message = self.message_name();
        let time = self.event_time().map(print_time);
        let edited = || self.in_message(|message| message.get("lastUpdateTime").filter(|value| is_given(*value)));
        let edited = if is_message { edited().map(print_time) } else { None };
        let by_transport = time.is_none() && !(is_message && message.is_some());
        let transport = by_transport.then(|| match message_id {
            "" => Cow::Owned(hex_text(&hash(body))),
            message_id => Cow::Borrowed(message_id),
        });
        let whole = !self.is_known() || (is_message && message.is_none());
        let whole = whole.then(|| digest(self.root, Scrub { volatile: true, ..Scrub::default() }));

        let mut fields = Fields::new();
        fields.push("t", Some(&self.event_type));
        fields.push("s", self.name_of("space"));
        fields.push("u", self.user());
        fields.push("m", message);
        fields.push("v", edited.as_deref());
        fields.push("h", self.name_of("thread"));
        fields.push("e", time.as_deref());
        fields.push("g", self.dialog());
        fields.push("c", self.command_id().map(|(kind, id)| format!("{kind}/{id}")).as_deref());
        fields.push("a", self.action_digest().map(|digest| hex_text(&digest)).as_deref());
        fields.push("p", Some(self.payload_keys.join(",")).filter(|_| self.payload_keys.len() > 1).as_deref());
        fields.push("d", whole.map(|digest| hex_text(&digest)).as_deref());
        fields.push("x", transport.as_deref());
        let basis = match (time, by_transport) {
            (Some(_), _) => Basis::IxTime,
            (None, false) => Basis::IxMessage,
            (None, true) => Basis::IxTransport,
        };
        (fields, basis)
    }

    fn dialog(&self) -> Option<&'d str> {
        let is_dialog = self.look(|place| match place.get("isDialogEvent")?.kind() {
            Kind::Null => None,
            Kind::Bool(value) => Some(value),
            Kind::Text(text) => Some(text == b"true"),
            _ => Some(false),
        });
        let kind = || self.look(|place| place.get("dialogEventType")?.text());
        is_dialog?.then(|| kind().unwrap_or("TYPE_UNSPECIFIED"))
    }

    /// Kind and id of the command; number and text ids read the same.
    fn command_id(&self) -> Option<(&'d str, Cow<'d, str>)> {
        let id_in = |value: Value<'d>, key| {
            let id = value.get(key)?;
            id.text().map(Cow::Borrowed).or_else(|| number_text(id).map(Cow::Owned))
        };
        let app = self.look_deep(|place| place.get("appCommandMetadata")).and_then(|metadata| {
            let kind = metadata.get("appCommandType").and_then(Value::text);
            let id = id_in(metadata, "appCommandId");
            (kind.is_some() || id.is_some()).then(|| (kind.unwrap_or_default(), id.unwrap_or_default()))
        });
        let slash = || self.in_message(|message| id_in(message.get("slashCommand")?, "commandId"));
        app.or_else(|| Some(("SLASH_COMMAND", slash()?)))
    }

    /// `common`, or `commonEventObject` as add-ons and newer events name it.
    fn common(&self) -> Option<Value<'d>> {
        ["common", "commonEventObject"].into_iter().find_map(|key| self.root.get(key).filter(|value| value.is_object()))
    }

    fn action(&self) -> Option<Value<'d>> {
        self.look(|place| place.get("action").filter(|value| value.is_object()))
    }

    /// The function that was invoked: f.
    pub(super) fn function(&self) -> Option<&'d str> {
        let declared = |key: &str| self.action()?.get(key)?.text();
        let invoked = || self.common()?.get("invokedFunction")?.text();
        declared("actionMethodName").or_else(|| declared("function")).or_else(invoked)
    }

    /// What was pressed and what was entered, as one digest.
    fn action_digest(&self) -> Option<[u8; 32]> {
        let has_action = matches!(&*self.event_type, "CARD_CLICKED" | "SUBMIT_FORM" | "WIDGET_UPDATED" | "APP_COMMAND");
        if !has_action && self.is_known() {
            return None;
        }
        let mut canon = Canon::new(Hash::new(), Scrub::default());
        canon.raw(b"{s1:f=");
        match self.function() {
            Some(function) => canon.string(function.as_bytes()),
            None => canon.raw(b"null"),
        }
        canon.raw(b",s1:i=");
        match self.form_inputs() {
            Some(inputs) => canon.value(inputs),
            None => canon.raw(b"{}"),
        }
        canon.raw(b",s1:p=[");
        for (index, (key, value)) in self.parameters().into_iter().enumerate() {
            canon.raw(if index == 0 { b"[" } else { b",[" });
            canon.string(key);
            canon.raw(b",");
            match value {
                Some(value) => canon.value(value),
                None => canon.string(b""),
            }
            canon.raw(b"]");
        }
        canon.raw(b"]}");
        Some(canon.into_sink().finish())
    }

    /// What was entered: i.
    pub(super) fn form_inputs(&self) -> Option<Value<'d>> {
        self.common()?.get("formInputs").filter(|inputs| !inputs.is_null())
    }

    /// p: key and value of every parameter, sorted, each pair once: classic events give them twice. A value that is left
    /// out is the empty string, as protobuf JSON leaves it out.
    pub(super) fn parameters(&self) -> Vec<(&'d [u8], Option<Value<'d>>)> {
        let listed = self.action().and_then(|action| action.get("parameters"));
        let listed = listed.into_iter().flat_map(Value::elements);
        let mapped = self.common().and_then(|common| common.get("parameters"));
        let mapped = mapped.into_iter().flat_map(Value::last_members).map(|(key, value)| (key, Some(value)));
        let mut pairs: Vec<_> = listed
            .map(|one| (one.get("key").and_then(Value::text).unwrap_or_default().as_bytes(), one.get("value")))
            .chain(mapped)
            .collect();
        let order = |a: &(&[u8], Option<Value<'d>>), b: &(&[u8], Option<Value<'d>>)| {
            a.0.cmp(b.0).then_with(|| compare(a.1, b.1))
        };
        pairs.sort_unstable_by(order);
        pairs.dedup_by(|a, b| order(a, b).is_eq());
        pairs
    }

    /// The typed view.
    pub(super) fn view(&self) -> ChatEvent {
        let text = |text: Option<&str>| text.and_then(bounded);
        ChatEvent {
            space: text(self.name_of("space")),
            user: text(self.user()),
            thread: text(self.name_of("thread")),
            message: text(self.message_name()),
            command: self.command(),
            action: text(self.function().or_else(|| self.historic_function())),
            sender_type: text(self.in_message(|message| message.path(&["sender", "type"])?.text())),
        }
    }

    /// Cards older than an add-on conversion name their function in a parameter.
    fn historic_function(&self) -> Option<&'d str> {
        self.common()?.path(&["parameters", "__action_method_name__"])?.text()
    }

    /// Only a name that the event declares: the first word of the text is private, and may be anything.
    fn command(&self) -> Option<Command> {
        let (kind, id) = self.command_id()?;
        let name = self.in_message(|message| {
            let mut commands = message.get("annotations")?.elements().filter_map(|one| one.get("slashCommand"));
            commands.find_map(|command| command.get("commandName")?.text())
        });
        let slashed = |name: &str| if name.starts_with('/') { name.to_owned() } else { format!("/{name}") };
        let name = name.filter(|_| kind == "SLASH_COMMAND").and_then(bounded).map(|name| slashed(&name));
        Some(Command { kind: bounded(kind)?, id: bounded(&id)?, name })
    }
}

/// A normalised instant, or `raw:` and the text that is none.
fn print_time(value: Value<'_>) -> String {
    match (Instant::read(value), value.text()) {
        (Some(instant), _) => instant.to_string(),
        (None, Some(text)) => format!("raw:{text}"),
        (None, None) => format!("raw:{}", String::from_utf8_lossy(&canonical(value))),
    }
}

/// Order of parameter values: strings by their bytes, before others by their canonical bytes.
fn compare(a: Option<Value<'_>>, b: Option<Value<'_>>) -> Ordering {
    fn text(value: Option<Value<'_>>) -> Option<&[u8]> {
        match value.map(Value::kind) {
            None => Some(&[]),
            Some(Kind::Text(text)) => Some(text),
            Some(_) => None,
        }
    }
    match (text(a), text(b)) {
        (Some(a), Some(b)) => a.cmp(b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.map(canonical).cmp(&b.map(canonical)),
    }
}

/// The canonical bytes of a value.
pub(super) fn canonical(value: Value<'_>) -> Vec<u8> {
    let mut canon = Canon::new(Vec::new(), Scrub::default());
    canon.value(value);
    canon.into_sink()
}

/// An integer as decimal text; other numbers as their canonical text.
pub(super) fn number_text(value: Value<'_>) -> Option<String> {
    match value.kind() {
        Kind::Unsigned(number) => Some(number.to_string()),
        Kind::Signed(number) => Some(number.to_string()),
        Kind::Float(_) => String::from_utf8(canonical(value)).ok(),
        _ => None,
    }
}

/// Longest text of the typed view, in bytes. Names are far shorter; what is longer was made up.
const MAX_VIEW: usize = 512;

/// Names go to stores, logs and headers: no control characters, no more than a name's length.
pub(super) fn fits_view(text: &str) -> bool {
    text.len() <= MAX_VIEW && !has_controls(text)
}

fn bounded(text: &str) -> Option<String> {
    fits_view(text).then(|| text.to_owned())
}

/// True when there is a control character in the text.
pub(super) fn has_controls(text: &str) -> bool {
    let plain = |byte: u8| (b' '..0x7f).contains(&byte);
    !text.bytes().all(plain) && text.chars().any(char::is_control)
}
