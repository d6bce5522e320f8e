//! What handlers, rules and metrics get from an event.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use chrono::DateTime;
use serde_json::{Value, json};

use super::{all, event, payload, raw};
use crate::event::{Basis, Event, LifecycleWarning, RawEvent, Shape, sample};

/// A message as Pub/Sub pushes it.
fn envelope(raw: &RawEvent) -> String {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(&raw.data);
    let message = json!({"data": data, "messageId": raw.message_id, "attributes": raw.attributes});
    json!({"subscription": "projects/p/subscriptions/s", "message": message}).to_string()
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn an_interaction_s_body_is_the_unwrapped_event_byte_for_byte() {
    let plain = raw("01");

    assert_eq!(event(plain.clone()).body, plain.data);
    assert_eq!(event(raw("94")).body, plain.data);
    assert_eq!(event(raw("97")).body, plain.data);
    assert_eq!(event(raw("04")).body, raw("04").data);
}

#[test]
fn a_cloudevent_s_body_is_its_data_and_its_attributes_are_kept_in_either_mode() {
    let (binary, structured) = (event(raw("57")), event(raw("60")));

    assert_eq!(binary.body, raw("57").data);
    assert_eq!(structured.body, binary.body);
    for name in ["id", "source", "type", "time", "subject", "specversion", "datacontenttype"] {
        assert_eq!(structured.ce_attributes()[name], binary.ce_attributes()[name], "{name}");
    }
    assert!(!structured.ce_attributes().contains_key("data"));
}

#[test]
fn structured_data_is_a_slice_of_what_came() {
    let text = r#"{"specversion":"1.0","data":{"n": 1.50, "u":"\u0041"} ,"id":"1","source":"s","type":"t"}"#;

    assert_eq!(payload(text).body, r#"{"n": 1.50, "u":"\u0041"}"#);
    let encoded = text.replace(r#""data":{"n": 1.50, "u":"\u0041"}"#, r#""data_base64":"eyJhIjoxfQ==""#);
    assert_eq!(payload(encoded).body, r#"{"a":1}"#);
    let absent = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
    assert_eq!((payload(absent).body.len(), payload(absent).basis), (0, Basis::CeSourceId));
}

#[test]
fn credentials_are_cut_out_of_the_body_and_nothing_else_changes() {
    for (row, raw) in all() {
        let event = event(raw);
        let clean = event.body_without_credentials();
        if event.shape == Shape::Opaque {
            assert_eq!(clean, event.body);
            continue;
        }
        let mut expected = json_of(&event.body);
        remove(&mut expected);
        assert_eq!(json_of(&clean), expected, "{}", row[0]);
        if expected == json_of(&event.body) {
            assert_eq!(clean.as_ptr(), event.body.as_ptr(), "{}: copied for nothing", row[0]);
        }
    }
    assert!(event(raw("43")).body.windows(12).any(|text| text == b"SYSTEM-ID-TO"));
}

fn remove(value: &mut Value) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(remove),
        Value::Object(members) => {
            for key in ["configCompleteRedirectUrl", "configCompleteRedirectUri", "authorizationEventObject"] {
                members.shift_remove(key);
            }
            members.values_mut().for_each(remove);
        }
        _ => {}
    }
}

#[test]
fn the_typed_view_reads_every_shape() {
    let click = event(raw("23"));
    assert_eq!(click.chat.action.as_deref(), Some("approve"));
    assert_eq!(click.chat.message.as_deref(), Some("spaces/AAQAbellOps1/messages/Ck1CardAAAA.Ck1CardAAAA"));
    assert_eq!(click.chat.sender_type.as_deref(), Some("BOT"));
    assert_eq!(event(raw("50")).chat.action.as_deref(), Some("swap"));

    let command = |start| event(raw(start)).chat.command.map(|command| (command.kind, command.id, command.name));
    let told =
        |kind: &str, id: &str, name: Option<&str>| Some((kind.to_owned(), id.to_owned(), name.map(str::to_owned)));
    assert_eq!(command("11"), told("SLASH_COMMAND", "3", Some("/checkin")));
    assert_eq!(command("52"), told("SLASH_COMMAND", "1", Some("/help")));
    assert_eq!(command("35"), told("QUICK_COMMAND", "7", None));
    assert_eq!(command("37"), told("MESSAGE_ACTION", "9", None));
    assert_eq!(command("01"), None);

    let created = event(raw("57")).chat;
    assert_eq!(created.space.as_deref(), Some("spaces/AAQAbellOps1"));
    assert_eq!(created.user.as_deref(), Some("users/100000000000000000102"));
    assert_eq!(created.sender_type.as_deref(), Some("HUMAN"));
    for start in ["61", "62", "64", "67", "70", "72", "73"] {
        assert_eq!(event(raw(start)).chat.space.as_deref(), Some("spaces/AAQAbellOps1"), "{start}");
    }
    assert_eq!(event(raw("74")).chat.space.as_deref(), Some("spaces/AAQAbellDesk2"));
    assert_eq!(event(raw("66")).chat.sender_type.as_deref(), Some("BOT"));
    assert_eq!(event(raw("41")).shape, Shape::Addon);
}

#[test]
fn a_command_s_name_is_never_guessed_from_private_text() {
    let mut body = json_of(&raw("11").data);
    body["message"].as_object_mut().unwrap().remove("annotations");

    let command = payload(body.to_string()).chat.command.unwrap();

    assert_eq!((command.id.as_str(), command.name), ("3", None));
}

#[test]
fn a_batch_counts_as_the_app_s_own_only_when_every_message_is() {
    let batch = |types: &[&str]| {
        let messages: Vec<_> = types.iter().map(|kind| json!({"message": {"sender": {"type": kind}}})).collect();
        let mut raw = raw("57");
        raw.attributes.insert("ce-type".to_owned(), "google.workspace.chat.message.v1.batchCreated".to_owned());
        raw.data = json!({"messages": messages}).to_string().into();
        event(raw).chat.sender_type
    };

    assert_eq!(batch(&["BOT", "BOT"]).as_deref(), Some("BOT"));
    assert_eq!(batch(&["BOT", "HUMAN"]), None);
    assert_eq!(batch(&[]), None);
}

#[test]
fn types_are_labelled_out_of_a_closed_set() {
    for sample in sample::built_in() {
        let event = event(sample.raw());
        assert_eq!(event.type_label(), event.event_type, "{}", sample.name);
    }
    let strange = payload(r#"{"type":"NEW_THING","eventTime":"2026-05-04T09:15:30Z","space":{"name":"spaces/A"}}"#);
    assert_eq!((strange.type_label(), strange.event_type.as_str()), ("other", "NEW_THING"));
    assert_eq!(payload(r#"{"chat":{"shinyPayload":{}}}"#).event_type, "addon:shinyPayload");
}

#[test]
fn an_invented_type_is_bounded_and_holds_no_control_characters() {
    let long = "Ä\\u0000".repeat(4000);
    let event = payload(format!(r#"{{"type":"{long}","eventTime":"x","user":{{"name":"users/\n"}}}}"#));

    assert!(event.event_type.len() <= 600 && !event.event_type.contains('\0'), "{}", event.event_type.len());
    assert_eq!(event.chat.user, None);
}

#[test]
fn a_space_read_off_an_id_or_a_subject_is_bounded_like_every_name() {
    let space = |subject: &str, id: &str| {
        let mut raw = raw("61");
        raw.data = Bytes::new();
        raw.attributes.insert("ce-subject".to_owned(), format!("//chat.googleapis.com/spaces/{subject}"));
        raw.attributes.insert("ce-id".to_owned(), format!("spaces/{id}/spaceEvents/E"));
        event(raw).chat.space
    };

    assert_eq!(space("A", "B").as_deref(), Some("spaces/A"));
    assert_eq!(space("A\n", "B").as_deref(), Some("spaces/B"));
    assert_eq!(space(&"A".repeat(506), &"B".repeat(505)), Some(format!("spaces/{}", "B".repeat(505))));
    assert_eq!(space(&"A".repeat(506), "B\0"), None);
}

#[test]
fn subscriptions_warn_of_their_end() {
    assert_eq!(event(raw("75")).lifecycle_warning(), Some(LifecycleWarning::Expiring));
    assert_eq!(event(raw("77")).lifecycle_warning(), Some(LifecycleWarning::Expired));
    assert_eq!(event(raw("78")).lifecycle_warning(), Some(LifecycleWarning::Suspended));
    assert_eq!(event(raw("57")).lifecycle_warning(), None);
}

#[test]
fn a_copy_with_a_fresh_time_has_the_same_soft_key_and_another_id() {
    let first = event(raw("23"));
    let second = sample::restamp(&raw("23"), DateTime::from_timestamp(1_800_000_000, 0).unwrap(), None);
    let second = event(second);

    assert_ne!(first.id, second.id);
    assert_eq!(first.soft_key(), second.soft_key());
    assert_ne!(first.soft_key(), event(raw("26")).soft_key());
    assert_eq!(event(raw("38")).soft_key(), event(raw("39")).soft_key());
    assert!(event(raw("38")).soft_key().is_some());
    assert_eq!((event(raw("57")).soft_key(), event(raw("81")).soft_key()), (None, None));
}

#[test]
fn event_time_is_the_event_s_own_and_gives_the_key_its_front() {
    assert_eq!(event(raw("01")).key_time_ms, 1_777_886_130_250);
    assert_eq!(event(raw("57")).key_time_ms, 0);
    assert_eq!(event(raw("57")).time.unwrap().timestamp_micros(), 1_777_978_800_260_127);
    assert_eq!(event(raw("38")).time, None);
    let at = |time: &str| payload(format!(r#"{{"type":"MESSAGE","eventTime":{time},"space":{{}}}}"#));
    let millis = |time| at(time).key_time_ms;
    assert_eq!(millis(r#""1999-12-31T23:59:59.999Z""#), 0);
    assert_eq!(millis(r#""2000-01-01T00:00:00.0019Z""#), 946_684_800_001);
    assert_eq!(millis(r#""2099-12-31T23:59:59.999Z""#), 4_102_444_799_999);
    assert_eq!(millis(r#""2100-01-01T00:00:00Z""#), 0);
    assert_eq!(millis(r#""yesterday""#), 0);
    assert_eq!(millis(r#"{"seconds":"1777886130","nanos":250000000}"#), 1_777_886_130_250);
    assert_eq!(millis(r#"{"seconds":9223372036854775807}"#), 0);
}

#[test]
fn equal_instants_agree_however_they_are_printed() {
    let e = |time: &str| {
        let event = payload(format!(r#"{{"type":"MESSAGE","eventTime":{time},"space":{{}}}}"#));
        event.fields.iter().find(|(name, _)| *name == "e").unwrap().1.map(str::to_owned)
    };
    let same = [
        r#""2026-05-04T09:15:30.25Z""#,
        r#""2026-05-04t09:15:30.250000000z""#,
        r#""2026-05-04T11:45:30.250+02:30""#,
        r#""2026-05-03T22:15:30.25-11:00""#,
        r#"{"seconds":1777886130,"nanos":250000000}"#,
        r#"{"nanos":250000000,"seconds":"1777886130"}"#,
    ];
    for time in same {
        assert_eq!(e(time).as_deref(), Some("1777886130.250000000"), "{time}");
    }
    assert_eq!(e(r#""1969-12-31T23:59:59.5Z""#).as_deref(), Some("-1.500000000"));
    let none = [
        "2026-05-04 09:15:30Z",
        "2026-05-04T09:15:30",
        "2026-05-04T09:15:30.Z",
        "2026-05-04T09:15:60Z",
        "2026-02-30T09:15:30Z",
        "2026-05-04T09:15:30.0123456789Z",
        "2026-05-04T09:15:30+24:00",
        "today",
        "2026-05-04T24:00:00Z",
    ];
    for time in none {
        assert_eq!(e(&format!("\"{time}\"")), Some(format!("raw:{time}")));
    }
    assert_eq!(e("1777886130").as_deref(), Some("raw:1777886130"));
    assert_eq!(e(r#"{"seconds":1,"nanos":1000000000}"#).as_deref(), Some("raw:{s5:nanos=1000000000,s7:seconds=1}"));
    assert_eq!((e("null"), e(r#""""#)), (None, None));
}

#[test]
fn attribute_names_are_read_in_any_case() {
    let mut raw = raw("57");
    let id = event(raw.clone()).id;
    raw.attributes = raw.attributes.into_iter().map(|(name, value)| (name.to_uppercase(), value)).collect();

    assert_eq!(event(raw).id, id);
}

#[test]
fn of_attribute_names_that_differ_only_in_case_the_lower_one_counts_else_the_first() {
    let id = |given: &[(&str, &str)]| {
        let mut raw = raw("57");
        raw.attributes.remove("ce-id");
        raw.attributes.extend(given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let event = event(raw);
        let field = event.fields.iter().find(|(name, _)| *name == "id").unwrap().1.unwrap_or_default().to_owned();
        let attribute = event.ce_attributes()["id"].clone().into_owned();
        (field, attribute)
    };
    let both = |id: &str| (id.to_owned(), id.to_owned());

    assert_eq!(id(&[("CE-id", "first"), ("Ce-ID", "second"), ("ce-id", "lower")]), both("lower"));
    assert_eq!(id(&[("CE-id", "first"), ("Ce-ID", "second")]), both("first"));
    assert_eq!(id(&[("CE-ID", "other"), ("ce-id", "")]), both(""));
}

#[test]
fn attributes_are_those_of_the_event_not_of_what_it_came_in() {
    let names = |event: &Event| event.ce_attributes().into_keys().map(Cow::into_owned).collect::<Vec<_>>();
    let binary = event(raw("57"));
    let outer = [("ce-extra", "of the delivery"), ("other", "")];
    let outer: BTreeMap<_, _> = outer.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();

    let structured = event(RawEvent { attributes: outer.clone(), ..raw("60") });
    let enveloped = event(RawEvent { attributes: outer, data: envelope(&raw("57")).into(), ..RawEvent::default() });

    assert_eq!(names(&structured), names(&binary));
    assert_eq!(enveloped.ce_attributes(), binary.ce_attributes());
    assert_eq!(names(&event(raw("01"))), [""; 0]);
}

#[test]
fn a_push_envelope_lends_its_attributes_and_its_transport_id() {
    let inner = raw("38");

    assert_eq!(payload(envelope(&inner)).id, event(inner).id);
    assert_eq!(payload(envelope(&raw("57"))).id, event(raw("57")).id);
    assert_eq!(payload(envelope(&raw("81"))).basis, Basis::Opaque);
}
