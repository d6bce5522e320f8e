//! Copies of an event keep its identity; anything that makes it another event changes its id.

use base64::{Engine, engine::general_purpose};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{all, event, identity, raw};
use crate::event::{
    Basis, RawEvent, Shape,
    canonical::{Canon, Scrub},
    document::Document,
};

/// A small generator of numbers: what is done to a sample follows from one seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// JSON text with keys in another order, other spaces, other escapes.
fn reprint(value: &Value, dice: &mut Dice) -> String {
    let space = |dice: &mut Dice| ["", "", " ", "\n\t"][dice.roll(4)];
    match value {
        Value::Object(members) => {
            let mut left: Vec<_> = members.iter().collect();
            let mut parts = Vec::new();
            while !left.is_empty() {
                let (key, value) = left.swap_remove(dice.roll(left.len()));
                let (before, after) = (space(dice), space(dice));
                let key = escape(key, dice);
                parts.push(format!("{before}{key}{after}:{}{}", space(dice), reprint(value, dice)));
            }
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(elements) => {
            let parts: Vec<_> =
                elements.iter().map(|element| format!("{}{}", space(dice), reprint(element, dice))).collect();
            format!("[{}]", parts.join(","))
        }
        Value::String(text) => escape(text, dice),
        other => other.to_string(),
    }
}

fn escape(text: &str, dice: &mut Dice) -> String {
    let mut units = [0; 2];
    let escaped = text.chars().map(|c| {
        if dice.roll(8) == 0 || c < ' ' || c == '"' || c == '\\' {
            c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        } else {
            c.to_string()
        }
    });
    format!("\"{}\"", escaped.collect::<String>())
}

const VOLATILE: [&str; 17] = [
    "token",
    "configCompleteRedirectUrl",
    "configCompleteRedirectUri",
    "authorizationEventObject",
    "avatarUrl",
    "displayName",
    "email",
    "domainId",
    "lastActiveTime",
    "membershipCount",
    "spaceUri",
    "thumbnailUri",
    "downloadUri",
    "retentionSettings",
    "emojiReactionSummaries",
    "cards",
    "cardsV2",
];

/// Drops, changes or adds volatile members everywhere but in what a user entered.
fn stir_volatile(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(members) => {
            for key in VOLATILE {
                match dice.roll(4) {
                    0 => drop(members.remove(key)),
                    1 => drop(members.insert(key.to_owned(), json!({"anything": dice.roll(99)}))),
                    _ => {}
                }
            }
            let entered = |key: &str| matches!(key, "formInputs" | "parameters") || VOLATILE.contains(&key);
            members.iter_mut().filter(|(key, _)| !entered(key)).for_each(|(_, value)| stir_volatile(value, dice));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|element| stir_volatile(element, dice)),
        _ => {}
    }
}

/// Adds members nobody knows to every object but what a user entered.
fn add_unknown(value: &mut Value, dice: &mut Dice) {
    if let Value::Object(members) = value {
        let entered = |key: &str| matches!(key, "formInputs" | "parameters");
        members.iter_mut().filter(|(key, _)| !entered(key)).for_each(|(_, value)| add_unknown(value, dice));
        members.insert(format!("shiny{}", dice.roll(9)), json!(["new", dice.roll(9)]));
    }
}

/// Samples with a JSON object that is an event.
fn events() -> Vec<(Vec<String>, RawEvent, Value)> {
    let samples = all().into_iter().filter(|(_, raw)| event(raw.clone()).shape != Shape::Opaque);
    samples
        .filter_map(|(row, raw)| Some((row, raw.clone(), serde_json::from_slice::<Value>(&raw.data).ok()?)))
        .filter(|(_, _, value)| value.is_object())
        .collect()
}

