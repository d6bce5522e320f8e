//! Values and places as a person reads them: bounded, printable, and no private text.

use super::{
    super::{
        canonical::{hash, hex_text, is_volatile},
        chat::canonical,
        document::{Kind, Value},
        timestamp::Instant,
    },
    walk::Step,
};

/// Longest value shown, in characters. Names of resources are shorter.
const MOST: usize = 100;
/// Where a value is absent.
pub(super) const NONE: &str = "(none)";

/// Two different texts, so that one sees the difference: long ones are cut around it.
pub(super) fn pair(first: &str, second: &str) -> (String, String) {
    let (first, second): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
    let common = first.iter().zip(&second).take_while(|(a, b)| a == b).count();
    let is_long = first.len().max(second.len()) > MOST;
    let start = if is_long && common > MOST / 2 { common - MOST / 4 } else { 0 };
    let cut = |text: &[char]| {
        let length = if text.len() > MOST { format!(" ({} long)", text.len()) } else { String::new() };
        window(text, start) + &length
    };
    (cut(&first), cut(&second))
}

/// The beginning of a text.
pub(super) fn bounded(text: &str) -> String {
    window(&text.chars().collect::<Vec<_>>(), 0)
}

fn window(text: &[char], start: usize) -> String {
    let end = text.len().min(start + MOST);
    let before = (start > 0).then_some('…');
    let after = (end < text.len()).then_some('…');
    let middle = text.get(start..end).unwrap_or_default();
    before.into_iter().chain(middle.iter().copied()).chain(after).collect()
}

/// Escapes what a terminal would obey, and what looks like nothing; different texts stay different.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' => escaped.push(c),
            c => escaped.extend(c.escape_debug()),
        }
    }
    escaped
}

/// The same, in quotes.
pub(super) fn quoted(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len() + 2);
    escaped.push('"');
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '\'' => escaped.push(c),
            c => escaped.extend(c.escape_debug()),
        }
    }
    escaped.push('"');
    escaped
}

/// A text as it is, in quotes where one would not see where it begins or ends, or take it for a remark.
pub(super) fn visible(text: &str) -> String {
    let is_clear = text.trim() == text && !text.is_empty() && !text.starts_with(['"', '(']);
    if is_clear { plain(text) } else { quoted(text.as_bytes()) }
}

/// A place in an event: `message.annotations[0].type`.
pub(super) fn place(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Key(key) => {
                let key = String::from_utf8_lossy(key);
                let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
                match (plain, text.is_empty()) {
                    (true, true) => text.push_str(&key),
                    (true, false) => text.extend([".", &key]),
                    (false, _) => text.push_str(&format!("[{}]", quoted(key.as_bytes()))),
                }
            }
        }
    }
    bounded(&text)
}

/// A value as it is, whole, as compact JSON.
pub(super) fn shown(value: Option<Value<'_>>) -> String {
    let mut text = String::new();
    match value {
        Some(value) => write(value, &mut text),
        None => text.push_str(NONE),
    }
    text
}

/// Recursion ends at the parser's 127 levels.
fn write(value: Value<'_>, text: &mut String) {
    match value.kind() {
        Kind::Null => text.push_str("null"),
        Kind::Bool(value) => text.push_str(if value { "true" } else { "false" }),
        Kind::Unsigned(number) => text.push_str(&number.to_string()),
        Kind::Signed(number) => text.push_str(&number.to_string()),
        Kind::Float(number) => text.push_str(&format!("{number:?}")),
        Kind::Text(content) => text.push_str(&quoted(content)),
        Kind::Array => {
            text.push('[');
            for (index, element) in value.elements().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                write(element, text);
            }
            text.push(']');
        }
        Kind::Object => {
            text.push('{');
            for (index, (key, value)) in value.last_members().into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                text.push_str(&quoted(key));
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
    }
}

