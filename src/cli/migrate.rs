//! `bellhop migrate`: the PostgreSQL schema. SQLite and memory migrate themselves.

use serde_json::json;

use super::{Exit, Failure, Output, Settings, output};
use crate::{
    config::{Profile, store::Backend},
    store::postgres::migrate::{self, Error, Status},
};

/// What to do.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say whether migrations are pending, or newer than this bellhop; exit 1 if it can not work so (the default)
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
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration)]
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

/// Exit 0: up to date. 1: pending, or too new for this code (`status`), or failed. 5: another migration, or a pooler, is
/// in the way. 6: no database.
pub(super) async fn run(args: Args, settings: Settings) -> anyhow::Result<Exit> {
    let form = args.output();
    let store = settings.load(Profile::Store)?.config.store;
    let backend = store.backend();
    if backend != Backend::Postgres {
        let name = backend.as_str();
        let text = match form {
            Output::Json => format!("{}\n", json!({"version": 1, "backend": name, "pending": []})),
            Output::Table => format!("{name} migrates itself; nothing to do\n"),
        };
        output::print(&text)?;
        return Ok(Exit::Ok);
    }
    let url = store.url_for_migrations();
    let (status, applied) = match args.action.unwrap_or_else(|| Action::Status(Form::default())) {
        Action::Status(_) => (migrate::status(url).await.map_err(explain)?, false),
        Action::Up(Up { lock_timeout, .. }) => (migrate::up_within(url, lock_timeout).await.map_err(explain)?, true),
    };
    output::print(&match form {
        Output::Json => json(&status, applied),
        Output::Table => table(&status, applied),
    })?;
    let fits = status.pending.is_empty() && status.min_code <= status.code;
    Ok(if applied || fits { Exit::Ok } else { Exit::Failed })
}

fn json(status: &Status, applied: bool) -> String {
    let Status { found, needed, min_code, code, pending, unknown, .. } = status;
    let (pending, applied): (&[String], &[String]) = if applied { (&[], pending) } else { (pending, &[]) };
    let answer = json!({
        "version": 1, "backend": "postgres", "schema": found, "needed": needed, "min_code": min_code, "code": code,
        "usable": status.is_usable(), "pending": pending, "applied": applied,
        "newer": status.is_newer(), "unknown": unknown,
    });
    format!("{answer}\n")
}

fn table(status: &Status, applied: bool) -> String {
    let (verb, hint) = if applied { ("applied", "") } else { ("pending", "apply with: bellhop migrate up\n") };
    let mut text = format!("schema {}, needed {}\n", status.found, status.needed);
    for name in &status.pending {
        text.push_str(&format!("{verb}: {name}\n"));
    }
    if status.pending.is_empty() {
        text.push_str("nothing pending\n");
    } else {
        text.push_str(hint);
    }
    if status.is_newer() {
        text.push_str(&newer(status));
    }
    if applied {
        text.push_str(&format!(
            "as its owner or a superuser, bound what this role waits for:\n  {}\n",
            status.role_line()
        ));
    }
    text
}

/// A newer bellhop was here: what this one does not know, and whether it can work all the same.
fn newer(status: &Status) -> String {
    let Status { min_code, code, unknown, .. } = status;
    let unknown: Vec<_> = unknown.iter().map(i64::to_string).collect();
    let unknown = if unknown.is_empty() { String::new() } else { format!(", by migrations {}", unknown.join(", ")) };
    let then = if status.min_code <= status.code {
        format!("this bellhop runs on it all the same: it is code {code}, the schema admits {min_code} and later")
    } else {
        format!(
            "this bellhop does not run on it: it is code {code}, the schema admits {min_code} and later; deploy a newer one"
        )
    };
    format!("the schema is newer than this bellhop knows{unknown}\n{then}\n")
}

/// What the database says goes no further than its class: it may quote the URL.
fn explain(error: Error) -> anyhow::Error {
    let hint = match &error {
        Error::Connect(_) => "check store.url (or store.migrate_url) and that the server accepts connections from here",
        Error::Busy(_) => "wait for it, or look for a session that holds an advisory lock",
        Error::Pooled | Error::Migrate(_) | Error::Statement(_) => "",
    };
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let message = format!("{error}{cause}");
    let failure = match error {
        Error::Connect(_) => Failure::unreachable(message),
        Error::Busy(_) | Error::Pooled => Failure::new(Exit::Refused, "refused", message),
        Error::Migrate(_) | Error::Statement(_) => Failure::new(Exit::Failed, "failed", message),
    };
    failure.hint(hint).into()
}
