//! `bellhop demo`: the whole way on one machine, with copies and failures mixed in, to be watched.
//!
//! An embedded Pub/Sub server (or the emulator that `PUBSUB_EMULATOR_HOST` names), a SQLite store in a temporary
//! folder, the echo handler, and the same application as `bellhop run`.

mod plan;
mod render;
mod stage;
mod tally;

use std::{
    io::{IsTerminal, Write},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::mpsc,
    time::{self, Instant, MissedTickBehavior},
};

use self::{
    plan::Plan,
    render::Renderer,
    stage::{Folder, Stage},
    tally::Tally,
};
use super::{Exit, Output, Settings, Signals, output};
use crate::{
    app,
    clock::{Clock, SystemClock},
    config::{Loaded, Origin, Profile, handler::Kind},
    handler::echo::EchoHandler,
    shutdown::Shutdown,
    telemetry,
    worker::Drained,
};

/// Nothing at all happened for so long: what is not settled by then is lost. Longer than a backoff, and than the lease
/// of a reader that is gone but that an emulator still gives messages to.
const PATIENCE: Duration = Duration::from_secs(90);
/// Lines waiting for a slow terminal; what comes on top is counted but not shown.
const LINES: usize = 10_000;
/// How long the echo handler takes at most, so that copies meet an event that is still running.
const HANDLING: Duration = Duration::from_millis(120);

/// What `demo` can be told.
#[derive(Debug, clap::Args)]
#[command(after_help = "What is set for a real run does not reach the demo: of the environment it takes \
    PUBSUB_EMULATOR_HOST, BELLHOP__LOG__LEVEL, BELLHOP__LOG__FORMAT and NO_COLOR, and nothing else; not BELLHOP_CONFIG, not \
    DATABASE_URL. Other settings come by flags: --set SECTION.KEY=VALUE, or --config FILE.")]
pub(super) struct Args {
    /// Different events to publish
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    events: u32,
    /// Share of events that are published twice; a quarter as many are delivered twice on top
    #[arg(long, value_name = "RATIO", default_value_t = 0.2, value_parser = ratio)]
    duplicates: f64,
    /// Share of events whose handler fails: mostly once or twice, sometimes for ever
    #[arg(long, value_name = "RATIO", default_value_t = 0.1, value_parser = ratio)]
    fail: f64,
    /// Messages published per second
    #[arg(long, value_name = "R", default_value_t = 25.0, value_parser = rate)]
    rate: f64,
    /// End after the last event, instead of waiting for more from `bellhop trigger`
    #[arg(long)]
    once: bool,
    /// Form of the summary; json shows nothing else
    #[arg(long, short, value_name = "FORM", default_value = "table")]
    output: Output,
}

impl Args {
    pub(super) const fn output(&self) -> Output {
        self.output
    }
}

/// Runs the demonstration.
pub(super) async fn run(args: Args, settings: Settings, signals: Signals) -> anyhow::Result<Exit> {
    let mut loaded = settings.load(Profile::Demo)?;
    let folder = Folder::new()?;
    quicken(&mut loaded, &folder);
    let _logging = telemetry::init(&loaded.config.log, &loaded.config.pubsub.project, loaded.colours)?;
    let own = !is_given(&loaded, "pubsub.subscription");
    let stage = Stage::open(&mut loaded.config.pubsub, own).await?;

    let colours = loaded.colours && std::io::stdout().is_terminal();
    let renderer = Renderer::new(args.output, colours);
    renderer.opening(&stage)?;
    let (lines, shown) = mpsc::channel(LINES);
    let tally = Arc::new(Tally::new(lines));
    let echo = EchoHandler::new().failing(args.fail).taking(HANDLING);
    let options = app::Options {
        handler: (loaded.config.handler.kind == Kind::Echo).then(|| Arc::new(echo) as _),
        observer: Some(Arc::clone(&tally) as _),
        ..app::Options::default()
    };
    let plan = Plan::new(args.events, args.duplicates, &loaded.config.rules(), SystemClock.now());

    let shutdown = Shutdown::new();
    let running = app::run(loaded.config, options, shutdown.clone());
    let work = async {
        let (ended, performed, live) = tokio::join!(
            async {
                let ended = running.await;
                shutdown.stop();
                tally.close();
                ended
            },
            async {
                let performed = perform(&args, plan, &stage, &tally, &renderer, &shutdown).await;
                if args.once || performed.is_err() {
                    shutdown.stop();
                }
                performed
            },
            renderer.live(shown),
        );
        live?;
        let complete = performed?;
        Ok(match ended? {
            Drained::Clean if args.once && !complete => Exit::Interrupted,
            drained => drained.into(),
        })
    };
    let exit = signals.drain(&shutdown, work).await?;

    let summary = tally.summary();
    renderer.closing(&summary, &stage)?;
    stage.close().await;
    Ok(if exit == Exit::Ok && args.once && !summary.is_sound() { Exit::Failed } else { exit })
}

