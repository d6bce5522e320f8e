//! `bellhop config validate`

use serde_json::json;

use super::super::{Exit, Output, Settings, output};
use crate::config::{Problem, Profile};

/// How to say it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Form of the answer
    #[arg(long, short, value_enum, default_value = "table")]
    pub(super) output: Output,
}

/// The verdict is the answer, so it goes to stdout.
pub(super) fn run(args: &Args, settings: Settings) -> anyhow::Result<Exit> {
    let (problems, warnings) = match settings.load(Profile::Run) {
        Ok(loaded) => (Vec::new(), loaded.warnings),
        Err(found) => (found.problems, found.warnings),
    };
    let text = match args.output {
        Output::Json => {
            let answer = json!({"version": 1, "ok": problems.is_empty(), "problems": problems, "warnings": warnings});
            format!("{answer}\n")
        }
        Output::Table => text(&problems, &warnings),
    };
    output::print(&text)?;
    Ok(if problems.is_empty() { Exit::Ok } else { Exit::Usage })
}

fn text(problems: &[Problem], warnings: &[Problem]) -> String {
    let lines = |label: &'static str, list: &[Problem]| -> Vec<String> {
        list.iter().map(|problem| format!("{label}: {}\n", output::printable(&problem.to_string()))).collect()
    };
    let mut text = lines("problem", problems).concat() + &lines("warning", warnings).concat();
    if problems.is_empty() {
        text.push_str("ok\n");
    }
    text
}
