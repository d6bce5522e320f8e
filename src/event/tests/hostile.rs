//! What somebody could publish to hurt.

use proptest::prelude::*;

use super::{event, payload, raw};
use crate::event::{Basis, Event, RawEvent, Shape};

/// What holds for every event, whatever it was made from.
fn check(event: &Event) {
    let id = event.id.as_str();
    assert_eq!(id.len(), 39);
    assert!(id.starts_with("bh1-ix-") || id.starts_with("bh1-ce-") || id.starts_with("bh1-op-"), "{id}");
    assert!(id[7..].bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)), "{id}");
    assert_eq!(event.fingerprint.0[0], 1);
    assert!(event.key_time_ms < 1 << 48);
    assert!(event.event_type.len() <= 600);
    let _ = (event.body_without_credentials(), event.soft_key(), event.type_label(), event.lifecycle_warning());
    let framed: usize = event
        .fields
        .iter()
        .map(|(name, value)| name.len() + 3 + value.map_or(0, |value| value.len() + digits(value.len())))
        .sum();
    assert_eq!(framed, event.fields.framed().len(), "the framing reads back");
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}

fn message(member: &str) -> Event {
    payload(format!(r#"{{"type":"MESSAGE","message":{{"name":"spaces/A/messages/B"}},{member}}}"#))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_bytes_give_an_event(data: Vec<u8>, message_id in ".{0,8}", attributes in prop::collection::btree_map("ce-[a-z]{0,6}|.{0,5}", ".{0,9}", 0..6)) {
        check(&event(RawEvent { data: data.into(), message_id, attributes, ..RawEvent::default() }));
    }

    #[test]
    fn broken_samples_give_an_event(start in prop::sample::select(vec!["01", "23", "43", "52", "57", "60", "94", "97"]), cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut raw = raw(start);
        let mut data = raw.data.to_vec();
        for (index, byte) in cuts {
            let at = index.index(data.len());
            if byte < 40 { data.truncate(at.max(1)); } else { data[at] = byte; }
        }
        raw.data = data.into();
        check(&event(raw));
    }
}

#[test]
fn containers_nest_127_deep_and_no_deeper() {
    let nested = |levels: usize| message(&format!(r#""x":{}{}"#, "[".repeat(levels), "]".repeat(levels)));

    assert_eq!(nested(126).basis, Basis::IxMessage);
    assert_eq!(nested(127).basis, Basis::Opaque);
    check(&payload("[".repeat(1_000_000)));
    check(&payload(r#"{"a":"#.repeat(1_000_000)));
    check(&payload("\"".repeat(1_000_000)));
}

#[test]
fn numbers_beyond_a_double_are_no_json_and_others_are() {
    for number in ["1e400", "-1e999", "01", "+1", ".5", "1.", "NaN", "Infinity", "0x1", "1e"] {
        assert_eq!(message(&format!(r#""n":{number}"#)).basis, Basis::Opaque, "{number}");
    }
    for number in ["1e-400", "123456789012345678901234567890", "-0", "-0.0", "18446744073709551616", "1E+2", "1e308"] {
        assert_eq!(message(&format!(r#""n":{number}"#)).basis, Basis::IxMessage, "{number}");
    }
}

#[test]
fn numbers_are_written_by_their_value() {
    let canon = |number: &str| {
        let event = payload(format!(r#"{{"type":"MESSAGE","eventTime":{number},"space":{{}}}}"#));
        event.fields.iter().find(|(name, _)| *name == "e").unwrap().1.map(str::to_owned).unwrap()
    };
    assert_eq!(canon("18446744073709551615"), "raw:18446744073709551615");
    assert_eq!(canon("18446744073709551616"), "raw:f43f0000000000000");
    assert_eq!(canon("-9223372036854775808"), "raw:-9223372036854775808");
    assert_eq!(canon("-9223372036854775809"), "raw:fc3e0000000000000");
    assert_eq!(canon("-0"), "raw:f8000000000000000");
    assert_eq!(canon("1.0"), "raw:f3ff0000000000000");
    assert_eq!(canon("0.1"), "raw:f3fb999999999999a");
    assert_eq!(canon("-1"), "raw:-1");
}

#[test]
fn strict_parsing_decides_what_is_an_event() {
    let spoiled: [&[u8]; 8] = [
        br#""a":"\ud800""#,
        br#""a":"\udc00\ud800""#,
        br#""\ud800":1"#,
        b"\"a\":\"\xff\"",
        b"\"a\":\"\n\"",
        br#""a":"\x41""#,
        br#""a":1,"#,
        br#"a:1"#,
    ];
    for member in spoiled {
        let data = [br#"{"type":"MESSAGE","message":{"name":"spaces/A/messages/B"},"#, member, b"}"].concat();
        assert_eq!(payload(data).shape, Shape::Opaque, "{}", String::from_utf8_lossy(member));
    }
    let text = r#"{"type":"MESSAGE","message":{"name":"spaces/A/messages/B"}}"#;
    assert_eq!(payload(format!("{text}x")).shape, Shape::Opaque);
    assert_eq!(payload(format!("{text}{text}")).shape, Shape::Opaque);
    assert_eq!(payload(format!(" \r\n{text}\t ")).shape, Shape::Classic);
    assert_eq!(message(r#""a":"\ud83d\ude00\u0000""#).shape, Shape::Classic);
}

#[test]
fn of_duplicate_keys_the_last_wins() {
    let twice = payload(
        r#"{"type":"CARD_CLICKED","type":"MESSAGE","message":{"name":"x"},"message":{"name":"a","name":"spaces/A/messages/B"},"user":{"name":"u"},"user":null}"#,
    );
    let once = payload(r#"{"type":"MESSAGE","message":{"name":"spaces/A/messages/B"},"user":null}"#);
    assert_eq!((twice.id, twice.fingerprint), (once.id, once.fingerprint));

    let click = |parameters: &str| {
        payload(format!(r#"{{"type":"CARD_CLICKED","common":{{"parameters":{parameters}}},"chat":1}}"#))
    };
    assert_eq!(click(r#"{"b":"1","a":"2","b":"3"}"#).id, click(r#"{"a":"2","b":"3"}"#).id);
    assert_ne!(click(r#"{"b":"1","a":"2","b":"3"}"#).id, click(r#"{"a":"2","b":"1"}"#).id);
}

#[test]
fn three_levels_of_wrapping_are_one_too_many() {
    let json = |text: &str| serde_json::Value::from(text).to_string();
    let inner = r#"{"type":"MESSAGE","message":{"name":"spaces/A/messages/B"}}"#;

    assert_eq!(payload(json(&json(inner))).shape, Shape::Classic);
    assert_eq!(payload(json(&json(&json(inner)))).shape, Shape::Opaque);
    assert_eq!(payload(format!("\u{feff}\u{feff}{inner}")).shape, Shape::Opaque);
}

#[test]
fn a_wrapping_that_holds_no_object_is_left_alone() {
    for text in
        ["\"[1,2]\"", "\"text\"", "WzEsMiwzLDQsNSw2LDcsOF0=", "aGVsbG8gd29ybGQsIGhlbGxvIHdvcmxk", "1234567890123456"]
    {
        let event = payload(text);
        assert_eq!((event.shape, &event.body[..]), (Shape::Opaque, text.as_bytes()), "{text}");
    }
}

#[test]
fn a_field_can_not_pass_for_another() {
    let a = payload("{\"type\":\"MESSAGE\",\"space\":{\"name\":\"A\\nu=1:B\"},\"message\":{\"name\":\"m\"}}");
    let b = payload(r#"{"type":"MESSAGE","space":{"name":"A"},"user":{"name":"B"},"message":{"name":"m"}}"#);

    assert_ne!(a.id, b.id);
    check(&a);
}

#[test]
fn floods_of_attributes_members_and_parameters_are_handled_in_time() {
    let flood = |member: fn(usize) -> String| (0..30_000).map(member).collect::<Vec<_>>().join(",");
    let attributes = flood(|n| format!(r#""CE-a{n}":"""#));
    let envelope = format!(
        r#"{{"subscription":"s","message":{{"data":"e30=","messageId":"1","attributes":{{"ce-type":"t",{attributes}}}}}}}"#
    );
    let payloads = flood(|n| format!(r#""a{n}Payload":{{}}"#));
    let parameters = flood(|n| format!(r#"{{"key":"{}"}}"#, n % 1000));

    check(&payload(envelope));
    check(&payload(format!(r#"{{"chat":{{{payloads}}}}}"#)));
    check(&payload(format!(r#"{{"type":"CARD_CLICKED","action":{{"parameters":[{parameters}]}}}}"#)));
}
