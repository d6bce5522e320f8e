//! Log lines, as a log store would read them.

use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tracing::{info, info_span, subscriber::with_default, warn};

use super::*;

/// What was logged.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn json(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(format: Format, level: &str, log: impl FnOnce()) -> Lines {
    let lines = Lines::default();
    let writer = lines.clone();
    with_default(subscriber(format, level.parse().unwrap(), "my-project", move || writer.clone(), false), log);
    lines
}

#[test]
fn a_json_line_has_the_agreed_names_and_the_fields_of_its_spans() {
    let lines = logged(Format::Json, "info", || {
        let span = info_span!("process", event.id = "bh1-ix-00", event_type = "MESSAGE");
        let _entered = span.enter();
        info!(outcome = "done", duration_ms = 12_u64, "Settled event bh1-ix-00 as done");
    });

    let line = &lines.json()[0];
    let names: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["ts", "level", "msg", "target", "version", "event_id", "event_type", "outcome", "duration_ms"];
    assert_eq!(names, expected);
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["msg"], "Settled event bh1-ix-00 as done");
    assert_eq!((&line["event_id"], &line["duration_ms"]), (&Value::from("bh1-ix-00"), &Value::from(12)));
    assert!(line["ts"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_gcp_line_has_the_names_that_cloud_logging_reads() {
    let lines = logged(Format::Gcp, "info", || {
        warn!(trace_id = "4bf92f", span_id = "00f067", trace_sampled = true, severity = "mine", "Lost the claim");
    });

    let line = &lines.json()[0];
    assert_eq!(line["severity"], "WARNING");
    assert_eq!(line["message"], "Lost the claim");
    assert!(line["time"].is_string());
    assert_eq!(line["logging.googleapis.com/trace"], "projects/my-project/traces/4bf92f");
    assert_eq!(line["logging.googleapis.com/spanId"], "00f067");
    assert_eq!(line["logging.googleapis.com/trace_sampled"], true);
    assert_eq!(line["severity_"], "mine", "a field can not take the place of the line's own");
    assert!(line.get("trace_id").is_none() && line.get("level").is_none());
}

#[test]
fn a_line_stays_one_line_whatever_is_in_it() {
    for format in [Format::Json, Format::Gcp, Format::Text] {
        let lines = logged(format, "info", || info!(note = "a\nb\u{1b}[31m", "c\nd\u{1b}[31m"));

        let text = lines.text();
        assert!(!text.contains('\u{1b}'), "{text:?}");
        if format != Format::Text {
            assert_eq!(text.lines().count(), 1);
        }
    }
}

#[test]
fn levels_hold_per_target() {
    let lines = logged(Format::Json, "warn,mine=debug", || {
        tracing::debug!(target: "mine", "kept");
        info!(target: "other", "dropped");
        warn!(target: "other", "kept too");
    });

    assert_eq!(lines.json().iter().map(|line| line["msg"].clone()).collect::<Vec<_>>(), ["kept", "kept too"]);
}

#[test]
fn errors_are_told_with_their_causes() {
    let error = anyhow::anyhow!("connection reset").context("store did not answer");

    let lines = logged(Format::Json, "info", || {
        let error: &(dyn std::error::Error + 'static) = error.as_ref();
        warn!(error, "Could not renew");
    });

    assert_eq!(lines.json()[0]["error"], "store did not answer: connection reset");
}
