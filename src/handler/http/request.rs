//! What a handler is told besides the event: headers and signature.

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, SecondsFormat, Utc};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;

use crate::{
    event::Event,
    handler::{HandlerContext, printable::printable, traceparent},
};

/// CloudEvent attributes passed on, at most.
const MAX_CE_HEADERS: usize = 32;

/// The headers of one attempt. A value that no header can carry is left out, never an error.
pub(super) fn headers(event: &Event, cx: &HandlerContext) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(printable(value))) {
            headers.insert(name, value);
        }
    };
    for (name, value) in event.ce_attributes().iter().filter(|(name, _)| is_ce_name(name)).take(MAX_CE_HEADERS) {
        put(&format!("ce-{name}"), value);
    }
    put("idempotency-key", event.id.as_str());
    put("bellhop-event-id", event.id.as_str());
    put("bellhop-event-type", &event.event_type);
    put("bellhop-epoch", &cx.epoch.to_string());
    put("bellhop-attempt", &cx.attempt.to_string());
    put("bellhop-deadline", &cx.deadline.to_rfc3339_opts(SecondsFormat::Millis, true));
    put("bellhop-timeout-ms", &cx.timeout.as_millis().to_string());
    put("bellhop-source", &cx.source);
    put("traceparent", &traceparent::of(event));
    if let Some(space) = &event.chat.space {
        put("bellhop-space", space);
    }
    if cx.replay > 0 {
        put("bellhop-replay", &cx.replay.to_string());
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
}

/// The three headers of Standard Webhooks: id `<event id>:<epoch>`, time, HMAC-SHA256 over id, time and body.
pub(super) fn signature(key: &[u8], event: &Event, epoch: u32, now: DateTime<Utc>, body: &[u8]) -> HeaderMap {
    let id = format!("{}:{epoch}", event.id);
    let timestamp = now.timestamp().to_string();
    let mut headers = HeaderMap::new();
    // HMAC takes a key of any length.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) {
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        let values = [("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", signature)];
        for (name, value) in values {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
    headers
}

fn is_ce_name(name: &str) -> bool {
    (1..=20).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        event::{ChatEvent, RawEvent},
        handler::fixture::{cx, event},
    };

    fn get<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
        headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn every_header_of_the_contract_is_there() {
        let headers = headers(&event(), &HandlerContext { replay: 1, ..cx() });

        for (name, value) in [
            ("content-type", "application/json"),
            ("idempotency-key", "bh1-ix-0123456789abcdef0123456789abcdef"),
            ("bellhop-event-id", "bh1-ix-0123456789abcdef0123456789abcdef"),
            ("bellhop-event-type", "MESSAGE"),
            ("bellhop-epoch", "3"),
            ("bellhop-attempt", "2"),
            ("bellhop-deadline", "2026-05-28T20:26:40.005Z"),
            ("bellhop-timeout-ms", "60000"),
            ("bellhop-space", "spaces/A"),
            ("bellhop-source", "pubsub"),
            ("bellhop-replay", "1"),
        ] {
            assert_eq!(get(&headers, name), Some(value), "{name}");
        }
        assert_eq!(get(&headers, "traceparent").map(str::len), Some(55));
    }

    #[test]
    fn what_is_not_known_has_no_header() {
        let mut event = event();
        event.chat = ChatEvent::default();
        let headers = headers(&event, &cx());

        assert_eq!(get(&headers, "bellhop-space"), None);
        assert_eq!(get(&headers, "bellhop-replay"), None);
    }

    #[test]
    fn ce_attributes_become_headers_unless_their_name_is_out_of_bounds() {
        let mut event = event();
        let names = ["id", "a1", "UPPER", "with-dash", "", &"x".repeat(20), &"x".repeat(21), "é", "a\r\nb"];
        let attributes = names.into_iter().map(|name| (name.to_owned(), "v\r\nx: é".to_owned()));
        event.inner_attributes = Some(attributes.collect());

        let headers = headers(&event, &cx());

        let names: Vec<_> = headers.keys().map(HeaderName::as_str).filter(|name| name.starts_with("ce-")).collect();
        assert_eq!(names.len(), 3);
        for name in ["ce-id", "ce-a1", "ce-xxxxxxxxxxxxxxxxxxxx"] {
            assert_eq!(get(&headers, name), Some("v%0D%0Ax: %C3%A9"), "{name}");
        }
    }

    #[test]
    fn at_most_32_ce_attributes_are_passed_on() {
        let mut event = event();
        event.inner_attributes = Some((0..100).map(|n| (format!("n{n}"), "v".to_owned())).collect());

        let headers = headers(&event, &cx());

        assert_eq!(headers.keys().filter(|name| name.as_str().starts_with("ce-")).count(), MAX_CE_HEADERS);
    }

    #[test]
    fn hostile_values_never_fail_an_event() {
        let mut event = event();
        event.event_type = "\0\r\nX-Evil: 1\u{1f600}".repeat(1_000);
        event.chat.space = Some(String::new());

        let headers = headers(&event, &cx());

        let value = get(&headers, "bellhop-event-type").unwrap();
        assert!(value.starts_with("%00%0D%0AX-Evil: 1%F0%9F%98%80") && value.len() <= 256);
        assert_eq!(get(&headers, "bellhop-space"), Some(""));
    }

    #[test]
    fn the_events_own_trace_context_is_passed_on_googles_name_first() {
        let trace = |n: u8| format!("00-{n:032x}-{n:016x}-00");
        let with = |attributes: &[(&str, String)]| {
            let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            let mut event = event();
            event.raw = Arc::new(RawEvent { attributes, ..RawEvent::default() });
            get(&headers(&event, &cx()), "traceparent").unwrap().to_owned()
        };

        assert_eq!(with(&[("traceparent", trace(1)), ("googclient_traceparent", trace(2))]), trace(2));
        assert_eq!(with(&[("TraceParent", trace(1)), ("googclient_traceparent", "junk".to_owned())]), trace(1));
        assert_ne!(with(&[("traceparent", trace(0))]), trace(0));
    }

    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        let now = DateTime::from_timestamp(1_780_000_000, 0).unwrap();

        let headers = signature(b"hello", &event(), 3, now, b"{}");

        // printf '%s' 'bh1-ix-0123456789abcdef0123456789abcdef:3.1780000000.{}' | openssl dgst -sha256 -hmac hello -binary | base64
        assert_eq!(get(&headers, "webhook-id"), Some("bh1-ix-0123456789abcdef0123456789abcdef:3"));
        assert_eq!(get(&headers, "webhook-timestamp"), Some("1780000000"));
        assert_eq!(get(&headers, "webhook-signature"), Some("v1,U0fD+J9evDHcacMkBVQcPnC7dx5pq603nOvLsyVnSjk="));
    }
}
