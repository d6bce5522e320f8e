//! Why messages are one event, or several.

use std::collections::{BTreeSet, HashMap};

use super::{
    super::output::{counted, printable, table},
    fate::Fate,
};
use crate::event::{Basis, Beside, Comparison, Event, EventId, Fingerprint, Listed, Other, Part, Why, beside, compare};

/// Events kept for comparison, and bytes of theirs; what comes on top is listed, not compared.
const MOST_EVENTS: usize = 1_000;
const MOST_BYTES: usize = 64 << 20;
/// Copies of one event that are listed, and the last one on top.
const MOST_COPIES: usize = 100;

/// Groups messages by their id as they come.
#[derive(Default)]
pub(super) struct Explanation {
    groups: Vec<Group>,
    places: HashMap<EventId, usize>,
    messages: usize,
    kept: usize,
    kept_bytes: usize,
}

/// The messages with one id.
struct Group {
    id: EventId,
    /// Of the first message.
    label: String,
    fate: Fate,
    base: Base,
    copies: Vec<Copy>,
    /// Copies that are not listed.
    more: usize,
    /// Some message has another fate than the first.
    mixed: bool,
    /// Some message has other content than the one it was held against.
    differs: bool,
    /// Some message is acked as a copy.
    copied: bool,
}

/// What later messages of an id are held against: the one that holds its claim, the first until there is one.
struct Base {
    label: String,
    fingerprint: Fingerprint,
    /// `None` when too many were kept already.
    event: Option<Event>,
}

/// A message with the id of one before it.
pub(super) struct Copy {
    label: String,
    fate: Fate,
    /// What it was held against.
    pub(super) against: String,
    /// The fingerprints are equal too.
    is_true: bool,
    same_bytes: bool,
    /// What differs; `None` when what it was held against was not kept.
    pub(super) others: Option<Listed<Other>>,
}

impl Explanation {
    /// Takes a message. When one with its id was there: how this one differs.
    pub(super) fn take(&mut self, label: &str, event: &Event, fate: Fate) -> Option<&Copy> {
        self.messages += 1;
        let Some(place) = self.places.get(&event.id).copied() else {
            let base = self.keep(label, event);
            self.places.insert(event.id.clone(), self.groups.len());
            self.groups.push(Group::new(label, event, fate, base));
            return None;
        };
        let rebased = if fate.claims() { Some(self.keep(label, event)) } else { None };
        self.groups.get_mut(place)?.take(label, event, fate, rebased)
    }

    /// The event is kept when there is room.
    fn keep(&mut self, label: &str, event: &Event) -> Base {
        let fits = self.kept < MOST_EVENTS && self.kept_bytes + event.raw.data.len() <= MOST_BYTES;
        if fits {
            self.kept += 1;
            self.kept_bytes += event.raw.data.len();
        }
        Base { label: label.to_owned(), fingerprint: event.fingerprint, event: fits.then(|| event.clone()) }
    }

    /// All of it, for people; nothing for a single message.
    pub(super) fn text(&self) -> String {
        if self.messages < 2 {
            return String::new();
        }
        let mut text = String::new();
        if self.messages > 2 {
            text += &format!("\n{} messages, {}.\n", self.messages, counted(self.groups.len(), "event"));
        }
        let mut unless = " (unless it is older than claims.retention allows)";
        for group in self.groups.iter().filter(|group| !group.copies.is_empty()) {
            text += &group.text(unless);
            // Once is enough.
            unless = if group.fate == Fate::Handled { "" } else { unless };
        }
        let pairs = self.neighbours();
        for (a, b) in &pairs {
            text += &two_events(a, b);
        }
        if self.types().len() > 1 && (self.groups.len() > 2 || pairs.is_empty()) {
            text += "\nEvents of different types are never one event.\n";
        }
        let left = self.groups.iter().filter(|group| group.base.event.is_none()).count();
        if left > 0 {
            text += &format!("\n{} not compared with others: these are too many.\n", counted(left, "event"));
        }
        text
    }

