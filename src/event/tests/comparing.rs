//! What is told about two events: enough to see why they are one or two, and nothing private.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{all, event, payload, raw};
use crate::event::{Comparison, Event, Part, RawEvent, Why, behind, beside, compare, decode, why_opaque};

fn payload_of(message_id: &str, data: &str) -> Event {
    event(RawEvent { data: data.to_owned().into(), message_id: message_id.to_owned(), ..RawEvent::default() })
}

/// Holds for any two events; gives everything that was told.
fn checked(a: &Event, b: &Event) -> String {
    match compare(a, b) {
        Comparison::One(others) => {
            assert_eq!(a.id, b.id);
            let payload = |why| matches!(why, Why::Content | Why::Volatile | Why::Card | Why::Time | Why::Written);
            let of_payload = others.shown.iter().any(|other| payload(other.why));
            assert_eq!(of_payload, a.raw.data != b.raw.data, "{others:?}");
            let forged = others.shown.iter().any(|other| other.why == Why::Content);
            assert_eq!(forged, a.fingerprint != b.fingerprint, "{others:?}");
            format!("{others:?}")
        }
        Comparison::Two(parts) => {
            assert_ne!(a.id, b.id);
            assert!(!parts.is_empty());
            for Part { name, first, second, .. } in &parts.shown {
                assert_ne!(first, second, "{name}");
                for text in [name, first, second] {
                    assert!(text.chars().count() < 120 && !text.contains(char::is_control), "{text:?}");
                }
            }
            format!("{parts:?}")
        }
    }
}

#[test]
fn every_pair_of_samples_is_told_apart_or_together() {
    let events: Vec<_> = all().into_iter().map(|(_, raw)| event(raw)).collect();

    for a in &events {
        for b in &events {
            let told = checked(a, b);
            for private in ["checkout", "Ana", "ana.ferris", "TOKEN", "PLACEHOLDER", "shuttle", "hello from"] {
                assert!(!told.contains(private), "{told}");
            }
        }
    }
}

/// Changes every value of a JSON document in turn.
fn changed(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) => {
            let inside = members.iter().flat_map(|(key, value)| {
                changed(value).into_iter().map(|new| {
                    let mut members = members.clone();
                    members.insert(key.clone(), new);
                    Value::Object(members)
                })
            });
            let without = members.keys().map(|key| {
                let mut members = members.clone();
                members.remove(key);
                Value::Object(members)
            });
            inside.chain(without).collect()
        }
        Value::Array(elements) => {
            let inside = elements.iter().enumerate().flat_map(|(index, value)| {
                changed(value).into_iter().map(move |new| {
                    let mut elements = elements.clone();
                    elements[index] = new;
                    Value::Array(elements)
                })
            });
            inside.chain([json!([1])]).collect()
        }
        Value::String(text) => {
            let otherwise =
                text.strip_suffix("000Z").map_or(json!({"email": text}), |text| json!(format!("{text}0+00:00")));
            vec![json!(format!("{text}\u{1b}changed")), otherwise]
        }
        Value::Number(number) => vec![json!(number.as_i64().map(|number| number + 1)), json!(number.as_f64())],
        Value::Bool(value) => vec![json!(!value), json!(value.to_string())],
        Value::Null => vec![json!(0)],
    }
}

#[test]
fn whatever_is_changed_in_a_sample_is_named() {
    let mut count = 0;
    let mut seen = std::collections::BTreeSet::new();
    // One sample of a group is enough.
    for (_, raw) in all().into_iter().filter(|(row, _)| seen.insert(row[4].clone())) {
        let Ok(value) = serde_json::from_slice::<Value>(&raw.data) else { continue };
        let first = event(raw.clone());
        let anonymous = RawEvent { message_id: String::new(), ..raw };
        let second = event(anonymous.clone());
        for changed in changed(&value) {
            let data = changed.to_string().into();
            // Every other one has no message id: then the payload stands in for it.
            let (one, raw) = if count % 2 == 0 { (&first, &*first.raw) } else { (&second, &anonymous) };
            count += 1;
            checked(one, &event(RawEvent { data, ..raw.clone() }));
        }
    }
    assert!(count > 3_000, "{count}");
}

fn parts(a: &Event, b: &Event) -> Vec<[String; 4]> {
    match compare(a, b) {
        Comparison::Two(parts) => {
            parts.shown.into_iter().map(|part| [part.field, part.name, part.first, part.second]).collect()
        }
        Comparison::One(others) => panic!("one event: {others:?}"),
    }
}

