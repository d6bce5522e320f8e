//! Makes old samples young, and one sample many events.

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::Value;

use super::{super::decode::decode, RawEvent};
use std::sync::Arc;

/// Keys whose values are points in time.
const TIMES: [&str; 6] = ["eventTime", "createTime", "lastUpdateTime", "deleteTime", "lastActiveTime", "time"];

/// Moves a message to `now`: publish time and event time become `now`, every other time keeps its distance to them
/// (1970-01-01, which Google sends for "unknown", stays). With `unique` the message becomes an event of its own: names
/// of messages, CloudEvent id and transport id get the number as their ending, and times move on by that many
/// microseconds, so that samples without a message differ too.
///
/// JSON inside a JSON string is restamped there; a payload that is not JSON stays as it is.
#[must_use]
pub fn restamp(raw: &RawEvent, now: DateTime<Utc>, unique: Option<u64>) -> RawEvent {
    let now = now + TimeDelta::microseconds(unique.and_then(|number| i64::try_from(number).ok()).unwrap_or_default());
    let event = decode(&Arc::new(raw.clone()));
    let then = event.time.or(raw.publish_time).unwrap_or(now);
    let stamp = Stamp { delta: now - then, suffix: unique.map(|number| format!("-{number}")) };

    let mut fresh = raw.clone();
    fresh.publish_time = Some(now);
    if let Some(suffix) = &stamp.suffix {
        fresh.message_id.push_str(suffix);
    }
    for (name, value) in &mut fresh.attributes {
        match name.to_ascii_lowercase().as_str() {
            "ce-time" => stamp.move_time(value),
            "ce-id" => stamp.rename(value),
            _ => {}
        }
    }
    if let Some(data) = stamp.json(&raw.data) {
        fresh.data = data;
    }
    fresh
}

struct Stamp {
    delta: TimeDelta,
    suffix: Option<String>,
}

impl Stamp {
    fn json(&self, data: &[u8]) -> Option<Bytes> {
        let mark = b"\xef\xbb\xbf";
        let (start, text) = data.strip_prefix(mark).map_or((&[][..], data), |text| (mark, text));
        let mut value: Value = serde_json::from_slice(text).ok()?;
        match &mut value {
            Value::String(inner) => *inner = String::from_utf8(self.json(inner.as_bytes())?.into()).ok()?,
            Value::Object(event) => {
                if event.contains_key("specversion")
                    && let Some(Value::String(id)) = event.get_mut("id")
                {
                    self.rename(id);
                }
                self.value(&mut value);
            }
            _ => return None,
        }
        Some(Bytes::from([start, &serde_json::to_vec(&value).ok()?].concat()))
    }

    /// Recursion ends at the parser's 127 levels.
    fn value(&self, value: &mut Value) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.value(element)),
            Value::Object(members) => {
                for (key, value) in members {
                    match value {
                        Value::String(text) if TIMES.contains(&key.as_str()) => self.move_time(text),
                        Value::String(text) if key == "name" && text.contains("/messages/") => self.rename(text),
                        value => self.value(value),
                    }
                }
            }
            _ => {}
        }
    }

    fn move_time(&self, text: &mut String) {
        if let Ok(time) = DateTime::parse_from_rfc3339(text)
            && time.timestamp() != 0
            && let Some(time) = time.to_utc().checked_add_signed(self.delta)
        {
            *text = time.to_rfc3339_opts(SecondsFormat::Micros, true);
        }
    }

    fn rename(&self, name: &mut String) {
        if let Some(suffix) = &self.suffix {
            name.push_str(suffix);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::event::{Basis, sample::built_in};

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 250_000_000).unwrap()
    }

    #[test]
    fn a_restamped_event_happened_and_was_published_now() {
        for sample in built_in() {
            let old = decode(&Arc::new(sample.raw()));

            let fresh = decode(&Arc::new(restamp(&sample.raw(), now(), None)));

            assert_eq!(fresh.raw.publish_time, Some(now()), "{}", sample.name);
            assert_eq!(fresh.time, old.time.map(|_| now()), "{}", sample.name);
            assert_eq!(fresh.chat, old.chat, "{}", sample.name);
            assert_eq!(fresh.basis, old.basis, "{}", sample.name);
        }
    }

    #[test]
    fn every_number_makes_another_event_and_the_same_number_the_same() {
        for sample in built_in() {
            let ids: HashSet<_> =
                (0..20).map(|number| decode(&Arc::new(restamp(&sample.raw(), now(), Some(number)))).id).collect();
            assert_eq!(ids.len(), 20, "{}", sample.name);

            let again = decode(&Arc::new(restamp(&sample.raw(), now(), Some(7))));
            assert!(ids.contains(&again.id), "{}", sample.name);
        }
    }

    #[test]
    fn distances_between_times_stay_and_the_epoch_stays() {
        let click = restamp(&crate::event::sample::find("chat.card_clicked").unwrap().raw(), now(), None);
        let click: Value = serde_json::from_slice(&click.data).unwrap();
        assert_eq!(click["eventTime"], "2027-01-15T08:00:00.250000Z");
        assert_eq!(click["message"]["createTime"], "2027-01-15T07:54:50.455461Z");

        let joined = restamp(&crate::event::sample::find("workspace.membership.created").unwrap().raw(), now(), None);
        let joined: Value = serde_json::from_slice(&joined.data).unwrap();
        assert_eq!(joined["membership"]["createTime"], "1970-01-01T00:00:00Z");
    }

    #[test]
    fn events_inside_strings_are_restamped_and_noise_is_not() {
        let inner = restamp(&crate::event::sample::find("chat.message").unwrap().raw(), now(), Some(3));
        let text = String::from_utf8(inner.data.to_vec()).unwrap();
        let wrapped = RawEvent { data: serde_json::to_vec(&text).unwrap().into(), ..inner };
        let later = now() + TimeDelta::hours(1);

        let fresh = decode(&Arc::new(restamp(&wrapped, later, None)));

        assert_eq!((fresh.basis, fresh.time), (Basis::IxTime, Some(later)));
        let noise = RawEvent { data: "hello".into(), ..RawEvent::default() };
        assert_eq!(restamp(&noise, later, Some(1)).data, noise.data);
    }
}
