//! `bellhop config`: what is in effect, where it came from, and whether it is right.

mod show;
mod validate;

use super::{Exit, Output, Settings};

/// What to do with the configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print every effective value with where it came from; secrets as ***
    Show(show::Args),
    /// Say everything that is wrong; exit 2 if anything is
    Validate(validate::Args),
}

impl Args {
    /// The form errors take.
    pub(super) const fn output(&self) -> Output {
        match &self.action {
            Action::Show(args) => args.errors_as(),
            Action::Validate(args) => args.output,
        }
    }
}

/// Exit 0: right. 2: wrong.
pub(super) fn run(args: Args, settings: Settings) -> anyhow::Result<Exit> {
    match args.action {
        Action::Show(args) => show::run(args, settings),
        Action::Validate(args) => validate::run(&args, settings),
    }
}
