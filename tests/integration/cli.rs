//! The commands as users and scripts meet them: exit codes, stdout and stderr of the real binary.

mod config;
mod healthcheck;
mod inspect;
mod migrate;
mod signals;

use std::{
    io,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// `bellhop` with nothing of the developer's environment but what a program needs to run at all.
fn bellhop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellhop"));
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
    command
}

/// What came of it: exit code, stdout, stderr.
fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("bellhop starts");
    let text = |bytes| String::from_utf8(bytes).expect("answers are UTF-8");
    (status.code().expect("it was not killed"), text(stdout), text(stderr))
}

/// The `error` object that `-o json` promises on stderr.
fn error_of(stderr: &str) -> Value {
    let answer: Value = serde_json::from_str(stderr).unwrap_or_else(|_| panic!("not one JSON document: {stderr}"));
    answer["error"].clone()
}

#[test]
fn a_wrong_command_line_is_exit_2_and_talk() {
    for (arguments, expected) in [
        (vec![], "Usage: bellhop"),
        (vec!["rum"], "a similar subcommand exists: 'run'"),
        (vec!["run", "--drain-timout", "1s"], "a similar argument exists: '--drain-timeout'"),
        (vec!["run", "--set", "worker.parking"], "expected section.key=value"),
        (vec!["config", "show", "-o", "xml"], "possible values: table, toml, json"),
    ] {
        let (code, stdout, stderr) = run(&mut bellhop(&arguments));

        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn help_and_version_are_answers() {
    let (code, stdout, stderr) = run(&mut bellhop(&["--version"]));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, concat!("bellhop ", env!("CARGO_PKG_VERSION"), "\n"), ""));

    let (code, stdout, stderr) = run(&mut bellhop(&["help"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
    for command in ["run", "migrate", "config", "healthcheck", "completions"] {
        assert!(stdout.contains(&format!("\n  {command} ")), "{command}");
    }
}

#[test]
fn completions_are_for_the_shell_that_asks() {
    for (shell, expected) in
        [("bash", "complete -F _bellhop"), ("zsh", "#compdef bellhop"), ("fish", "complete -c bellhop")]
    {
        let (code, stdout, stderr) = run(&mut bellhop(&["completions", shell]));

        assert_eq!((code, stderr.as_str()), (0, ""), "{shell}");
        assert!(stdout.contains(expected), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for arguments in [&["completions", "bash"][..], &["--help"], &["config", "validate"]] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);

        let output = bellhop(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();

        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}
