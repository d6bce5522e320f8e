//! Finds and cuts members in JSON text that is known to be valid, leaving every other byte as it is.
//!
//! Parsing and printing again would change numbers and escapes; a handler gets what Google sent.

use std::{borrow::Cow, ops::Range};

/// Where the value of a member of the outermost object lies; the last one when the name is given twice.
pub(super) fn member(text: &[u8], name: &str) -> Option<Range<usize>> {
    let mut walk = Walk { text, at: 0, names: &[name], wanted: Wanted::Value(None), lost: false };
    walk.value(0);
    match walk.wanted {
        Wanted::Value(found) => found,
        Wanted::Cuts(_) => None,
    }
}

/// The text without the members of these names, at any depth; `None` when there are none.
pub(super) fn without(text: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let mut walk = Walk { text, at: 0, names, wanted: Wanted::Cuts(Vec::new()), lost: false };
    walk.value(0);
    let Wanted::Cuts(cuts) = walk.wanted else { return None };
    if cuts.is_empty() || walk.lost {
        return None;
    }
    let mut rest = Vec::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        rest.extend_from_slice(text.get(at..cut.start)?);
        at = cut.end;
    }
    rest.extend_from_slice(text.get(at..)?);
    Some(rest)
}

enum Wanted {
    /// The value of an outermost member.
    Value(Option<Range<usize>>),
    /// What to leave out, in order, none inside another.
    Cuts(Vec<Range<usize>>),
}

struct Walk<'t> {
    text: &'t [u8],
    at: usize,
    names: &'t [&'t str],
    wanted: Wanted,
    /// This is no JSON, or nests deeper than the parser allows: the data of a CloudEvent may be anything.
    lost: bool,
}

/// What the parser allows.
const MAX_DEPTH: usize = 127;

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Passes a value. Always moves on, except at the end of the text.
    fn value(&mut self, depth: usize) {
        self.spaces();
        let start = self.at;
        if depth > MAX_DEPTH {
            return self.give_up();
        }
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string(),
            _ => {
                while self.peek().is_some_and(|byte| !b",]} \t\r\n".contains(&byte)) {
                    self.at += 1;
                }
                if self.at == start {
                    self.give_up();
                }
            }
        }
    }

    fn give_up(&mut self) {
        self.lost = true;
        self.at = self.text.len();
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => return,
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    fn array(&mut self, depth: usize) {
        self.at += 1;
        self.spaces();
        while self.peek().is_some_and(|byte| byte != b']') {
            self.value(depth);
            self.comma();
        }
        self.close(b']');
    }

    fn object(&mut self, depth: usize) {
        self.at += 1;
        let mut kept = self.at;
        let mut trailing = false;
        self.spaces();
        while self.peek() == Some(b'"') {
            let start = self.at;
            self.string();
            let named = self.is_named(start + 1..self.at - 1);
            self.spaces();
            self.at += 1; // the colon
            self.spaces();
            let value = self.at;
            self.value(depth);
            let end = self.at;
            self.comma();
            trailing = named;
            match &mut self.wanted {
                Wanted::Value(found) if named && depth == 1 => *found = Some(value..end),
                Wanted::Cuts(cuts) if named => cut(cuts, start..self.at),
                _ => kept = end,
            }
        }
        if let Wanted::Cuts(cuts) = &mut self.wanted
            && trailing
        {
            // Nothing follows, so the comma before the cut goes too.
            cut(cuts, kept..self.at);
        }
        self.close(b'}');
    }

    fn close(&mut self, bracket: u8) {
        if self.peek() == Some(bracket) {
            self.at += 1;
        } else {
            self.give_up();
        }
    }

    /// Passes the comma after an item, and spaces around it.
    fn comma(&mut self) {
        self.spaces();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.spaces();
        }
    }

    fn is_named(&self, key: Range<usize>) -> bool {
        let key = self.text.get(key).unwrap_or_default();
        let key = if key.contains(&b'\\') {
            let unescaped: Option<String> = serde_json::from_slice(&[b"\"", key, b"\""].concat()).ok();
            Cow::Owned(unescaped.unwrap_or_default().into_bytes())
        } else {
            Cow::Borrowed(key)
        };
        self.names.iter().any(|name| name.as_bytes() == &*key)
    }
}

/// Adds a cut; those inside it go with it.
fn cut(cuts: &mut Vec<Range<usize>>, range: Range<usize>) {
    while cuts.last().is_some_and(|last| last.start >= range.start) {
        cuts.pop();
    }
    cuts.push(range);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_x_and_y(text: &str) -> Option<String> {
        without(text.as_bytes(), &["x", "y"]).map(|rest| String::from_utf8(rest).unwrap())
    }

    #[test]
    fn cut_members_take_their_comma_with_them() {
        let cases = [
            (r#"{"x":1}"#, "{}"),
            (r#"{"x":1,"y":2}"#, "{}"),
            (r#"{"a":1,"x":2,"y":3}"#, r#"{"a":1}"#),
            (r#"{"x":1,"a":2,"y":3,"b":4}"#, r#"{"a":2,"b":4}"#),
            (r#"{"a":{"x":[1,{"y":2}]},"y":{"x":1},"b":[{"x":"}"}]}"#, r#"{"a":{},"b":[{}]}"#),
            ("{ \"a\" : 1.50 , \"x\" : [ ] }\n", "{ \"a\" : 1.50 }\n"),
            (r#"{"\u0078":1,"a":"\/\"x\":"}"#, r#"{"a":"\/\"x\":"}"#),
        ];
        for (text, rest) in cases {
            let cut = cut_x_and_y(text).unwrap();
            serde_json::from_str::<serde_json::Value>(&cut).unwrap();
            assert_eq!(cut.replace(' ', ""), rest.replace(' ', ""), "{text}");
        }
    }

    #[test]
    fn text_without_the_names_is_left_alone() {
        assert_eq!(cut_x_and_y(r#"{"a":"x","b":["y",{"xx":1}]}"#), None);
        assert_eq!(cut_x_and_y("[]"), None);
        assert_eq!(cut_x_and_y(""), None);
    }

    #[test]
    fn text_that_is_no_json_is_left_alone_in_good_time() {
        for text in ["[}", "{\"x\"", "{\"x\":", "{\"x\":1,]", "[,", "{\"x\":}", "\"", "{\"", "[\"\\"] {
            assert_eq!(cut_x_and_y(text), None, "{text}");
        }
        assert_eq!(cut_x_and_y(&"[".repeat(1_000_000)), None);
        assert_eq!(cut_x_and_y(&"{\"x\":".repeat(1_000_000)), None);
    }

    #[test]
    fn the_last_outermost_member_of_a_name_is_found() {
        let text = br#"{"a":{"data":1},"data":2,"b":[{"data":3}], "d\u0061ta" : {"k": 4} ,"c":5}"#;

        let found = member(text, "data").unwrap();

        assert_eq!(&text[found], br#"{"k": 4}"#);
        assert_eq!(member(br#"[{"data":1}]"#, "data"), None);
    }
}
