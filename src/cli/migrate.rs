//! `bellhop migrate`: the PostgreSQL schema. SQLite and memory migrate themselves.

use super::{Exit, Failure, Output, Settings, output};
use crate::config::{Profile, store::Backend};

/// What to do.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say whether migrations are pending; exit 1 if so (the default)
    Status(Form),
    /// Apply what is pending, once, however many processes try
    Up(Up),
}

#[derive(Debug, Default, clap::Args)]
struct Form {
    /// Form of the answer
    #[arg(long, short, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct Up {
    /// How long to wait for another migration to end
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration)]
    lock_timeout: std::time::Duration,
    #[command(flatten)]
    form: Form,
}

impl Args {
    /// The form of the answer.
    pub(super) const fn output(&self) -> Output {
        match &self.action {
            Some(Action::Status(form) | Action::Up(Up { form, .. })) => form.output,
            None => Output::Table,
        }
    }
}

/// Exit 0: up to date. 1: pending (`status`) or failed. 6: no database.
pub(super) async fn run(args: Args, settings: Settings) -> anyhow::Result<Exit> {
    let form = args.output();
    let store = settings.load(Profile::Store)?.config.store;
    let backend = store.backend();
    if backend != Backend::Postgres {
        let name = backend.as_str();
        let text = match form {
            Output::Json => format!("{}\n", serde_json::json!({"version": 1, "backend": name, "pending": []})),
            Output::Table => format!("{name} migrates itself; nothing to do\n"),
        };
        output::print(&text)?;
        return Ok(Exit::Ok);
    }
    match args.action.unwrap_or_else(|| Action::Status(Form::default())) {
        // Place kept: `store::postgres::migrate::{status, up}` with `store.url_for_migrations()`.
        Action::Status(_) => Err(Failure::new(Exit::Failed, "failed", "the PostgreSQL store is being written").into()),
        Action::Up(Up { lock_timeout, .. }) => {
            let _ = lock_timeout;
            Err(Failure::new(Exit::Failed, "failed", "the PostgreSQL store is being written").into())
        }
    }
}