/// A value of the content: texts only where they are times, names of resources or constants.
pub(super) fn discreet(path: &[Step<'_>], value: Option<Value<'_>>) -> String {
    let Some(given) = value else { return NONE.to_owned() };
    let volatile = path.iter().any(|step| matches!(step, Step::Key(key) if is_volatile(key)));
    match given.kind() {
        Kind::Text(text) if volatile || !is_public(path, text) => {
            let length = String::from_utf8_lossy(text).chars().count();
            format!("(text of {length}, sha256 {})", short(text))
        }
        Kind::Array => format!("(a list, sha256 {})", short(&canonical(given))),
        Kind::Object => format!("(an object, sha256 {})", short(&canonical(given))),
        _ if volatile => format!("(not shown, sha256 {})", short(&canonical(given))),
        _ => shown(value),
    }
}

/// Bytes, by length and digest.
pub(super) fn summary(bytes: &[u8]) -> String {
    format!("{} bytes, sha256 {}", bytes.len(), short(bytes))
}

fn short(bytes: &[u8]) -> String {
    hex_text(&hash(bytes)[..4])
}

fn is_public(path: &[Step<'_>], text: &[u8]) -> bool {
    let Some(Step::Key(key)) = path.iter().rev().find(|step| matches!(step, Step::Key(_))) else { return false };
    let key = key.to_ascii_lowercase();
    let constant = |text: &[u8]| text.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == b'_');
    let resource =
        |text: &[u8]| text.contains(&b'/') && text.iter().all(|c| c.is_ascii_alphanumeric() || b"/._-".contains(c));
    Instant::parse(text).is_some()
        || key == b"name" && resource(text)
        || [&b"type"[..], b"state"].iter().any(|end| key.ends_with(end)) && constant(text)
}

/// A time as ids hold it, as people read it. What an event has in its place is said to be none.
pub(super) fn time(text: &str) -> String {
    let read = || {
        let (seconds, nanos) = text.split_once('.')?;
        chrono::DateTime::from_timestamp(seconds.parse().ok()?, nanos.parse().ok()?)
    };
    if let Some(other) = text.strip_prefix("raw:") {
        return format!("not a timestamp: {}", quoted(other.as_bytes()));
    }
    read().map_or_else(|| visible(text), |time| time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_that_differ_are_seen_to_differ() {
        let long = |end: &str| "x".repeat(5_000) + end;
        for (first, second) in [
            ("a", "b"),
            ("", " "),
            ("a", "a\u{200b}"),
            ("a\n", "a\\n"),
            ("\u{1b}[2J", "[2J"),
            ("\u{202e}a", "a"),
            (&*long("a"), &*long("b")),
            (&*long(""), &*long("a")),
            (&*long(&long("1")), &*long(&long("2"))),
            ("a", &*long("")),
        ] {
            let (a, b) = pair(&plain(first), &plain(second));
            let (c, d) = pair(&quoted(first.as_bytes()), &quoted(second.as_bytes()));

            assert_ne!(a, b);
            assert_ne!(c, d);
            assert!([&a, &b, &c, &d].iter().all(|text| text.chars().count() <= MOST + 14), "{a} {b}");
            assert!(![&a, &b, &c, &d].iter().any(|text| text.contains(char::is_control)), "{a:?} {b:?}");
        }
    }

    #[test]
    fn one_sees_where_a_value_ends_and_how_long_it_is() {
        assert_eq!(visible("spaces/A"), "spaces/A");
        for (text, shown) in [("a ", "\"a \""), ("", "\"\""), ("(none)", "\"(none)\""), ("\u{a0}a", "\"\\u{a0}a\"")] {
            assert_eq!(visible(text), shown);
        }
        let (first, second) = pair("short", &"x".repeat(5_000));
        assert_eq!(first, "short");
        assert!(second.ends_with("x… (5000 long)"), "{second}");
    }

    #[test]
    fn a_place_is_never_taken_for_another() {
        let path = |keys: &[&'static str]| {
            let steps: Vec<_> = keys.iter().map(|key| Step::Key(key.as_bytes())).collect();
            place(&steps)
        };

        assert_eq!(place(&[Step::Key(b"a"), Step::Index(0), Step::Key(b"b")]), "a[0].b");
        assert_ne!(path(&["a", "b"]), path(&["a.b"]));
        assert_eq!(path(&["a\u{1b}"]), "[\"a\\u{1b}\"]");
    }

    #[test]
    fn times_are_readable_and_stay_different() {
        assert_eq!(time("1777886130.250000000"), "2026-05-04T09:15:30.250Z");
        assert_eq!(time("-1.500000000"), "1969-12-31T23:59:59.500Z");
        assert_eq!(time("raw:soon "), "not a timestamp: \"soon \"");
        assert_eq!(time("99999999999999.000000000"), "99999999999999.000000000");
    }
}
