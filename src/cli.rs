//! The command line: one file per command, one enum of exit codes.
//!
//! stdout carries data, stderr talk. A closed pipe is no error.

mod completions;
mod config;
mod demo;
mod failure;
mod healthcheck;
mod inspect;
mod migrate;
mod output;
mod run;
mod settings;
mod signals;
mod trigger;
#[cfg(test)]
mod written;

use std::{ffi::OsString, process::ExitCode};

use clap::{Parser, Subcommand, error::ErrorKind};

pub use self::{failure::Failure, output::Output, settings::Settings, signals::Signals};
use crate::worker::Drained;

/// How a command ended, for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Ok = 0,
    /// It, or a check, failed.
    Failed = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// What was asked for does not exist.
    NotFound = 3,
    /// Some of it was done.
    Partly = 4,
    /// Not done: not confirmed, or a precondition does not hold.
    Refused = 5,
    /// Something it depends on can not be reached.
    Unreachable = 6,
    /// Stopped by a signal before its end.
    Interrupted = 130,
}

impl From<Drained> for Exit {
    fn from(drained: Drained) -> Self {
        match drained {
            Drained::Clean => Self::Ok,
            Drained::Abandoned => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Takes Google Chat events from Pub/Sub and has each one handled once.
#[derive(Debug, Parser)]
#[command(name = "bellhop", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Command,
}

/// A new command: its file with `Args` and `run`, a variant here, a line in `Command::run` and `Command::output`.
#[derive(Debug, Subcommand)]
enum Command {
    /// Take events and have them handled, until SIGTERM or SIGINT.
    Run(run::Args),
    /// Watch the whole way on one machine: an embedded Pub/Sub server, sample events, copies, failures.
    Demo(demo::Args),
    /// Bring the PostgreSQL schema up to date, or say whether it is.
    Migrate(migrate::Args),
    /// Show the effective configuration, or check it.
    Config(config::Args),
    /// Ask the bellhop that runs here whether it is well; for container probes.
    Healthcheck(healthcheck::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
    /// Show what bellhop makes of messages: ids, keys, fingerprints, and why two merge or not.
    Inspect(inspect::Args),
    /// Publish sample events, built in or from files.
    Trigger(trigger::Args),
}

impl Command {
    async fn run(self, settings: Settings, signals: Signals) -> anyhow::Result<Exit> {
        match self {
            // `run` drains at the first signal; every other command just ends.
            Self::Run(args) => run::run(args, settings, signals).await,
            Self::Demo(args) => demo::run(args, settings, signals).await,
            Self::Migrate(args) => signals.interrupt(migrate::run(args, settings)).await,
            Self::Config(args) => config::run(args, settings),
            Self::Healthcheck(args) => signals.interrupt(healthcheck::run(args, settings)).await,
            Self::Completions(args) => completions::run(args),
            Self::Inspect(args) => inspect::run(args, settings, signals).await,
            Self::Trigger(args) => signals.interrupt(trigger::run(args, settings)).await,
        }
    }

    /// What form the user wants answers, and so errors, in.
    const fn output(&self) -> Output {
        match self {
            Self::Demo(args) => args.output(),
            Self::Migrate(args) => args.output(),
            Self::Config(args) => args.output(),
            Self::Healthcheck(args) => args.output,
            Self::Inspect(args) => args.output(),
            Self::Trigger(args) => args.output(),
            Self::Run(_) | Self::Completions(_) => Output::Table,
        }
    }
}

/// Runs the command in `arguments` (the program's name first) and tells what went wrong on stderr.
pub async fn run(arguments: impl IntoIterator<Item = OsString>, signals: Signals) -> Exit {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &arguments),
    };
    let output = cli.command.output();
    match cli.command.run(cli.settings, signals).await {
        Ok(exit) => exit,
        Err(error) if output::is_closed_pipe(&error) => Exit::Ok,
        Err(error) => failure::report(&error, output),
    }
}

/// Help and version are answers; the rest is usage. Scripts that asked for JSON get even that as JSON.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let answer = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if !answer && output::asks_for_json(arguments) {
        let text = error.to_string();
        let (message, hint) = text.split_once("\n\n").unwrap_or((&text, ""));
        let failure = Failure::usage(message.trim_start_matches("error: ")).hint(hint.trim());
        return failure::report(&failure.into(), Output::Json);
    }
    // A closed pipe while printing help is no error.
    drop(error.print());
    if answer { Exit::Ok } else { Exit::Usage }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
