//! Any text as one that fits a header or an environment variable. Pure.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// Control characters and everything beyond ASCII, and `%` itself: only so does decoding give the text back.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// Bytes kept.
const MAX: usize = 256;

/// `text` in printable ASCII, the rest percent-encoded, cut to 256 bytes between characters.
pub(super) fn printable(text: &str) -> String {
    let mut printable = String::new();
    for c in text.chars() {
        let mut bytes = [0; 4];
        let start = printable.len();
        printable.extend(utf8_percent_encode(c.encode_utf8(&mut bytes), ENCODED));
        if printable.len() > MAX {
            printable.truncate(start);
            break;
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn printable_text_stays_as_it_is() {
        assert_eq!(printable("//chat.example/spaces/A B?\"x\""), "//chat.example/spaces/A B?\"x\"");
    }

    #[test]
    fn the_rest_is_percent_encoded() {
        assert_eq!(printable("é\r\n%\0"), "%C3%A9%0D%0A%25%00");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(printable(&"é".repeat(100)), "%C3%A9".repeat(42));
    }

    proptest! {
        #[test]
        fn every_text_fits_and_decodes_to_its_beginning(text in "\\PC{0,300}|[\\x00-\\x20%é😀]{0,300}") {
            let printable = printable(&text);

            prop_assert!(printable.len() <= MAX && printable.bytes().all(|b| (0x20..0x7f).contains(&b)));
            prop_assert!(text.starts_with(&*percent_decode_str(&printable).decode_utf8().unwrap()));
        }
    }
}
