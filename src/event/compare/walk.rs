//! Two JSON values side by side: where they differ.

use std::cmp::Ordering;

use super::super::{
    canonical::is_volatile,
    chat::canonical,
    document::{Kind, Value},
};

/// A step of a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'d> {
    /// A member of an object.
    Key(&'d [u8]),
    /// An element of an array.
    Index(usize),
}

/// What kind of difference it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// Any value.
    Plain,
    /// A member that may change between copies; its inside is not looked at.
    Volatile,
    /// An echoed `message` beyond its name.
    Card,
}

/// One difference.
pub(super) struct Found<'w, 'd> {
    pub(super) path: &'w [Step<'d>],
    pub(super) first: Option<Value<'d>>,
    pub(super) second: Option<Value<'d>>,
    pub(super) nature: Nature,
}

/// Goes through two values; recursion ends at the parser's 127 levels.
pub(super) struct Walk<'v, 'd> {
    path: Vec<Step<'d>>,
    how: How,
    visit: &'v mut dyn FnMut(&Found<'_, 'd>),
}

/// What is looked at as a whole, as [`super::super::canonical::Scrub`] has it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct How {
    /// Tell volatile members apart from others.
    pub(super) volatile: bool,
    /// Look only at the name of every `message`: the event echoes a card.
    pub(super) cards: bool,
}

impl<'v, 'd> Walk<'v, 'd> {
    pub(super) const fn new(how: How, visit: &'v mut dyn FnMut(&Found<'_, 'd>)) -> Self {
        Self { path: Vec::new(), how, visit }
    }

    /// Visits every difference, in the order of the keys.
    pub(super) fn values(&mut self, first: Value<'d>, second: Value<'d>) {
        match (first.kind(), second.kind()) {
            (Kind::Object, Kind::Object) => self.objects(first, second),
            (Kind::Array, Kind::Array) => self.arrays(first, second),
            _ => self.whole(Some(first), Some(second), Nature::Plain),
        }
    }

    /// One difference, or none, however much is inside.
    fn whole(&mut self, first: Option<Value<'d>>, second: Option<Value<'d>>, nature: Nature) {
        if first.map(canonical) != second.map(canonical) {
            (self.visit)(&Found { path: &self.path, first, second, nature });
        }
    }

    fn arrays(&mut self, first: Value<'d>, second: Value<'d>) {
        let (mut a, mut b) = (first.elements(), second.elements());
        for index in 0.. {
            self.path.push(Step::Index(index));
            let pair = (a.next(), b.next());
            match pair {
                (Some(first), Some(second)) => self.values(first, second),
                (first, second) => self.whole(first, second, Nature::Plain),
            }
            self.path.pop();
            if pair.0.is_none() && pair.1.is_none() {
                break;
            }
        }
    }

    fn objects(&mut self, first: Value<'d>, second: Value<'d>) {
        let (a, b) = (first.last_members(), second.last_members());
        let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (Some((x, _)), Some((y, _))) => x.cmp(y),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let one = if order.is_le() { a.next() } else { None };
            let other = if order.is_ge() { b.next() } else { None };
            let Some(key) = one.or(other).map(|(key, _)| key) else { break };
            self.path.push(Step::Key(key));
            self.members(key, one.map(|(_, value)| value), other.map(|(_, value)| value));
            self.path.pop();
        }
    }

    fn members(&mut self, key: &'d [u8], first: Option<Value<'d>>, second: Option<Value<'d>>) {
        match (first, second) {
            _ if self.how.volatile && is_volatile(key) => self.whole(first, second, Nature::Volatile),
            (Some(first), Some(second))
                if self.how.cards && key == b"message" && first.is_object() && second.is_object() =>
            {
                self.path.push(Step::Key(b"name"));
                self.whole(first.get("name"), second.get("name"), Nature::Plain);
                self.path.pop();
                self.whole(Some(first), Some(second), Nature::Card);
            }
            (Some(first), Some(second)) => self.values(first, second),
            _ => self.whole(first, second, Nature::Plain),
        }
    }
}
