//! Logs, always to stderr: stdout belongs to what commands answer.
//!
//! Three shapes: for people, one JSON object a line, and the same with the field names of Google Cloud Logging.

mod line;

use std::{
    io::{self, IsTerminal},
    panic,
};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    filter::Targets,
    fmt::{self, MakeWriter, format::JsonFields},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use self::line::JsonLine;
use crate::config::log::{Config, Format};

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `log.level` is no filter.
    #[error("log.level can not be read")]
    Level(#[from] tracing_subscriber::filter::ParseError),
    /// This process logs already.
    #[error("logging is set up already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Lines that wait for whoever reads stderr; what comes on top of them is dropped. A log driver that stalls must not
/// stall leases, handlers and health.
const LINES: usize = 16_384;

/// Keeps logging going; dropped, it writes what still waits, for a second at most.
#[must_use = "lines are lost when it is dropped"]
pub struct Logging(#[expect(dead_code, reason = "held for its drop")] WorkerGuard);

/// From now on this process logs as configured. `project` names the traces in the `gcp` format; `colours` is what the
/// user wants of a terminal.
///
/// # Errors
/// A level that is none, or a second call.
pub fn init(config: &Config, project: &str, colours: bool) -> Result<Logging, TelemetryError> {
    let level: Targets = config.level.parse()?;
    let (writer, guard) = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).finish(io::stderr());
    subscriber(config.format, level, project, writer, colours && io::stderr().is_terminal()).try_init()?;
    panic::set_hook(Box::new(report));
    Ok(Logging(guard))
}

fn subscriber<W>(
    format: Format,
    level: Targets,
    project: &str,
    writer: W,
    colours: bool,
) -> impl SubscriberInitExt + tracing::Subscriber
where
    W: for<'a> MakeWriter<'a> + Clone + Send + Sync + 'static,
{
    let (text, json) = match format {
        Format::Text => (Some(fmt::layer().with_writer(writer).with_ansi(colours)), None),
        Format::Json | Format::Gcp => {
            let line = if format == Format::Gcp { JsonLine::gcp(project) } else { JsonLine::plain() };
            let layer = fmt::layer().with_writer(writer).fmt_fields(JsonFields::new()).event_format(line);
            (None, Some(layer))
        }
    };
    tracing_subscriber::registry().with(level).with(text).with(json)
}

/// A panic's formatted message may quote what was being handled; only literals and the place are told.
fn report(panicked: &panic::PanicHookInfo<'_>) {
    let what = panicked.payload().downcast_ref::<&str>().copied().unwrap_or("(message withheld)");
    let place = panicked.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "Panicked: {what}");
}

#[cfg(test)]
mod tests;
