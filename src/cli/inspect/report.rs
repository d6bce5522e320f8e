//! Every message with what bellhop reads from it.

use std::io::{self, Write};

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};

use super::{
    super::output::{printable, table},
    Form, Sink,
    explain::Explanation,
    fate::Fates,
};
use crate::{
    claim::Key,
    event::{Event, Shape, behind, why_opaque},
};

/// Messages for which it is said why they are no events.
const MOST_OPAQUE: usize = 20;

/// Shows messages one by one; the table, and why they are one event or several, at the end.
pub(super) struct Report<'a> {
    form: Form,
    scope: &'a str,
    fates: Fates,
    rows: Vec<Vec<String>>,
    /// Why messages are no events, and how many more there are.
    opaque: (Vec<String>, usize),
    explanation: Explanation,
}

impl<'a> Report<'a> {
    pub(super) fn new(form: Form, origin: &str, scope: &'a str, fates: Fates) -> Self {
        let header = [origin, "ID", "BASIS", "TYPE", "SPACE", "USER", "TIME", "FATE"].map(str::to_owned);
        Self {
            form,
            scope,
            fates,
            rows: vec![header.to_vec()],
            opaque: (Vec::new(), 0),
            explanation: Explanation::default(),
        }
    }

    fn json(&mut self, label: &str, event: &Event) -> Value {
        let fate = self.fates.of(event);
        let seen = self.explanation.take(label, event, fate);
        let same_id_as = seen.map(|copy| copy.against.clone());
        let differs: Option<Vec<Value>> = seen.and_then(|copy| copy.others.as_ref()).map(|others| {
            others.shown.iter().map(|other| json!({"name": other.name, "why": other.why.as_str()})).collect()
        });
        let behind: Vec<Value> = behind(event)
            .shown
            .iter()
            .map(|part| json!({"field": part.field, "name": part.name, "value": part.first}))
            .collect();
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
            "behind": behind,
            "fate": fate.as_str(),
            "no_event": why_opaque(event),
            "same_id_as": same_id_as,
            "differs": differs,
        })
    }
}

impl Sink for Report<'_> {
    fn take(&mut self, label: &str, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Json => {
                let told = self.json(label, event);
                writeln!(out, "{told}")
            }
            Form::Tsv => writeln!(out, "{}\t{}\t{}", printable(label), event.id, event.basis.as_str()),
            Form::Table => {
                let cell = |text: Option<&String>| text.cloned().unwrap_or_else(|| "-".to_owned());
                let fate = self.fates.of(event);
                self.rows.push(vec![
                    label.to_owned(),
                    event.id.to_string(),
                    event.basis.as_str().to_owned(),
                    event.event_type.clone(),
                    cell(event.chat.space.as_ref()),
                    cell(event.chat.user.as_ref()),
                    cell(time(event).as_ref()),
                    fate.cell(),
                ]);
                self.explanation.take(label, event, fate);
                match why_opaque(event) {
                    Some(why) if self.opaque.0.len() < MOST_OPAQUE => {
                        self.opaque.0.push(format!("  {}: {why}\n", printable(label)));
                    }
                    why => self.opaque.1 += usize::from(why.is_some()),
                }
                Ok(())
            }
        }
    }

    fn finish(self: Box<Self>, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.len() > 1 {
            write!(out, "{}", table(&self.rows))?;
        }
        if let (true, (lines, more)) = (!self.opaque.0.is_empty(), &self.opaque) {
            write!(out, "\nNo Chat events (OPAQUE):\n{}", lines.concat())?;
            if *more > 0 {
                writeln!(out, "  and {more} more")?;
            }
        }
        if self.form == Form::Table { write!(out, "{}", self.explanation.text()) } else { Ok(()) }
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
