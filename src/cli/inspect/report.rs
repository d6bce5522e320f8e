//! Every message with what bellhop reads from it.

use std::io::{self, Write};

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};

use super::{
    super::output::{printable, table},
    Form, Sink,
};
use crate::{
    claim::Key,
    event::{Event, EventId, Fields, Fingerprint, Shape},
};

/// Shows messages one by one; the table at the end.
pub(super) struct Report<'a> {
    form: Form,
    scope: &'a str,
    rows: Vec<Vec<String>>,
    /// The first two, to compare them.
    pair: Vec<Compared>,
}

struct Compared {
    id: EventId,
    fingerprint: Fingerprint,
    fields: Fields,
}

impl<'a> Report<'a> {
    pub(super) fn new(form: Form, origin: &str, scope: &'a str) -> Self {
        let header = [origin, "ID", "BASIS", "TYPE", "SPACE", "USER", "TIME"].map(str::to_owned);
        Self { form, scope, rows: vec![header.to_vec()], pair: Vec::new() }
    }

    fn json(&self, label: &str, event: &Event) -> Value {
        let chat = &event.chat;
        let command = chat.command.as_ref();
        let fields: Map<String, Value> =
            event.fields.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        json!({
            "file": label,
            "id": event.id.as_str(),
            "basis": event.basis.as_str(),
            "key": Key::derive(self.scope, event).to_string(),
            "fingerprint": event.fingerprint.to_string(),
            "type": event.event_type,
            "space": chat.space,
            "user": chat.user,
            "thread": chat.thread,
            "time": time(event),
            "shape": shape(event.shape),
            "message": chat.message,
            "command": command.map(|command| json!({"kind": command.kind, "id": command.id, "name": command.name})),
            "action": chat.action,
            "sender_type": chat.sender_type,
            "message_id": event.raw.message_id,
            "publish_time": event.raw.publish_time.map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            "soft_key": event.soft_key().map(|key| key.to_string()),
            "fields": fields,
        })
    }
}

impl Sink for Report<'_> {
    fn take(&mut self, label: &str, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Json => writeln!(out, "{}", self.json(label, event)),
            Form::Tsv => writeln!(out, "{}\t{}\t{}", printable(label), event.id, event.basis.as_str()),
            Form::Table => {
                let cell = |text: Option<&String>| text.cloned().unwrap_or_else(|| "-".to_owned());
                self.rows.push(vec![
                    label.to_owned(),
                    event.id.to_string(),
                    event.basis.as_str().to_owned(),
                    event.event_type.clone(),
                    cell(event.chat.space.as_ref()),
                    cell(event.chat.user.as_ref()),
                    cell(time(event).as_ref()),
                ]);
                if self.rows.len() <= 3 {
                    let (id, fingerprint, fields) = (event.id.clone(), event.fingerprint, event.fields.clone());
                    self.pair.push(Compared { id, fingerprint, fields });
                }
                Ok(())
            }
        }
    }

    fn finish(self: Box<Self>, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.len() > 1 {
            write!(out, "{}", table(&self.rows))?;
        }
        match &self.pair[..] {
            [a, b] if self.rows.len() == 3 => write!(out, "\n{}", compare(a, b)),
            _ => Ok(()),
        }
    }
}

/// Why two messages are, or are not, one event.
fn compare(a: &Compared, b: &Compared) -> String {
    if a.id == b.id {
        let same = "One event: every field of the id is equal; the second is handled as a copy of the first.\n";
        let forged = "One id, but different content: the second goes to quarantine as a mismatch.\n";
        return if a.fingerprint == b.fingerprint { same } else { forged }.to_owned();
    }
    let value = |fields: &Fields, name: &str| {
        fields.iter().find(|(other, _)| *other == name).and_then(|(_, value)| value).unwrap_or("-").to_owned()
    };
    let mut names: Vec<&str> = a.fields.iter().map(|(name, _)| name).collect();
    names.extend(b.fields.iter().map(|(name, _)| name).filter(|name| a.fields.iter().all(|(other, _)| other != *name)));
    let rows = names.into_iter().map(|name| {
        let about = about(name).to_owned();
        vec![name.to_owned(), about, value(&a.fields, name), value(&b.fields, name)]
    });
    let different: Vec<_> = rows.filter(|row| row[2] != row[3]).collect();
    format!("Two events: these fields of the id differ.\n{}", table(&different))
}

/// What a field of an id holds.
fn about(name: &str) -> &'static str {
    match name {
        "t" => "type",
        "s" => "space",
        "u" => "user",
        "m" => "message name",
        "v" => "last edit",
        "h" => "thread",
        "e" => "event time",
        "g" => "dialog",
        "c" => "command",
        "a" => "action and inputs (digest)",
        "p" => "payload keys",
        "d" => "content (digest)",
        "x" => "transport id",
        "at" => "attributes (digest)",
        "id" => "CloudEvent id",
        "src" => "CloudEvent source",
        "sub" => "CloudEvent subject",
        "time" => "CloudEvent time",
        _ => "",
    }
}

fn time(event: &Event) -> Option<String> {
    event.time.map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

const fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Classic => "classic",
        Shape::Addon => "addon",
        Shape::CloudEvent => "cloudevent",
        Shape::Opaque => "opaque",
    }
}
