//! `bellhop run`

use super::{Exit, Settings, Signals};
use crate::{app, config::Profile, shutdown::Shutdown, telemetry};

/// What `run` can be told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Longest drain, from the first signal to the abort of running handlers (worker.drain_timeout)
    #[arg(long, value_name = "TIME")]
    drain_timeout: Option<String>,
    /// Do not wait for a store that can not be used: exit 5 when its schema does not fit, 6 when it is away
    #[arg(long)]
    no_wait: bool,
}

/// Runs until a signal.
pub(super) async fn run(args: Args, settings: Settings, signals: Signals) -> anyhow::Result<Exit> {
    let settings = settings.with("--drain-timeout", "worker.drain_timeout", args.drain_timeout);
    let loaded = settings.load(Profile::Run)?;
    let _logging = telemetry::init(&loaded.config.log, &loaded.config.pubsub.project, loaded.colours)?;
    for warning in &loaded.warnings {
        tracing::warn!(key = warning.key, "{warning}");
    }
    let shutdown = Shutdown::new();
    let options = app::Options { no_wait: args.no_wait, ..app::Options::default() };
    let work = async { Ok(app::run(loaded.config, options, shutdown.clone()).await?.into()) };
    signals.drain(&shutdown, work).await
}
