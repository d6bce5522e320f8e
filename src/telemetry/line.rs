//! One JSON object a line.

use std::fmt;

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, format::Writer},
    registry::LookupSpan,
};

/// Writes the fields of an event and of the spans around it flat into one object.
#[derive(Debug, Clone)]
pub(super) struct JsonLine {
    /// The project traces belong to, in the `gcp` format.
    gcp: Option<String>,
}

impl JsonLine {
    /// `ts level msg target version`, then the fields.
    pub(super) const fn plain() -> Self {
        Self { gcp: None }
    }

    /// `time severity message target version`, then the fields; trace fields under their Cloud Logging names.
    pub(super) fn gcp(project: &str) -> Self {
        Self { gcp: Some(project.to_owned()) }
    }

    fn head(&self, event: &Event<'_>) -> Map<String, Value> {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        let level = *event.metadata().level();
        let (time, severity, level) = match self.gcp {
            Some(_) => ("time", "severity", severity(level)),
            None => ("ts", "level", level.as_str()),
        };
        let mut line = Map::new();
        line.insert(time.to_owned(), now.into());
        line.insert(severity.to_owned(), level.into());
        line.insert(self.message().to_owned(), "".into());
        line.insert("target".to_owned(), event.metadata().target().into());
        line.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
        line
    }

    const fn message(&self) -> &'static str {
        if self.gcp.is_some() { "message" } else { "msg" }
    }

    /// The names Cloud Logging reads traces by.
    fn name_traces(&self, line: &mut Map<String, Value>) {
        let Some(project) = &self.gcp else { return };
        if let Some(id) = line.remove("trace_id") {
            let trace = format!("projects/{project}/traces/{}", id.as_str().unwrap_or_default());
            line.insert("logging.googleapis.com/trace".to_owned(), trace.into());
        }
        if let Some(id) = line.remove("span_id") {
            line.insert("logging.googleapis.com/spanId".to_owned(), id);
        }
        if let Some(sampled) = line.remove("trace_sampled") {
            line.insert("logging.googleapis.com/trace_sampled".to_owned(), sampled);
        }
    }
}

const fn severity(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        Level::DEBUG | Level::TRACE => "DEBUG",
    }
}

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = self.head(event);
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().map_or("", |fields| fields.as_str());
            let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
            for (name, value) in fields {
                put(&mut line, &name, value);
            }
        }
        event.record(&mut Fields { line: &mut line, message: self.message() });
        self.name_traces(&mut line);
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// `event.id` is `event_id`: a dot means nesting to too many log stores. The names of the line itself stay its own.
fn put(line: &mut Map<String, Value>, name: &str, value: Value) {
    let mut name = name.replace('.', "_");
    if matches!(name.as_str(), "ts" | "time" | "level" | "severity" | "msg" | "message" | "target" | "version") {
        name.push('_');
    }
    line.insert(name, value);
}

struct Fields<'a> {
    line: &'a mut Map<String, Value>,
    message: &'static str,
}

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        match field.name() {
            "message" => {
                self.line.insert(self.message.to_owned(), value);
            }
            // Bridged from the `log` crate: file, line, module path.
            name if name.starts_with("log.") => {}
            name => put(self.line, name, value),
        }
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        self.put(field, text.into());
    }
}
