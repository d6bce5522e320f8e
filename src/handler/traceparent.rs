//! The W3C trace context a handler gets: the event's own, or a fresh one. No I/O but randomness.

use crate::event::Event;

/// Google's client libraries write the first name, everybody else the second.
const ATTRIBUTES: [&str; 2] = ["googclient_traceparent", "traceparent"];

/// The event's trace context where it carries a valid one, else a new one, marked as sampled: whoever records traces
/// decides in the collector what to keep.
pub(super) fn of(event: &Event) -> String {
    let carried = ATTRIBUTES.iter().find_map(|name| {
        let mut attributes = event.raw.attributes.iter();
        attributes.find(|(key, value)| key.eq_ignore_ascii_case(name) && is_valid(value))
    });
    carried.map_or_else(fresh, |(_, value)| value.clone())
}

fn fresh() -> String {
    let trace: u128 = rand::random_range(1..=u128::MAX);
    let span: u64 = rand::random_range(1..=u64::MAX);
    format!("00-{trace:032x}-{span:016x}-01")
}

/// Version 00 exactly; a later version may say more behind a dash; ff is no version.
fn is_valid(value: &str) -> bool {
    let mut parts = value.splitn(5, '-');
    let mut next = |length: usize| {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        parts.next().filter(|part| part.len() == length && part.bytes().all(hex))
    };
    let (Some(version), Some(trace), Some(span), Some(_flags)) = (next(2), next(32), next(16), next(2)) else {
        return false;
    };
    let nothing = |id: &str| id.bytes().all(|b| b == b'0');
    let more = parts.next();
    let later = version != "00" && version != "ff";
    let fits = later && more.is_none_or(|more| more.len() <= 200 && more.bytes().all(|b| (0x21..0x7f).contains(&b)))
        || version == "00" && more.is_none();
    fits && !nothing(trace) && !nothing(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    #[test]
    fn a_fresh_context_is_valid_and_new_every_time() {
        assert!(is_valid(&fresh()));
        assert_ne!(fresh(), fresh());
    }

    #[test]
    fn only_what_the_standard_allows_is_passed_on() {
        assert!(is_valid(GOOD));
        assert!(is_valid("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later"));
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-00",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-00",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-a\r\nb",
        ] {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }
}
