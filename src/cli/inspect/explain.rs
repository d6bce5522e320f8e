//! Why messages are one event, or several.

use std::collections::{BTreeSet, HashMap};

use super::{
    super::output::{printable, table},
    fate::{Fate, Fates},
};
use crate::event::{Basis, Comparison, Event, EventId, Listed, Other, Part, Why, compare};

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
    label: String,
    /// `None` when too many were kept already.
    first: Option<Event>,
    copies: Vec<Copy>,
    /// Copies that are not listed.
    more: usize,
}

/// A message with the id of one before it.
pub(super) struct Copy {
    label: String,
    /// The fingerprints are equal too.
    pub(super) is_true: bool,
    same_bytes: bool,
    /// What differs from the first; `None` when that was not kept.
    pub(super) others: Option<Listed<Other>>,
}

impl Explanation {
    /// Takes a message. When one with its id was there: where, and how this one differs.
    pub(super) fn take(&mut self, label: &str, event: &Event) -> Option<(&str, &Copy)> {
        self.messages += 1;
        let Some(place) = self.places.get(&event.id) else {
            let fits = self.kept < MOST_EVENTS && self.kept_bytes + event.raw.data.len() <= MOST_BYTES;
            if fits {
                self.kept += 1;
                self.kept_bytes += event.raw.data.len();
            }
            self.places.insert(event.id.clone(), self.groups.len());
            let first = fits.then(|| event.clone());
            self.groups.push(Group {
                id: event.id.clone(),
                label: label.to_owned(),
                first,
                copies: Vec::new(),
                more: 0,
            });
            return None;
        };
        let group = self.groups.get_mut(*place)?;
        if group.copies.len() > MOST_COPIES {
            group.copies.pop();
            group.more += 1;
        }
        group.copies.push(Copy::new(label, group.first.as_ref(), event));
        group.copies.last().map(|copy| (&*group.label, copy))
    }

    /// All of it, for people; nothing for a single message.
    pub(super) fn text(&self, fates: &Fates) -> String {
        if self.messages < 2 {
            return String::new();
        }
        let mut text = String::new();
        if self.messages > 2 {
            text += &format!("\n{} messages, {}.\n", self.messages, counted(self.groups.len(), "event"));
        }
        for group in self.groups.iter().filter(|group| !group.copies.is_empty()) {
            text += &group.text(fates);
        }
        let pairs = self.neighbours();
        for (a, b) in &pairs {
            text += &two_events(a, b);
        }
        if self.types().len() > 1 && (self.groups.len() > 2 || pairs.is_empty()) {
            text += "\nEvents of different types are never one event.\n";
        }
        let left = self.groups.iter().filter(|group| group.first.is_none()).count();
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
            let Some(first) = &group.first else { continue };
            if let Some(before) = last.insert(&first.event_type, group) {
                pairs.push((before, group));
            }
        }
        pairs
    }

    fn types(&self) -> BTreeSet<&str> {
        self.groups.iter().filter_map(|group| Some(&*group.first.as_ref()?.event_type)).collect()
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

impl Copy {
    fn new(label: &str, first: Option<&Event>, event: &Event) -> Self {
        let others = first.and_then(|first| match compare(first, event) {
            Comparison::One(others) => Some(others),
            Comparison::Two(_) => None,
        });
        let is_true = first.is_none_or(|first| first.fingerprint == event.fingerprint);
        let same_bytes = first.is_some_and(|first| first.raw.data == event.raw.data);
        Self { label: label.to_owned(), is_true, same_bytes, others }
    }

    fn text(&self, is_skipped: bool) -> String {
        let Some(others) = &self.others else { return format!("  {}: not compared\n", printable(&self.label)) };
        let verdict = match (self.is_true, self.same_bytes, others.is_empty()) {
            (false, ..) if is_skipped => "one id, but different content",
            (false, ..) => "one id, but different content: it goes to quarantine as a mismatch",
            (true, _, true) => "a copy; nothing differs",
            (true, true, false) => "a copy, with the same payload; what differs is no part of the id",
            (true, false, false) => "a copy; what differs is no part of the id",
        };
        let mut text = format!("  {}: {verdict}\n", printable(&self.label));
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
    fn text(&self, fates: &Fates) -> String {
        let copies = self.copies.iter().filter(|copy| copy.is_true).count();
        let fate = self.first.as_ref().map(|first| fates.of(first));
        let then = match fate {
            None => String::new(),
            Some(skipped @ Fate::Skipped(_)) => format!(" Each message is {}.", skipped.words()),
            Some(fate) if copies > 0 => {
                format!(" The first message is {}; copies are acked, no handler is called for them.", fate.words())
            }
            Some(fate) => format!(" The first message is {}.", fate.words()),
        };
        let about = if copies == 0 { "One id, but different content" } else { "One event" };
        let messages = counted(self.copies.len() + self.more + 1, "message");
        let mut text = format!("\n{about}: {messages} have the id {}.{then}\n", self.id);
        text += &format!("  {}: the first\n", printable(&self.label));
        let is_skipped = matches!(fate, Some(Fate::Skipped(_)));
        text.extend(self.copies.iter().map(|copy| copy.text(is_skipped)));
        if self.more > 0 {
            text += &format!("  and {} more\n", self.more);
        }
        text
    }
}

fn two_events(a: &Group, b: &Group) -> String {
    let (Some(first), Some(second)) = (&a.first, &b.first) else { return String::new() };
    let Comparison::Two(parts) = compare(first, second) else { return String::new() };
    let of = if first.event_type == second.event_type { format!(" ({})", first.event_type) } else { String::new() };
    let mut rows = vec![vec![String::new(), String::new(), a.label.clone(), b.label.clone()]];
    rows.extend(parts.shown.iter().map(|part| {
        let Part { field, name, first, second } = part.clone();
        vec![field, name, first, second]
    }));
    let mut text = format!("\nTwo events{}: these parts of their ids differ.\n{}", printable(&of), table(&rows));
    if parts.more > 0 {
        text += &format!("and {} more\n", parts.more);
    }
    if parts.shown.iter().all(|part| part.field == "x") {
        text += by_transport(first.basis);
    }
    text
}

/// Where only the transport tells two events apart.
const fn by_transport(basis: Basis) -> &'static str {
    match basis {
        Basis::IxTransport => {
            "Nothing in the payloads tells these two apart: they carry no event time and nothing else of their own, so \
             the id rests on the\ntransport's message id (ix-transport). Published twice, one such event counts as two.\n"
        }
        Basis::Opaque => {
            "The payloads are the same, but no Chat events: only the transport's message id tells them apart, so each \
             publish counts as\nan event of its own.\n"
        }
        Basis::CePartial => {
            "Nothing in these CloudEvents tells them apart: id, source or time is missing, so the id rests on the \
             transport's message id\n(ce-partial). Published twice, one such event counts as two.\n"
        }
        Basis::IxTime | Basis::IxMessage | Basis::CeSpaceEvent | Basis::CeSourceId => "",
    }
}
