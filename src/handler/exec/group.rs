//! The process group of one attempt: nothing of it outlives the attempt.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout_at},
};

/// How long before the deadline a program is asked to end.
const WARNING: Duration = Duration::from_secs(2);

/// The caller cuts at the deadline; that the group is gone must have been told before.
const MARGIN: Duration = Duration::from_millis(100);

/// How the program ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// By itself, or by a signal that somebody else sent.
    Exited(ExitStatus),
    /// After the SIGTERM before its deadline.
    Asked(ExitStatus),
    /// Killed at the deadline.
    Killed,
    /// The system does not say.
    Unwatched(io::Error),
}

/// The three pipes of a program.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

/// A running program and everything it started. Dropping it kills them all.
#[derive(Debug)]
pub(super) struct Group {
    leader: Child,
    id: Option<Pid>,
}

impl Group {
    /// Starts the program as the leader of a group of its own.
    pub(super) fn start(command: &mut Command) -> io::Result<(Self, Pipes)> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut leader = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let pipes = Pipes { stdin: leader.stdin.take(), stdout: leader.stdout.take(), stderr: leader.stderr.take() };
        Ok((Self { leader, id }, pipes))
    }

    /// Waits for the leader until just before `deadline`: asks the group to end 2 s before, kills it then.
    pub(super) async fn ended(&mut self, times: Times) -> Ended {
        if let Ok(ended) = timeout_at(times.warn, self.leader.wait()).await {
            return self.exited(ended);
        }
        self.signal(Signal::TERM);
        if let Ok(ended) = timeout_at(times.kill, self.leader.wait()).await {
            return match self.exited(ended) {
                Ended::Exited(status) => Ended::Asked(status),
                other => other,
            };
        }
        self.signal(Signal::KILL);
        match self.leader.wait().await {
            Ok(status) if status.code().is_some() => Ended::Exited(status),
            Ok(_) => Ended::Killed,
            Err(error) => Ended::Unwatched(error),
        }
    }

    fn exited(&mut self, ended: io::Result<ExitStatus>) -> Ended {
        // An empty group's number is free to be somebody else's; one with a member left is not.
        if self.id.is_some_and(|id| test_kill_process_group(id).is_err()) {
            self.id = None;
        }
        ended.map_or_else(Ended::Unwatched, Ended::Exited)
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // Nobody left to get it is what was wanted.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// When an attempt is warned, killed, and must have been answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    warn: Instant,
    kill: Instant,
    answer: Instant,
}

impl Times {
    /// For an attempt that begins now. The warning comes after a quarter of the time at the
    /// earliest, the margin is at most a tenth of it.
    pub(super) fn of(timeout: Duration) -> Self {
        let margin = MARGIN.min(timeout / 10);
        let end = Instant::now() + timeout;
        Self { warn: end - WARNING.min(timeout * 3 / 4), kill: end - margin, answer: end - margin / 2 }
    }

    /// `span` from now, or when the attempt must have been answered.
    pub(super) fn within(self, span: Duration) -> Instant {
        self.answer.min(Instant::now() + span)
    }
}
