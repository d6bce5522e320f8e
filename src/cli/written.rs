//! Holds the commands that the documentation tells people to type to the command line that there is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Parser, error::ErrorKind};

use super::Cli;

/// Where commands are written for people to type.
const PAGES: [&str; 9] = [
    "compose.yaml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "charts/bellhop",
    "deploy",
    "docs",
    "examples",
    "migrations",
];

/// Every text file in or below a path, if it is there.
fn texts(path: PathBuf) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder");
        return entries.flat_map(|entry| texts(entry.expect("an entry").path())).collect();
    }
    let is_text =
        path.extension().is_some_and(|kind| ["md", "txt", "yaml", "json", "tf"].iter().any(|text| kind == *text));
    if is_text { vec![path] } else { Vec::new() }
}

/// The commands of a page: those between backquotes, and in code blocks those that begin a line.
fn commands(page: &str) -> Vec<String> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            found.extend(command(line.trim_start().trim_start_matches("$ ")));
        } else {
            found.extend(line.split('`').skip(1).step_by(2).filter_map(command));
        }
    }
    found
}

/// What follows the program's name, up to a comment or the next program.
fn command(text: &str) -> Option<String> {
    let text = text.strip_prefix("cargo run -- ").or_else(|| text.strip_prefix("bellhop "))?;
    let end = [" #", " &", " |", " >", ";", "  "].iter().filter_map(|end| text.find(end)).min();
    Some(text[..end.unwrap_or(text.len())].trim().to_owned())
}

/// Why the command line refuses it. Leaving something out is no fault: `bellhop trigger` may be the name of a command.
fn fault(command: &str) -> Option<String> {
    // A number stands as N in a text.
    let words = command.split_whitespace().map(|word| if word == "N" { "1" } else { word });
    let error = Cli::try_parse_from(std::iter::once("bellhop").chain(words)).err()?;
    let is_fault = !matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    is_fault.then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

#[test]
fn every_command_in_the_documentation_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    let mut faults = Vec::new();

    for path in PAGES.iter().flat_map(|page| texts(root.join(page))) {
        for command in commands(&fs::read_to_string(&path).expect("a text")) {
            seen += 1;
            faults.extend(fault(&command).map(|fault| format!("{}: bellhop {command}: {fault}", path.display())));
        }
    }

    assert_eq!(faults, [] as [String; 0]);
    assert!(seen > 20, "only {seen} commands were found");
}

#[test]
fn commands_are_found_where_they_are_typed() {
    let page = "see `bellhop inspect FILE…`, not bellhop frobnicate.\n```sh\n$ bellhop run --config a.toml &\nbellhop migrate up   # once\n```\n";

    assert_eq!(commands(page), ["inspect FILE…", "run --config a.toml", "migrate up"]);
}

#[test]
fn a_command_that_is_none_is_noticed() {
    assert!(fault("migrate upwards").is_some_and(|fault| fault.contains("upwards")));
    assert!(fault("trigger --creat x").is_some());
    assert!(fault("trigger").is_none());
}
