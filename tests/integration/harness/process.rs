//! A child process that does not outlive its test, with its output in a file.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::wait::eventually;

/// Killed when dropped; its last lines are printed when the test failed.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts the command; standard output and error are appended to `log`.
    pub(crate) fn spawn(name: &str, command: &mut Command, log: &Path) -> Self {
        let out = fs::OpenOptions::new().create(true).append(true).open(log).expect("the log file can be opened");
        let err = out.try_clone().expect("a handle can be cloned");
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { name: name.to_owned(), child, log: log.to_owned(), status: None }
    }

    /// Sends a signal; a process that is gone already is left in peace.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.exited().is_none() {
            let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
            kill_process(pid, signal).unwrap_or_else(|error| panic!("{} cannot be signalled: {error}", self.name));
        }
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _gone = self.child.kill();
        self.status = self.child.wait().ok();
    }

    /// How it ended, if it did.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().expect("a child can be waited for");
        }
        self.status
    }

    /// Waits for the end and gives the exit code; a death by signal gives 128 + the signal, as a shell does.
    pub(crate) async fn exit_code(&mut self, within: Duration) -> i32 {
        let what = format!("{} to exit", self.name);
        let status = eventually(&what, within, async || self.exited()).await;
        status.code().unwrap_or_else(|| 128 + status.signal().expect("ended by code or signal"))
    }

    /// Process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// All that it wrote so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exited().is_none() {
            self.kill();
        }
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<_> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(60)..].join("\n");
            // The test runner shows this beside the failure.
            write_to_stderr(&format!("--- last lines of {} ---\n{tail}\n--- end of {} ---\n", self.name, self.name));
        }
    }
}

#[expect(clippy::print_stderr, reason = "only print macros are captured by the test runner")]
fn write_to_stderr(text: &str) {
    eprint!("{text}");
}