/// Publishes what is planned; with `--once` waits until all of it is settled. False when a stop was ordered before.
async fn perform(
    args: &Args,
    plan: Plan,
    stage: &Stage,
    tally: &Tally,
    renderer: &Renderer,
    shutdown: &Shutdown,
) -> anyhow::Result<bool> {
    let mut ticks = time::interval(Duration::from_secs_f64(1.0 / args.rate));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut publishing = tokio::task::JoinSet::new();
    for step in plan {
        tokio::select! {
            biased;
            () = shutdown.stopping() => return Ok(false),
            _ = ticks.tick() => {}
        }
        tally.expect(&step.id);
        let published = stage.publish(&step.raw);
        let again = if step.redeliver { stage.again() } else { None };
        publishing.spawn(async move {
            let message_id = published.await?;
            let delivered_twice = again.is_some_and(|again| again(&message_id));
            anyhow::Ok((message_id, delivered_twice))
        });
        while let Some(published) = publishing.try_join_next() {
            tally.published(published??);
        }
    }
    while let Some(published) = publishing.join_next().await {
        tally.published(published??);
    }
    if !args.once {
        renderer.invite(stage)?;
        shutdown.stopping().await;
        return Ok(true);
    }
    Ok(settle(stage, tally, shutdown).await)
}

/// Waits until every published message was seen and every event is settled, or nothing happens any more.
async fn settle(stage: &Stage, tally: &Tally, shutdown: &Shutdown) -> bool {
    let mut ticks = time::interval(Duration::from_millis(20));
    let mut quiet_since = (Instant::now(), tally.happenings());
    loop {
        tokio::select! {
            biased;
            () = shutdown.stopping() => return false,
            _ = ticks.tick() => {}
        }
        if tally.all_settled() && stage.unacked().is_none_or(|unacked| unacked == 0) {
            return true;
        }
        if tally.happenings() != quiet_since.1 {
            quiet_since = (Instant::now(), tally.happenings());
        } else if quiet_since.0.elapsed() > PATIENCE {
            return true;
        }
    }
}

/// Defaults that suit a demonstration, where the user gave no others: the terminal belongs to the events, the store
/// to this run, and nobody wants to wait ten minutes for the eighth attempt.
fn quicken(loaded: &mut Loaded, folder: &Folder) {
    let is_default = |keys: &[&str]| !keys.iter().any(|key| is_given(loaded, key));
    let log = is_default(&["log.level"]);
    let store = is_default(&["store.url", "store.path", "store.backend"]);
    let retry = is_default(&["retry.min_backoff", "retry.max_backoff", "retry.max_failures"]);
    let quarantine = is_default(&["quarantine.max_per_minute"]);
    let config = &mut loaded.config;
    if log {
        config.log.level = "error,bellhop::worker=off".to_owned();
    }
    if store {
        config.store.path = folder.path().join("bellhop.db");
    }
    if retry {
        config.retry.min_backoff = Duration::from_millis(500);
        config.retry.max_backoff = Duration::from_secs(2);
        config.retry.max_failures = 4;
    }
    if quarantine {
        config.quarantine.max_per_minute = u32::MAX;
    }
}

fn is_given(loaded: &Loaded, key: &str) -> bool {
    loaded.origins.get(key).is_some_and(|origin| *origin != Origin::Default)
}

fn ratio(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(|| "give a number from 0 to 1".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.1..=10_000.0).contains(rate));
    rate.ok_or_else(|| "give a number from 0.1 to 10000".to_owned())
}

/// Writes to stdout; what a slow or closed terminal says comes back.
fn show(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