    /// Each event with the next of its type; two alone whatever they are.
    fn neighbours(&self) -> Vec<(&Group, &Group)> {
        if let ([a, b], 2) = (&self.groups[..], self.messages) {
            return vec![(a, b)];
        }
        let mut last: HashMap<&str, &Group> = HashMap::new();
        let mut pairs = Vec::new();
        for group in &self.groups {
            let Some(first) = &group.base.event else { continue };
            if let Some(before) = last.insert(&first.event_type, group) {
                pairs.push((before, group));
            }
        }
        pairs
    }

    fn types(&self) -> BTreeSet<&str> {
        self.groups.iter().filter_map(|group| Some(&*group.base.event.as_ref()?.event_type)).collect()
    }
}

impl Copy {
    fn new(label: &str, base: &Base, event: &Event, fate: Fate) -> Self {
        let others = base.event.as_ref().and_then(|base| match compare(base, event) {
            Comparison::One(others) => Some(others),
            Comparison::Two(_) => None,
        });
        let is_true = base.fingerprint == event.fingerprint;
        let same_bytes = base.event.as_ref().is_some_and(|base| base.raw.data == event.raw.data);
        Self { label: label.to_owned(), fate, against: base.label.clone(), is_true, same_bytes, others }
    }

    fn text(&self, group: &Group) -> String {
        let mut text = format!("  {}: {}", printable(&self.label), self.verdict());
        text += &match self.fate {
            Fate::Mismatch => ": it goes to quarantine as a mismatch".to_owned(),
            Fate::Copy => String::new(),
            Fate::Skipped(_) if !group.mixed => String::new(),
            Fate::Skipped(_) => format!("; {}, it makes no claim", self.fate.words()),
            Fate::Handled | Fate::Quarantined(_) | Fate::Undecodable => {
                format!("; {}, as the first that claims the id", self.fate.words())
            }
        };
        if self.against != group.label {
            text += &format!(" (held against {})", printable(&self.against));
        }
        text.push('\n');
        let Some(others) = &self.others else { return text };
        let mut rest = &others.shown[..];
        while let Some(first) = rest.first() {
            let (these, others) = rest.split_at(rest.iter().take_while(|other| other.why == first.why).count());
            let names: Vec<_> = these.iter().map(|other| other.name.as_str()).collect();
            text += &format!("    {} ({})\n", names.join(", "), reason(first.why));
            rest = others;
        }
        if others.more > 0 {
            text += &format!("    and {} more\n", others.more);
        }
        text
    }

    fn verdict(&self) -> &'static str {
        match (&self.others, self.is_true, self.same_bytes) {
            (_, false, _) => "one id, but different content",
            (None, ..) => "not compared",
            (Some(others), ..) if others.is_empty() => "a copy; nothing differs",
            (_, _, true) => "a copy, with the same payload; what differs is no part of the id",
            (_, _, false) => "a copy; what differs is no part of the id",
        }
    }
}

/// Why a difference does not count.
const fn reason(why: Why) -> &'static str {
    match why {
        Why::Content => "copies of one event agree in this",
        Why::Transport => "the transport sets it for every publish or delivery",
        Why::Attribute => "no id is made from it here",
        Why::Volatile => "may change between copies: looked up when the event is sent, or a credential",
        Why::Card => "the echoed card may have been changed meanwhile",
        Why::Time => "the same time, printed otherwise",
        Why::Written => "the same payload, written or wrapped otherwise",
    }
}

impl Group {
    fn new(label: &str, event: &Event, fate: Fate, base: Base) -> Self {
        let (id, label) = (event.id.clone(), label.to_owned());
        Self { id, label, fate, base, copies: Vec::new(), more: 0, mixed: false, differs: false, copied: false }
    }

    /// Takes a later message; from `rebased` on the next ones are held against this one.
    fn take(&mut self, label: &str, event: &Event, fate: Fate, rebased: Option<Base>) -> Option<&Copy> {
        if self.copies.len() > MOST_COPIES {
            self.copies.pop();
            self.more += 1;
        }
        let copy = Copy::new(label, &self.base, event, fate);
        self.mixed |= fate != self.fate;
        self.differs |= !copy.is_true;
        self.copied |= fate == Fate::Copy;
        if let Some(base) = rebased {
            self.base = base;
        }
        self.copies.push(copy);
        self.copies.last()
    }

