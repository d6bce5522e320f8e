//! A handler that is a program: one process group per attempt, the event on stdin, the verdict as exit code.
//!
//! Nothing of an attempt outlives it: what is left of the group is killed when the program has ended, when the
//! deadline comes, and when the call is dropped.

use std::{ffi::OsString, io, os::unix::process::ExitStatusExt, pin::pin, process::ExitStatus, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use chrono::SecondsFormat;
use futures::future::join3;
use tokio::{
    io::{AsyncRead, AsyncWriteExt},
    process::{ChildStdin, Command},
    time::timeout_at,
};

use self::{
    capture::Capture,
    group::{Ended, Group, Pipes, Times},
};
use crate::{
    event::Event,
    handler::{
        Handled, Handler, HandlerContext, HandlerError,
        body::{self, MAX_REPLY},
        printable::printable,
        traceparent,
    },
    outcome::{Detail, Note},
};

mod capture;
mod config;
mod group;

pub use self::config::Config;

/// What a program always gets of bellhop's own environment.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];

/// How long the pipes are read once the program has ended.
const LINGER: Duration = Duration::from_secs(1);

/// Why a handler could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("handler.{key} {what}")]
pub struct BuildError {
    /// The key under `[handler]`.
    pub key: &'static str,
    /// What is wrong with it.
    pub what: String,
}

/// Runs a program for each attempt.
#[derive(Debug)]
pub struct ExecHandler {
    command: Vec<String>,
    inherited: Vec<(String, OsString)>,
    pass_credentials: bool,
    read_replies: bool,
}

impl ExecHandler {
    /// A handler for `config`; nothing is started yet. `pass_credentials` leaves credentials in what the program gets.
    ///
    /// # Errors
    /// The first problem of `config`.
    pub fn new(config: &Config, pass_credentials: bool) -> Result<Self, BuildError> {
        if let Some((key, what)) = config.validate().into_iter().next() {
            return Err(BuildError { key, what });
        }
        let names = INHERITED.into_iter().map(str::to_owned).chain(config.env.iter().cloned());
        let inherited = names.filter_map(|name| std::env::var_os(&name).map(|value| (name, value))).collect();
        Ok(Self { command: config.command.clone(), inherited, pass_credentials, read_replies: false })
    }

    /// Takes what the program writes to stdout as a reply. Without this stdout is read and forgotten.
    #[must_use]
    pub const fn reading_replies(mut self) -> Self {
        self.read_replies = true;
        self
    }

    fn command(&self, event: &Event, cx: &HandlerContext) -> io::Result<Command> {
        let (program, arguments) = self.command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.envs(self.inherited.iter().map(|(name, value)| (name, value)));
        command.envs([
            ("BELLHOP_EVENT_ID", printable(event.id.as_str())),
            ("BELLHOP_EVENT_TYPE", printable(&event.event_type)),
            ("BELLHOP_EPOCH", cx.epoch.to_string()),
            ("BELLHOP_ATTEMPT", cx.attempt.to_string()),
            ("BELLHOP_DEADLINE", cx.deadline.to_rfc3339_opts(SecondsFormat::Millis, true)),
            ("TRACEPARENT", traceparent::of(event)),
        ]);
        command.envs(event.chat.space.as_deref().map(|space| ("BELLHOP_SPACE", printable(space))));
        Ok(command)
    }
}

#[async_trait]
impl Handler for ExecHandler {
    async fn handle(&self, event: &Event, cx: &HandlerContext) -> Result<Handled, HandlerError> {
        let times = Times::of(cx.timeout);
        let started = self.command(event, cx).and_then(|mut command| Group::start(&mut command));
        let (mut group, pipes) = started.map_err(|error| not_started(&error))?;
        let body = body::of(event, self.pass_credentials);
        // One byte more than a reply may have shows that it has too many.
        let mut stdout = Capture::first(if self.read_replies { MAX_REPLY + 1 } else { 0 });
        let mut stderr = Capture::last(Detail::MAX);
        let ended = run(&mut group, pipes, body, (&mut stdout, &mut stderr), times).await;
        drop(group);
        let detail = Detail::new(&stderr.into_bytes());
        let result = verdict(&ended, cx.strict, detail.clone(), || body::handled(stdout.into_bytes().into(), true));
        log(event, &detail, result.is_err());
        result
    }
}

/// Feeds and reads the program until it has ended, and its pipes for a moment more: what it left in the background may
/// hold them open for ever.
async fn run(
    group: &mut Group,
    pipes: Pipes,
    body: Bytes,
    (stdout, stderr): (&mut Capture, &mut Capture),
    times: Times,
) -> Ended {
    let mut streams = pin!(join3(feed(pipes.stdin, body), read(stdout, pipes.stdout), read(stderr, pipes.stderr)));
    let mut ended = pin!(group.ended(times));
    let ended = tokio::select! {
        ended = &mut ended => ended,
        _ = &mut streams => return ended.await,
    };
    let _ = timeout_at(times.within(LINGER), streams).await;
    ended
}

async fn read(capture: &mut Capture, pipe: Option<impl AsyncRead + Unpin>) {
    if let Some(pipe) = pipe {
        capture.read(pipe).await;
    }
}

async fn feed(stdin: Option<ChildStdin>, body: Bytes) {
    if let Some(mut stdin) = stdin {
        // A program need not read what it does not need: a broken pipe says nothing about the event.
        let _ = stdin.write_all(&body).await;
    }
}

/// What an ending means. Only a program that says so did nothing.
fn verdict(
    ended: &Ended,
    strict: bool,
    detail: Detail,
    reply: impl FnOnce() -> Handled,
) -> Result<Handled, HandlerError> {
    let status = match ended {
        Ended::Exited(status) => *status,
        Ended::Asked(status) if status.code().is_some() => *status,
        Ended::Asked(_) => {
            return Err(HandlerError::TimedOut { what: "ended by the SIGTERM before its deadline".to_owned(), detail });
        }
        Ended::Killed => return Err(HandlerError::TimedOut { what: "killed at the deadline".to_owned(), detail }),
        Ended::Unwatched(error) => {
            let what = format!("end not seen: {}", error.kind());
            return Err(HandlerError::Unknown { what, detail, over: false });
        }
    };
    let what = ending(status);
    match status.code() {
        Some(0) => Ok(reply()),
        Some(75) => Err(HandlerError::NotRun { what, after: None, detail }),
        Some(65) => Err(HandlerError::Permanent { what, detail }),
        // A shell says so of a program it could not run, perhaps after it has run others.
        Some(126 | 127) if !strict => Err(HandlerError::TargetTrouble { what, detail }),
        Some(_) => Err(HandlerError::Failed { what, after: None, detail }),
        None => Err(HandlerError::Unknown { what, detail, over: true }),
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended without exit code".to_owned(),
    }
}

fn not_started(error: &io::Error) -> HandlerError {
    let what = Note::new(&format!("program not started: {error}")).as_str().to_owned();
    HandlerError::TargetTrouble { what, detail: Detail::default() }
}

/// What the program wrote to stderr. Whoever writes it decides how private it is.
fn log(event: &Event, stderr: &Detail, failed: bool) {
    let text = stderr.as_str();
    if failed && !text.is_empty() {
        tracing::warn!(event_id = %event.id, stderr = ?text, "Handler failed and wrote to stderr");
    } else if !text.is_empty() {
        tracing::debug!(event_id = %event.id, stderr = ?text, "Handler wrote to stderr");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt;

    use super::*;
    use crate::handler::fixture;

    fn logged(failed: bool) -> String {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&lines);
        let subscriber = fmt().with_ansi(false).with_writer(move || Lines(Arc::clone(&writer))).finish();
        tracing::subscriber::with_default(subscriber, || {
            log(&fixture::event(), &Detail::new(b"first\nERROR forged\x1b[2J\n"), failed);
        });
        String::from_utf8(lines.lock().unwrap().clone()).unwrap()
    }

    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_failed_program_wrote_to_stderr_is_one_line_of_the_log() {
        let line = logged(true);

        assert!(line.contains(" WARN ") && line.contains(r#"stderr="first\nERROR forged[2J\n""#), "{line}");
        assert_eq!(line.lines().count(), 1);
    }

    #[test]
    fn what_a_program_that_succeeded_wrote_to_stderr_is_for_debugging() {
        assert_eq!(logged(false), "");
    }
}
