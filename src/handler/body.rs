//! The bytes a handler gets, and those it gives back.

use bytes::Bytes;
use serde_json::Value;

use crate::{event::Event, handler::Handled};

/// Bytes of a reply, at most.
pub(super) const MAX_REPLY: usize = 1 << 20;

/// The event byte for byte; without its credentials unless they are to be passed on.
pub(super) fn of(event: &Event, pass_credentials: bool) -> Bytes {
    if pass_credentials { event.body.clone() } else { event.body_without_credentials() }
}

/// What a handler that succeeded gave back: nothing, a JSON text, or something that can not be read. `ended` = the whole
/// of it came.
pub(super) fn handled(body: Bytes, ended: bool) -> Handled {
    let whole = ended && body.len() <= MAX_REPLY;
    if whole && body.iter().all(u8::is_ascii_whitespace) {
        return Handled::default();
    }
    // Parsed for good: merely skipping over a value accepts strings that no reader of the reply can read.
    let readable = whole && serde_json::from_slice::<Value>(&body).is_ok();
    Handled { reply: readable.then_some(body), reply_unreadable: !readable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_every_reader_can_read_is_a_reply() {
        let readable = |body: &'static [u8]| handled(Bytes::from_static(body), true).reply.is_some();

        assert!(readable(b" {\"text\":\"\\u0000\\ud83d\\ude00\"}\n") && readable(b"null"));
        for bad in [&b"hello"[..], b"{}{}", b"\"\xff\"", b"\"\\ud800\"", b"\"\0\"", b"\xef\xbb\xbf{}"] {
            assert!(!readable(bad), "{bad:?}");
            assert!(handled(Bytes::from_static(bad), true).reply_unreadable, "{bad:?}");
        }
        assert!(!readable(vec![b'['; 100_000].leak()));
    }

    #[test]
    fn nothing_is_no_reply_only_when_all_of_it_came() {
        assert_eq!(handled(Bytes::from_static(b" \r\n"), true), Handled::default());
        assert!(handled(Bytes::new(), false).reply_unreadable);
        assert!(handled(Bytes::from(vec![b' '; MAX_REPLY + 1]), true).reply_unreadable);
    }
}
