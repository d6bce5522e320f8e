//! Parsed JSON as a flat tape of 16-byte nodes over the text it came from.
//!
//! `serde_json` decides what is JSON (at most 127 nested containers, no lone surrogates, no number beyond a double), but
//! its `Value` takes 72 bytes for every `0` of an array. The tape keeps the worst 10 MB message under a tenth of that,
//! and text without escapes is never copied. Duplicate keys stay on the tape; the last one wins when read.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Longer input is never parsed. Pub/Sub carries 10 MB; offsets on the tape are 32 bits wide.
pub(super) const MAX_BYTES: usize = 64 * 1024 * 1024;

/// One parsed text.
#[derive(Debug)]
pub(super) struct Document {
    /// What was parsed, valid UTF-8.
    text: Bytes,
    /// Strings that had escapes, one after the other.
    unescaped: String,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    /// A slice of the text.
    Plain {
        start: u32,
        len: u32,
    },
    /// A slice of the unescaped strings.
    Unescaped {
        start: u32,
        len: u32,
    },
    /// `end` is the index after the last node inside.
    Array {
        end: u32,
    },
    Object {
        end: u32,
    },
}

/// A value of a document.
#[derive(Clone, Copy)]
pub(super) struct Value<'d> {
    document: &'d Document,
    at: usize,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind<'d> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'d [u8]),
    Array,
    Object,
}

impl Document {
    /// Parses strict JSON; gives the text back when it is not.
    pub(super) fn parse(text: Bytes) -> Result<Self, Bytes> {
        match read(&text) {
            Ok((unescaped, nodes)) => Ok(Self { text, unescaped, nodes }),
            Err(_) => Err(text),
        }
    }

    /// The outermost value.
    pub(super) const fn root(&self) -> Value<'_> {
        Value { document: self, at: 0 }
    }

    /// The text that was parsed.
    pub(super) const fn text(&self) -> &Bytes {
        &self.text
    }

    /// When the whole document is one string: its content, without a copy.
    pub(super) fn into_text(self) -> Option<Bytes> {
        match *self.nodes.first()? {
            Node::Plain { start, len } => Some(self.text.slice(start as usize..(start + len) as usize)),
            Node::Unescaped { .. } => Some(Bytes::from(self.unescaped)),
            _ => None,
        }
    }

    fn bytes(&self, node: Node) -> Option<&[u8]> {
        match node {
            Node::Plain { start, len } => self.text.get(start as usize..(start + len) as usize),
            Node::Unescaped { start, len } => self.unescaped.as_bytes().get(start as usize..(start + len) as usize),
            _ => None,
        }
    }

    fn after(&self, at: usize) -> usize {
        match self.nodes[at] {
            Node::Array { end } | Node::Object { end } => end as usize,
            _ => at + 1,
        }
    }
}

impl<'d> Value<'d> {
    /// What it is.
    pub(super) fn kind(self) -> Kind<'d> {
        match self.document.nodes[self.at] {
            Node::Null => Kind::Null,
            Node::Bool(value) => Kind::Bool(value),
            Node::Unsigned(value) => Kind::Unsigned(value),
            Node::Signed(value) => Kind::Signed(value),
            Node::Float(value) => Kind::Float(value),
            Node::Array { .. } => Kind::Array,
            Node::Object { .. } => Kind::Object,
            node @ (Node::Plain { .. } | Node::Unescaped { .. }) => {
                Kind::Text(self.document.bytes(node).unwrap_or_default())
            }
        }
    }

    /// True for `{…}`.
    pub(super) fn is_object(self) -> bool {
        matches!(self.document.nodes[self.at], Node::Object { .. })
    }

    /// True for `null`.
    pub(super) fn is_null(self) -> bool {
        matches!(self.document.nodes[self.at], Node::Null)
    }

    /// The content of a non-empty string.
    pub(super) fn text(self) -> Option<&'d str> {
        let bytes = self.document.bytes(self.document.nodes[self.at])?;
        std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty())
    }

    /// The member of that name, the last one when it is given twice. `None` for everything but objects.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        self.members().filter(|(name, _)| *name == key.as_bytes()).last().map(|(_, value)| value)
    }

    /// The value at the end of a path of keys.
    pub(super) fn path(self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Keys and values in the order of the text, duplicates included; nothing for anything but objects.
    pub(super) fn members(self) -> impl Iterator<Item = (&'d [u8], Self)> {
        let document = self.document;
        let end = if let Node::Object { end } = document.nodes[self.at] { end as usize } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let key = document.bytes(document.nodes[at]).unwrap_or_default();
                let value = Value { document, at: at + 1 };
                at = document.after(at + 1);
                (key, value)
            })
        })
    }

    /// Keys and values sorted by key, of equal keys the last.
    pub(super) fn last_members(self) -> Vec<(&'d [u8], Self)> {
        let mut members: Vec<_> = self.members().collect();
        members.reverse();
        members.sort_by_key(|(key, _)| *key);
        members.dedup_by_key(|(key, _)| *key);
        members
    }

    /// The elements of an array; nothing for anything else.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        let document = self.document;
        let end = if let Node::Array { end } = document.nodes[self.at] { end as usize } else { 0 };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let value = Value { document, at };
                at = document.after(at);
                value
            })
        })
    }

    /// The key of a member, given its value: it lies just before it.
    pub(super) fn key(self) -> &'d [u8] {
        self.at.checked_sub(1).and_then(|at| self.document.bytes(*self.document.nodes.get(at)?)).unwrap_or_default()
    }

    /// Its place on the tape, to come back to it with [`Value::at`].
    pub(super) const fn place(self) -> u32 {
        // The tape has at most one node a byte of text, and text is bounded by MAX_BYTES.
        self.at as u32
    }

    /// The value at a place of the same document.
    pub(super) const fn at(self, place: u32) -> Self {
        Self { document: self.document, at: place as usize }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {} of a document", self.at)
    }
}

