//! `bellhop completions`

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Exit, output};

/// Which shell.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// bash, zsh, fish, …
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(args: Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "bellhop", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
