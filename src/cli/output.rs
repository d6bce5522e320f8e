//! Forms of an answer, and the way it reaches stdout.

use std::{
    ffi::OsString,
    io::{self, Write},
};

use clap::ValueEnum;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
}

/// True for a command line with `-o json`, however wrong the rest of it is.
#[must_use]
pub(super) fn asks_for_json(arguments: &[OsString]) -> bool {
    let arguments: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    arguments.iter().any(|argument| ["-ojson", "-o=json", "--output=json"].contains(argument))
        || arguments.windows(2).any(|pair| ["-o", "--output"].contains(&pair[0]) && pair[1] == "json")
}

/// Writes an answer to stdout, whole.
///
/// # Errors
/// What the other end of the pipe says; a closed one is told apart by [`is_closed_pipe`].
pub(super) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// True when the reader went away: the user has what they wanted.
#[must_use]
pub(super) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

/// Text for a terminal: no control characters but line ends, so that nothing in it steers the terminal.
#[must_use]
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// `1 message`, `2 messages`.
#[must_use]
pub(super) fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Columns as wide as their widest cell, two spaces between, none at the end.
#[must_use]
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).filter_map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{:<width$}", printable(cell)));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