#[test]
fn values_behind_the_digest_of_an_action_are_readable() {
    let (approve, decline) = (event(raw("23")), event(raw("26")));

    assert_eq!(parts(&approve, &decline), [["a", "action", "\"approve\"", "\"decline\""].map(str::to_owned)]);
    let shown: Vec<_> = behind(&approve).shown.into_iter().map(|part| (part.name, part.first)).collect();
    let expected = [
        ("action", "\"approve\""),
        ("parameter \"req\"", "\"118\""),
        ("input reason.stringInputs.value[0]", "\"loyalty\""),
    ];
    assert_eq!(shown, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(behind(&event(raw("01"))).is_empty());
}

#[test]
fn an_input_that_has_the_name_of_a_volatile_member_counts_as_an_input() {
    let submit = |value: &str| {
        let inputs = json!({"email": {"stringInputs": {"value": [value]}}});
        let data = json!({"type": "SUBMIT_FORM", "user": {}, "commonEventObject": {"formInputs": inputs}});
        event(RawEvent { data: data.to_string().into(), message_id: "1".to_owned(), ..RawEvent::default() })
    };

    let told = parts(&submit("a"), &submit("b"));

    assert_eq!(told, [["a", "input email.stringInputs.value[0]", "\"a\"", "\"b\""].map(str::to_owned)]);
}

#[test]
fn content_is_told_without_its_texts() {
    let told = |text: &str, state: &str| {
        let data = json!({"type": "MESSAGE", "eventTime": "2026-05-04T09:15:30Z", "message":
            {"text": text, "historyState": state, "sender": {"displayName": text}}});
        event(RawEvent { data: data.to_string().into(), ..RawEvent::default() })
    };

    let parts = parts(&told("private words", "ON"), &told("other words!", "OFF"));

    assert_eq!(parts[0], ["d", "content message.historyState", "\"ON\"", "\"OFF\""]);
    assert_eq!(parts[1][1], "content message.text");
    assert!(parts[1][2].starts_with("(text of 13, sha256 ") && parts[1][3].starts_with("(text of 12, "), "{parts:?}");
    assert_eq!(parts.len(), 2);
}

#[test]
fn without_a_message_id_the_payload_is_what_tells_apart() {
    let home = |state: &str| {
        let data = json!({"type": "APP_HOME", "state": state}).to_string();
        event(RawEvent { data: data.into(), ..RawEvent::default() })
    };
    let text = |name: &str| {
        let attributes = [(name.to_owned(), "1".to_owned())].into();
        event(RawEvent { data: "x".into(), attributes, ..RawEvent::default() })
    };

    let known = event(RawEvent { message_id: "7".to_owned(), ..(*home("ON").raw).clone() });
    let [one] = &parts(&known, &home("ON"))[..] else { panic!("more than the message id") };
    assert_eq!(one[..3], ["x", "message id", "7"]);
    assert!(one[3].starts_with("(no message id; payload of 32 bytes, sha256 "), "{one:?}");
    assert_eq!((beside(&known, &home("ON")).message_ids, text("a").fields.iter().count()), ([true, false], 3));

    let told = parts(&home("ON"), &home("OFF"));
    assert_eq!(told[0][..2], ["x", "payload, as there is no message id"]);
    assert_eq!(told[1], ["x", "payload state", "\"ON\"", "\"OFF\""]);
    let told = parts(&text("a"), &text("b"));
    assert_eq!(told[0], ["at", "attribute a", "\"1\"", "(none)"]);
    assert_eq!(told[1], ["at", "attribute b", "(none)", "\"1\""]);
}

#[test]
fn a_digest_that_only_one_id_has_is_one_row() {
    let known = |kind: &str, more: Value| {
        let mut data = json!({"type": kind, "eventTime": "2026-05-04T09:15:30Z", "user": {"name": "users/1"},
            "space": {"name": "spaces/A"}, "message": {"name": "spaces/A/messages/B", "text": "a", "thread": {}}});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event(RawEvent { data: data.to_string().into(), ..RawEvent::default() })
    };

    let told = parts(&known("MESSAGE", json!({})), &known("MESSAGE2", json!({"more": 1, "other": 2})));
    let fields: Vec<_> = told.iter().map(|part| part[0].as_str()).collect();
    assert_eq!(fields, ["t", "a", "d"]);
    assert_eq!(told[1][2..], ["(none)", "(no action, no inputs)"]);
    assert_eq!(told[2][..3], ["d", "content (digest)", "(none)"]);
    assert!(told[2][3].starts_with("(digest ") && told[2][3].len() == "(digest 12345678…)".len(), "{told:?}");

    // What the id of a message is made without is not told as part of it.
    let told = parts(&known("MESSAGE", json!({"action": {"function": "f"}})), &known("CARD_CLICKED", json!({})));
    assert_eq!(told[1], ["a", "action and inputs (digest)", "(none)", "(no action, no inputs)"]);

    let text = |message_id: &str| {
        event(RawEvent { data: "x".into(), message_id: message_id.to_owned(), ..RawEvent::default() })
    };
    let told = parts(&text("1"), &text(""));
    assert_eq!(told[1], ["at", "attributes (digest)", "(none)", "(no attributes)"]);
}

#[test]
fn what_differs_beside_the_id_is_told_and_may_be_nothing() {
    let home = |id: &str, more: &str| payload_of(id, &format!(r#"{{"type":"APP_HOME"{more}}}"#));

    let names = |a: &Event, b: &Event| beside(a, b).payload.shown.into_iter().map(|other| other.name).collect();
    let told: Vec<String> = names(&home("1", ""), &home("2", r#","foo":1,"user":{"email":"a"}"#));
    assert_eq!(told, ["foo", "user"]);
    let told: Vec<String> = names(&home("1", ""), &home("2", ""));
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn numbers_that_are_one_double_are_named() {
    let told = |first: &str, second: &str| {
        let text = |more: &str| payload_of("1", &format!(r#"{{"type":"MESSAGE","a":"\"12","b":true,"c":{more}}}"#));
        match compare(&text(first), &text(second)) {
            Comparison::One(others) => others.shown.into_iter().map(|other| other.name).collect::<Vec<_>>(),
            Comparison::Two(parts) => panic!("two events: {parts:?}"),
        }
    };

    let same = ["numbers that are written differently but are the same double"];
    assert_eq!(told("36893488147419103232", "36893488147419103233"), same);
    assert_eq!(told("[1.50, 2]", "[1.5, 2]"), same);
    assert!(told("[1, 2]", "[1,2]")[0].starts_with("order of keys"));
}

#[test]
fn why_a_message_is_no_event_is_told_without_its_text() {
    for (data, expected) in [
        ("", "the payload is empty"),
        ("private", "not JSON: expected value at line 1 column 1"),
        (r#"{"type":"MESSAGE"} private"#, "not JSON: trailing characters at line 1 column 20"),
        (r#"{"type":"MESSAGE","a":"\ud800"}"#, "not JSON: unexpected end of hex escape at line 1 column 30"),
        (&*("[".repeat(200) + &"]".repeat(200)), "not JSON: recursion limit exceeded at line 1 column 128"),
        ("[1]", "JSON, but an array and no object"),
        (r#"{"a":"private"}"#, "a JSON object without type"),
        (r#"{"type":7}"#, "a JSON object whose type is no text, or empty"),
        (r#"{"type":"private"}"#, "a JSON object whose type is none of Chat's, without eventTime and a space or user"),
    ] {
        assert_eq!(why_opaque(&payload(data.to_owned())).as_deref(), Some(expected), "{data}");
    }
    let bytes = payload(&b"ab\xff"[..]);
    assert_eq!(why_opaque(&bytes).as_deref(), Some("not JSON: no UTF-8 after 2 bytes"));
    assert_eq!(why_opaque(&event(raw("01"))), None);
}

#[test]
fn data_of_a_cloudevent_that_lacks_an_id_is_compared() {
    let partial = |email: &str| {
        let mut raw = raw("57");
        raw.attributes.remove("ce-id");
        raw.data = json!({"message": {"name": "spaces/A/messages/B", "email": email}}).to_string().into();
        decode(&Arc::new(raw))
    };

    let told = parts(&partial("a@b"), &partial("a@c"));

    assert_eq!((told.len(), &*told[0][1]), (1, "content message.email"));
    assert!(told[0][2].starts_with("(text of 3, "), "{told:?}");
}

#[test]
fn lists_are_bounded_and_say_so() {
    let submit = |end: &str| {
        let inputs: serde_json::Map<_, _> =
            (0..50).map(|n| (format!("input{n}"), json!(format!("{n}{end}")))).collect();
        let data = json!({"type": "SUBMIT_FORM", "user": {}, "commonEventObject": {"formInputs": inputs}});
        event(RawEvent { data: data.to_string().into(), message_id: "1".to_owned(), ..RawEvent::default() })
    };

    let Comparison::Two(parts) = compare(&submit("a"), &submit("b")) else { panic!("one event") };
    assert_eq!((parts.shown.len(), parts.more), (20, 30));

    let chat = |text: &str| {
        let more: serde_json::Map<_, _> = (0..50).map(|n| (format!("more{n}"), json!({"email": text}))).collect();
        let message = json!({"name": "spaces/A/messages/B", "text": text, "more": more});
        let data = json!({"type": "MESSAGE", "message": message}).to_string();
        event(RawEvent { data: data.into(), message_id: text.to_owned(), ..RawEvent::default() })
    };
    let Comparison::One(others) = compare(&chat("a"), &chat("b")) else { panic!("two events") };
    assert_eq!((others.shown.len(), others.more), (20, 32));
    assert_eq!((others.shown[0].why, &*others.shown[0].name), (Why::Content, "message.text"));
    assert_eq!(others.shown[1].why, Why::Transport);
}