    /// `unless` stands behind "handled".
    fn text(&self, unless: &str) -> String {
        let fate = self.fate.words();
        let then = match self.fate {
            Fate::Skipped(_) if self.mixed => "A message that is skipped makes no claim and leaves the id free.".into(),
            Fate::Skipped(_) => format!("Each message is {fate}."),
            _ => {
                let unless = if self.fate == Fate::Handled { unless } else { "" };
                let copies = if self.copied { "; copies are acked, no handler is called for them" } else { "" };
                format!("The first message is {fate}{unless}{copies}.")
            }
        };
        let about = if self.differs { "One id, but different content" } else { "One event" };
        let messages = counted(self.copies.len() + self.more + 1, "message");
        let mut text = format!("\n{about}: {messages} have the id {}. {then}\n", self.id);
        let first = if self.mixed && !self.fate.claims() { format!(", {fate}") } else { String::new() };
        text += &format!("  {}: the first{first}\n", printable(&self.label));
        text.extend(self.copies.iter().map(|copy| copy.text(self)));
        if self.more > 0 {
            text += &format!("  and {} more\n", self.more);
        }
        text
    }
}

fn two_events(a: &Group, b: &Group) -> String {
    let (Some(first), Some(second)) = (&a.base.event, &b.base.event) else { return String::new() };
    let Comparison::Two(parts) = compare(first, second) else { return String::new() };
    let of = if first.event_type == second.event_type { format!(" ({})", first.event_type) } else { String::new() };
    let mut rows = vec![vec![String::new(), String::new(), a.base.label.clone(), b.base.label.clone()]];
    rows.extend(parts.shown.iter().map(|part| {
        let Part { field, name, first, second } = part.clone();
        vec![field, name, first, second]
    }));
    let mut text = format!("\nTwo events{}: these parts of their ids differ.\n{}", printable(&of), table(&rows));
    if parts.more > 0 {
        text += &format!("and {} more\n", parts.more);
    }
    if parts.shown.iter().all(|part| part.field == "x") {
        text += &by_transport(first, second);
    }
    text
}

/// Where only the transport tells two events apart.
fn by_transport(first: &Event, second: &Event) -> String {
    let Beside { payload, message_ids } = beside(first, second);
    let apart = match first.basis {
        _ if message_ids == [false, false] => {
            return "Neither has a message id, so the payload stands in for it: any difference in its bytes makes another \
                    event.\n"
                .to_owned();
        }
        Basis::IxTransport | Basis::CePartial if !payload.is_empty() => {
            let mut names: Vec<_> = payload.shown.iter().map(|other| printable(&other.name)).collect();
            names.extend((payload.more > 0).then(|| format!("and {} more", payload.more)));
            format!(
                "No part of the id but the message id differs. The payloads differ where it does not count: {}.\n",
                names.join(", ")
            )
        }
        Basis::IxTransport => "Nothing in the payloads tells these two apart.\n".to_owned(),
        Basis::CePartial => "Nothing in these CloudEvents tells them apart.\n".to_owned(),
        Basis::Opaque => "The payloads are the same, but no Chat events.\n".to_owned(),
        Basis::IxTime | Basis::IxMessage | Basis::CeSpaceEvent | Basis::CeSourceId => return String::new(),
    };
    let rests = match first.basis {
        Basis::IxTransport => "They carry no event time and nothing else of their own",
        Basis::CePartial => "Id or source is missing, and the time",
        _ => "Nothing of theirs is an id",
    };
    let one = if message_ids == [true, true] { "" } else { " One of them has no message id." };
    let basis = first.basis.as_str();
    format!(
        "{apart}{rests}, so the id rests on the transport's message id ({basis}).{one}\n\
             Published twice, one such event counts as two.\n"
    )
}