/// Why a text is not JSON: what is wrong, where, and nothing of the text.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("longer than {MAX_BYTES} bytes")]
    Long,
    #[error("no UTF-8 after {} bytes", .0.valid_up_to())]
    Encoding(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Syntax(#[from] serde_json::Error),
}

/// The tape of a text, and the strings in it that had escapes.
fn read(text: &[u8]) -> Result<(String, Vec<Node>), Problem> {
    if text.len() > MAX_BYTES {
        return Err(Problem::Long);
    }
    let text = std::str::from_utf8(text)?;
    let (mut unescaped, mut nodes) = (String::new(), Vec::with_capacity((text.len() / 16).clamp(8, 1024)));
    let mut parser = serde_json::Deserializer::from_str(text);
    Tape { text, unescaped: &mut unescaped, nodes: &mut nodes }.deserialize(&mut parser)?;
    parser.end()?;
    Ok((unescaped, nodes))
}

/// Why a text is not JSON; `None` when it is.
pub(super) fn problem(text: &[u8]) -> Option<String> {
    read(text).err().map(|problem| problem.to_string())
}

/// Takes what the parser finds onto the tape.
struct Tape<'t> {
    text: &'t str,
    unescaped: &'t mut String,
    nodes: &'t mut Vec<Node>,
}

impl Tape<'_> {
    fn inner(&mut self) -> Tape<'_> {
        Tape { text: self.text, unescaped: self.unescaped, nodes: self.nodes }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is bounded by MAX_BYTES, the tape by the text")]
    fn end(&self) -> u32 {
        self.nodes.len() as u32
    }
}

impl<'de> DeserializeSeed<'de> for Tape<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tape<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.nodes.push(Node::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.nodes.push(Node::Bool(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.nodes.push(Node::Unsigned(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.nodes.push(Node::Signed(value));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.nodes.push(Node::Float(value));
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "the text is bounded by MAX_BYTES")]
    fn visit_borrowed_str<E: serde::de::Error>(self, value: &'de str) -> Result<(), E> {
        // The parser lends strings without escapes out of the text itself: their place is all that is kept.
        let start = value.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        if start > self.text.len() || value.len() > self.text.len() - start {
            return self.visit_str(value);
        }
        self.nodes.push(Node::Plain { start: start as u32, len: value.len() as u32 });
        Ok(())
    }

    #[expect(clippy::cast_possible_truncation, reason = "unescaped strings are not longer than the text")]
    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        let start = self.unescaped.len() as u32;
        self.unescaped.push_str(value);
        self.nodes.push(Node::Unescaped { start, len: value.len() as u32 });
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let at = self.nodes.len();
        self.nodes.push(Node::Array { end: 0 });
        while elements.next_element_seed(self.inner())?.is_some() {}
        self.nodes[at] = Node::Array { end: self.end() };
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let at = self.nodes.len();
        self.nodes.push(Node::Object { end: 0 });
        while members.next_key_seed(self.inner())?.is_some() {
            members.next_value_seed(self.inner())?;
        }
        self.nodes[at] = Node::Object { end: self.end() };
        Ok(())
    }
}
