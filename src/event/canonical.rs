//! Canonical bytes of JSON values, streamed into a hash.
//!
//! `null` `true` `false`; integers that fit i64 or u64 in decimal; other numbers `f` and the 16 hex digits of the
//! big-endian double; strings `s<bytes>:<utf-8>`; arrays `[a,b]`; objects `{k=v,…}` with keys sorted by their bytes,
//! the last of equal keys. Nothing of the printed form (order, escapes, spaces, digits) is left.

use sha2::{Digest, Sha256};

use super::{
    document::{Kind, Value},
    timestamp::Instant,
};

/// Where canonical bytes go.
pub(super) trait Sink {
    /// Takes more bytes.
    fn put(&mut self, bytes: &[u8]);
    /// Takes one more byte: what canonical bytes mostly come in.
    fn put_byte(&mut self, byte: u8);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn put_byte(&mut self, byte: u8) {
        self.push(byte);
    }
}

/// SHA-256 behind a buffer: canonical bytes come in pieces of a few bytes, which a hash takes slowly.
pub(super) struct Hash {
    state: Sha256,
    buffer: [u8; BUFFER],
    used: usize,
}

const BUFFER: usize = 256;

impl Hash {
    /// An empty hash.
    pub(super) fn new() -> Self {
        Self { state: Sha256::new(), buffer: [0; BUFFER], used: 0 }
    }

    /// The digest of everything taken.
    pub(super) fn finish(mut self) -> [u8; 32] {
        self.flush();
        self.state.finalize().into()
    }

    fn flush(&mut self) {
        self.state.update(&self.buffer[..self.used]);
        self.used = 0;
    }
}

impl Sink for Hash {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        if bytes.len() > BUFFER - self.used {
            self.flush();
            if bytes.len() > BUFFER {
                self.state.update(bytes);
                return;
            }
        }
        self.buffer[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        if self.used == BUFFER {
            self.flush();
        }
        self.buffer[self.used] = byte;
        self.used += 1;
    }
}

/// What is left out or rewritten on the way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scrub {
    /// Leave out members that may change between two copies of one event.
    pub(super) volatile: bool,
    /// Replace strings that are RFC 3339 timestamps by their instant.
    pub(super) times: bool,
    /// Reduce every `message` object to its `name`: an echoed card may have been patched meanwhile.
    pub(super) messages: bool,
}

/// Keys whose values are looked up when an event is sent, rotate, or are credentials. Never part of an identity.
pub(super) fn is_volatile(key: &[u8]) -> bool {
    matches!(
        key,
        b"token"
            | b"configCompleteRedirectUrl"
            | b"configCompleteRedirectUri"
            | b"authorizationEventObject"
            | b"avatarUrl"
            | b"displayName"
            | b"email"
            | b"domainId"
            | b"lastActiveTime"
            | b"membershipCount"
            | b"spaceUri"
            | b"thumbnailUri"
            | b"downloadUri"
            | b"retentionSettings"
            | b"emojiReactionSummaries"
            | b"cards"
            | b"cardsV2"
    )
}

/// Writes canonical bytes of values into a sink.
pub(super) struct Canon<S> {
    sink: S,
    scrub: Scrub,
    /// Members of the objects that are being written, innermost last: eight bytes of the key, and the value's place.
    order: Vec<(u64, u32)>,
}

impl<S: Sink> Canon<S> {
    /// Starts with nothing written.
    pub(super) const fn new(sink: S, scrub: Scrub) -> Self {
        Self { sink, scrub, order: Vec::new() }
    }

    /// The sink, with everything written.
    pub(super) fn into_sink(self) -> S {
        self.sink
    }