fn with_data(raw: &RawEvent, data: impl Into<bytes::Bytes>) -> RawEvent {
    RawEvent { data: data.into(), ..raw.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn printing_differently_keeps_id_fingerprint_and_key(seed: u64) {
        let mut dice = Dice(seed);
        for (row, raw, value) in events() {
            let copy = event(with_data(&raw, reprint(&value, &mut dice)));
            prop_assert_eq!(identity(&copy), identity(&event(raw)), "{}", row[0]);
        }
    }

    #[test]
    fn volatile_members_are_no_part_of_identity(seed: u64) {
        let mut dice = Dice(seed);
        for (row, raw, mut value) in events() {
            stir_volatile(&mut value, &mut dice);
            let copy = event(with_data(&raw, value.to_string()));
            prop_assert_eq!(identity(&copy), identity(&event(raw)), "{}", row[0]);
        }
    }

    #[test]
    fn unknown_members_do_not_change_the_id_of_a_known_type(seed: u64) {
        let mut dice = Dice(seed);
        for (row, raw, mut value) in events() {
            let old = event(raw.clone());
            if row[0].starts_with("89") {
                continue; // no message name: the whole content is its id
            }
            add_unknown(&mut value, &mut dice);
            let copy = event(with_data(&raw, value.to_string()));
            prop_assert_eq!(copy.id.as_str(), old.id.as_str(), "{}", row[0]);
        }
    }

    #[test]
    fn canonical_bytes_agree_with_an_independent_reading(value in any_json()) {
        let text = value.to_string();
        let document = Document::parse(text.into()).unwrap();
        let mut canon = Canon::new(Vec::new(), Scrub::default());
        canon.value(document.root());
        prop_assert_eq!(String::from_utf8_lossy(&canon.into_sink()).into_owned(), canonical(&value));
    }
}

#[test]
fn wrapping_once_or_twice_keeps_identity_and_body() {
    let ways = (0..5).flat_map(|first| (0..6).map(move |second| (first, second)));
    // One byte order mark goes; a second one is no text that anybody writes.
    for (first, second) in ways.filter(|ways| *ways != (3, 3)) {
        for (row, raw, _) in events() {
            let old = event(raw.clone());
            let mut copy = wrap(&raw, first);
            if second < 5 {
                copy = wrap(&copy, second);
            }
            let copy = event(copy);
            assert_eq!(identity(&copy), identity(&old), "{} {first} {second}", row[0]);
            assert_eq!(copy.body, old.body, "{} {first} {second}", row[0]);
        }
    }
}

fn wrap(raw: &RawEvent, how: usize) -> RawEvent {
    let text = String::from_utf8(raw.data.to_vec()).unwrap();
    match how {
        0 => with_data(raw, Value::String(text).to_string()),
        1 => with_data(raw, general_purpose::STANDARD.encode(&raw.data)),
        2 => {
            let encoded = general_purpose::URL_SAFE_NO_PAD.encode(&raw.data);
            let lines: Vec<_> = encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line)).collect();
            with_data(raw, lines.join(" \r\n"))
        }
        3 => with_data(raw, format!("\u{feff}{text}")),
        _ => {
            let message = json!({"data": general_purpose::STANDARD.encode(&raw.data), "message_id": raw.message_id,
                "attributes": raw.attributes, "publishTime": "2026-05-04T09:15:30Z"});
            let data = json!({"message": message, "subscription": "projects/p/subscriptions/s"}).to_string();
            RawEvent { data: data.into(), message_id: "other".to_owned(), attributes: [].into(), ..raw.clone() }
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec(("[a-c]{0,10}|.{0,9}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The documented rules once more, over another kind of tree.
fn canonical(value: &Value) -> String {
    let string = |text: &str| format!("s{}:{text}", text.len());
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => match number.as_f64() {
            _ if number.is_u64() || number.is_i64() => number.to_string(),
            Some(float) => format!("f{:016x}", float.to_bits()),
            None => unreachable!(),
        },
        Value::String(text) => string(text),
        Value::Array(elements) => format!("[{}]", elements.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_bytes());
            let members: Vec<_> =
                members.into_iter().map(|(key, value)| format!("{}={}", string(key), canonical(value))).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

#[test]
fn another_transport_id_matters_only_where_the_id_rests_on_it() {
    for (row, raw) in all() {
        let old = event(raw.clone());
        let copy = event(RawEvent { message_id: "another".to_owned(), ..raw });
        let rests_on_it = matches!(old.basis, Basis::IxTransport | Basis::Opaque);
        assert_eq!(copy.id != old.id, rests_on_it, "{}", row[0]);
        assert_eq!(copy.fingerprint, old.fingerprint, "{}", row[0]);
    }
}

#[test]
fn every_other_transport_fact_is_no_part_of_identity() {
    for (row, raw) in all() {
        let mut copy =
            RawEvent { publish_time: None, ordering_key: "o".to_owned(), delivery_attempt: Some(7), ..raw.clone() };
        copy.attributes.insert("googclient_schemaencoding".to_owned(), "JSON".to_owned());
        copy.attributes.insert("ce-traceparent".to_owned(), "00-1-1-01".to_owned());
        assert_eq!(identity(&event(copy)), identity(&event(raw)), "{}", row[0]);
    }
}

#[test]
fn every_field_of_identity_changes_the_id() {
    let places = [
        ("01", &["/type", "/eventTime", "/message/name", "/space/name", "/user/name", "/thread/name"][..]),
        ("09", &["/message/lastUpdateTime"]),
        ("11", &["/message/slashCommand/commandId"]),
        (
            "23",
            &[
                "/eventTime",
                "/user/name",
                "/message/name",
                "/action/actionMethodName",
                "/action/parameters/0/value",
                "/action/parameters/0/key",
                "/common/parameters/req",
                "/common/formInputs/reason/stringInputs/value/0",
            ],
        ),
        ("30", &["/dialogEventType", "/isDialogEvent", "/common/formInputs/wake/timeInput/hours"]),
        ("35", &["/appCommandMetadata/appCommandId", "/appCommandMetadata/appCommandType", "/thread/name"]),
        ("42", &["/commonEventObject/invokedFunction", "/commonEventObject/formInputs/floor/stringInputs/value/0"]),
        (
            "43",
            &[
                "/chat/eventTime",
                "/chat/user/name",
                "/chat/messagePayload/message/name",
                "/chat/messagePayload/space/name",
            ],
        ),
        ("48", &["/commonEventObject/parameters/shift", "/chat/buttonClickedPayload/isDialogEvent"]),
        ("52", &["/chat/appCommandPayload/appCommandMetadata/appCommandId"]),
        ("55", &["/commonEventObject/parameters/autocomplete_widget_query"]),
        ("60", &["/id", "/type"]),
        ("89", &["/message/text"]),
        ("99", &["/message/name"]),
    ];
    for (start, pointers) in places {
        let old = raw(start);
        for pointer in pointers {
            let mut value: Value = serde_json::from_slice(&old.data).unwrap();
            let place = value.pointer_mut(pointer).unwrap_or_else(|| panic!("{start} has no {pointer}"));
            *place = match place.take() {
                Value::String(text) if text.starts_with("20") => format!("2031{}", &text[4..]).into(),
                Value::String(text) if text == "MESSAGE" => "ADDED_TO_SPACE".into(),
                Value::String(text) if text.parse::<u64>().is_ok() => "77".into(),
                Value::String(text) => format!("{text}x").into(),
                Value::Bool(value) => (!value).into(),
                _ => 77.into(),
            };
            assert_ne!(event(with_data(&old, value.to_string())).id, event(old.clone()).id, "{start} {pointer}");
        }
    }
    let lifecycle = event(raw("75")).id;
    for name in ["ce-id", "ce-source", "ce-type"] {
        let mut other = raw("75");
        other.attributes.get_mut(name).unwrap().push('x');
        assert_ne!(event(other).id, lifecycle, "{name}");
    }
}

#[test]
fn two_subscriptions_bring_one_chat_event_under_one_id() {
    let mut other = raw("57");
    other.attributes.insert("ce-source".to_owned(), "//workspaceevents.googleapis.com/subscriptions/other".to_owned());

    assert_eq!(identity(&event(other)), identity(&event(raw("57"))));
}

#[test]
fn several_payloads_make_another_event_than_each_alone() {
    let mut value: Value = serde_json::from_slice(&raw("43").data).unwrap();
    value["chat"]["addedToSpacePayload"] = json!({});
    let both = event(with_data(&raw("43"), value.to_string()));

    assert_eq!(both.event_type, "MESSAGE");
    assert_ne!(both.id, event(raw("43")).id);
    assert!(both.fields.iter().any(|field| field == ("p", Some("addedToSpacePayload,messagePayload"))));
}

#[test]
fn a_patched_card_is_no_mismatch_but_other_words_in_a_message_are() {
    let changed = |start: &str, pointer: &str| {
        let mut value: Value = serde_json::from_slice(&raw(start).data).unwrap();
        *value.pointer_mut(pointer).unwrap() = "patched".into();
        let (old, new) = (event(raw(start)), event(with_data(&raw(start), value.to_string())));
        assert_eq!(old.id, new.id, "{start}");
        old.fingerprint != new.fingerprint
    };

    assert!(!changed("23", "/message/text"));
    assert!(!changed("48", "/chat/buttonClickedPayload/message/text"));
    assert!(changed("01", "/message/text"));
    assert!(changed("43", "/chat/messagePayload/message/text"));
}