    /// Bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.sink.put(bytes);
    }

    /// A string, or the bytes that stand for one.
    pub(super) fn string(&mut self, text: &[u8]) {
        let mut digits = [0; 22];
        digits[21] = b':';
        let start = decimal(text.len() as u64, &mut digits, 21) - 1;
        digits[start] = b's';
        self.sink.put(&digits[start..]);
        self.sink.put(text);
    }

    /// A value of any kind. Recursion ends at the parser's 127 levels.
    pub(super) fn value(&mut self, value: Value<'_>) {
        match value.kind() {
            Kind::Null => self.sink.put(b"null"),
            Kind::Bool(true) => self.sink.put(b"true"),
            Kind::Bool(false) => self.sink.put(b"false"),
            Kind::Unsigned(number) => self.integer(number, false),
            Kind::Signed(number) => self.integer(number.unsigned_abs(), number < 0),
            Kind::Float(number) => self.float(number),
            Kind::Text(text) => self.text(text),
            Kind::Array => self.array(value),
            Kind::Object => self.object(value),
        }
    }

    fn text(&mut self, text: &[u8]) {
        match Instant::parse(text).filter(|_| self.scrub.times) {
            Some(instant) => self.string(instant.to_string().as_bytes()),
            None => self.string(text),
        }
    }

    fn integer(&mut self, number: u64, negative: bool) {
        if let (Ok(digit @ 0..10), false) = (u8::try_from(number), negative) {
            return self.sink.put_byte(b'0' + digit);
        }
        let mut digits = [0; 21];
        let mut start = decimal(number, &mut digits, 21);
        if negative {
            start -= 1;
            digits[start] = b'-';
        }
        self.sink.put(&digits[start..]);
    }

    fn float(&mut self, number: f64) {
        let mut text = [b'f'; 17];
        hex(&number.to_be_bytes(), &mut text[1..]);
        self.sink.put(&text);
    }

    fn array(&mut self, array: Value<'_>) {
        self.sink.put_byte(b'[');
        for (index, element) in array.elements().enumerate() {
            if index > 0 {
                self.sink.put_byte(b',');
            }
            self.value(element);
        }
        self.sink.put_byte(b']');
    }

    fn object(&mut self, object: Value<'_>) {
        let mine = self.order.len();
        for (key, value) in object.members() {
            if !(self.scrub.volatile && is_volatile(key)) {
                self.order.push((prefix(key), value.place()));
            }
        }
        sort(&mut self.order[mine..], 0, object);
        self.sink.put_byte(b'{');
        let mut first = true;
        for index in mine..self.order.len() {
            let (start, value) = self.order[index];
            let key = object.at(value).key();
            if self.order.get(index + 1).is_some_and(|next| next.0 == start && object.at(next.1).key() == key) {
                continue; // given again later: the last one wins
            }
            if !first {
                self.sink.put_byte(b',');
            }
            first = false;
            self.string(key);
            self.sink.put_byte(b'=');
            self.member(key, object.at(value));
        }
        self.order.truncate(mine);
        self.sink.put_byte(b'}');
    }

    fn member(&mut self, key: &[u8], value: Value<'_>) {
        if !(self.scrub.messages && key == b"message" && value.is_object()) {
            return self.value(value);
        }
        self.sink.put_byte(b'{');
        if let Some(name) = value.get("name") {
            self.string(b"name");
            self.sink.put_byte(b'=');
            self.value(name);
        }
        self.sink.put_byte(b'}');
    }
}

/// SHA-256 of bytes.
pub(super) fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 of the canonical bytes of a value.
pub(super) fn digest(value: Value<'_>, scrub: Scrub) -> [u8; 32] {
    let mut canon = Canon::new(Hash::new(), scrub);
    canon.value(value);
    canon.into_sink().finish()
}

/// Lower-case hex.
pub(super) fn hex_text(bytes: &[u8]) -> String {
    let mut text = vec![0; bytes.len() * 2];
    hex(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

fn hex(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(text.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// Writes decimal digits so that they end before `end`; gives where they start.
pub(super) fn decimal(mut number: u64, digits: &mut [u8], end: usize) -> usize {
    let mut start = end;
    loop {
        start -= 1;
        digits[start] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return start;
        }
    }
}

/// Sorts members by key, equal keys by place. Their keys agree before `from`, and each entry has the eight bytes there.
///
/// Numbers are compared, not keys, so a million members take no million walks through memory per pass.
fn sort(members: &mut [(u64, u32)], from: usize, object: Value<'_>) {
    const FEW: usize = 16;
    let key = |place: u32| object.at(place).key();
    let by_key =
        |a: &(u64, u32), b: &(u64, u32)| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(key(b.1)).then(a.1.cmp(&b.1)));
    if members.len() <= FEW {
        return members.sort_unstable_by(by_key);
    }
    members.sort_unstable();
    for run in members.chunk_by_mut(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
        let shared = run.iter().map(|one| common(key(run[0].1), key(one.1))).min().unwrap_or_default();
        let shortest = run.iter().map(|one| key(one.1).len()).min().unwrap_or_default();
        if run.len() <= FEW || shared < from + 8 || shortest == shared {
            run.sort_unstable_by(by_key);
            continue;
        }
        // All agree up to `shared`: look at what follows. The bytes for the caller come back afterwards.
        let before = run[0].0;
        run.iter_mut().for_each(|one| one.0 = prefix(key(one.1).get(shared..).unwrap_or_default()));
        sort(run, shared, object);
        run.iter_mut().for_each(|one| one.0 = before);
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The first eight bytes of a key as a number that sorts like them.
fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(first)
}
