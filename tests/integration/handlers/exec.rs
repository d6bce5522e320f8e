//! What goes into a program, what comes out of it, and what its exit code means.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use bellhop::handler::{
    Handled, Handler, HandlerContext, HandlerError,
    exec::{Config, ExecHandler},
};
use tempfile::TempDir;

use super::{BODY, cx, event, strict, verdict, with_body};

/// A handler that runs a shell script; `$1` is `place`.
pub(super) fn script(text: &str, place: &Path) -> ExecHandler {
    let command = ["sh", "-c", text, "handler", place.to_str().unwrap()].map(str::to_owned).to_vec();
    ExecHandler::new(&Config { command, ..Config::default() }, false).unwrap()
}

async fn run(text: &str, cx: &HandlerContext) -> Result<Handled, HandlerError> {
    script(text, Path::new("/nowhere")).handle(&event(), cx).await
}

#[tokio::test]
async fn each_exit_code_means_what_the_table_says() {
    for (code, rerun, under_strict) in [
        (0, "done", "done"),
        (75, "not run", "not run"),
        (65, "permanent", "permanent"),
        (1, "failed", "failed"),
        (2, "failed", "failed"),
        (64, "failed", "failed"),
        (125, "failed", "failed"),
        (126, "target trouble", "failed"),
        (127, "target trouble", "failed"),
        (130, "failed", "failed"),
        (255, "failed", "failed"),
    ] {
        let text = format!("echo out; echo why >&2; exit {code}");
        let why = if code == 0 { "" } else { "why\n" };

        assert_eq!(verdict(&run(&text, &cx()).await), (rerun, why), "{code}");
        assert_eq!(verdict(&run(&text, &strict()).await), (under_strict, why), "{code}");
    }
}

#[tokio::test]
async fn a_program_ended_by_a_signal_leaves_the_outcome_unknown() {
    for signal in ["KILL", "SEGV", "TERM"] {
        let result = run(&format!("echo why >&2; kill -{signal} $$"), &cx()).await;

        assert!(matches!(result, Err(HandlerError::Unknown { over: true, .. })), "{signal}: {result:?}");
        assert_eq!(verdict(&result).1, "why\n");
    }
}

#[tokio::test]
async fn the_event_comes_on_stdin_byte_for_byte() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("in");
    let body = format!("{{ \"a\":  \"{}\" }}", "é".repeat(100_000));

    script(r#"cat > "$1""#, &file).handle(&with_body(body.clone()), &cx()).await.unwrap();

    assert!(fs::read_to_string(file).unwrap() == body);
}

#[tokio::test]
async fn credentials_are_left_out_unless_they_are_to_be_passed_on() {
    let body = r#"{"z":1,"configCompleteRedirectUri":"https://x/secret"}"#;
    let config = Config { command: vec!["cat".to_owned()], ..Config::default() };
    for (pass, expected) in [(false, r#"{"z":1}"#), (true, body)] {
        let handler = ExecHandler::new(&config, pass).unwrap().reading_replies();

        assert_eq!(verdict(&handler.handle(&with_body(body), &cx()).await), ("done", expected));
    }
}

#[tokio::test]
async fn nothing_is_inherited_but_what_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("env");
    let command = ["sh", "-c", r#"env > "$1""#, "handler", file.to_str().unwrap()].map(str::to_owned).to_vec();
    let env = vec!["CARGO_PKG_NAME".to_owned(), "NOT_SET_ANYWHERE".to_owned()];
    assert!(std::env::var_os("CARGO_PKG_VERSION").is_some());

    ExecHandler::new(&Config { command, env }, false).unwrap().handle(&event(), &cx()).await.unwrap();

    let text = fs::read_to_string(file).unwrap();
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let mut names: Vec<_> = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    // The shell's own.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.retain(|name| !["HOME", "LANG"].contains(name) || std::env::var_os(name).is_none());
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "BELLHOP_ATTEMPT",
            "BELLHOP_DEADLINE",
            "BELLHOP_EPOCH",
            "BELLHOP_EVENT_ID",
            "BELLHOP_EVENT_TYPE",
            "BELLHOP_SPACE",
            "CARGO_PKG_NAME",
            "PATH",
            "TRACEPARENT"
        ]
    );
    assert_eq!(value("BELLHOP_EVENT_ID"), Some("bh1-ix-0123456789abcdef0123456789abcdef"));
    assert_eq!(value("BELLHOP_EVENT_TYPE"), Some("MESSAGE"));
    assert_eq!((value("BELLHOP_EPOCH"), value("BELLHOP_ATTEMPT")), (Some("1"), Some("1")));
    assert_eq!(value("BELLHOP_SPACE"), Some("spaces/A"));
    assert_eq!(value("TRACEPARENT").map(str::len), Some(55));
    assert!(chrono::DateTime::parse_from_rfc3339(value("BELLHOP_DEADLINE").unwrap()).is_ok());
}

#[tokio::test]
async fn hostile_values_never_fail_an_event() {
    let mut event = event();
    event.event_type = "\0=\n".repeat(10_000);
    event.chat.space = Some("\0".to_owned());

    let result = script("exit 0", Path::new("/nowhere")).handle(&event, &cx()).await;

    assert_eq!(verdict(&result), ("done", ""));
}

#[tokio::test]
async fn stdout_is_the_reply_when_replies_are_wanted() {
    for (text, expected) in [
        ("cat", ("done", BODY)),
        ("exit 0", ("done", "")),
        ("echo", ("done", "")),
        ("echo hello", ("done, unreadable", "")),
        (r#"printf '"'; head -c 1048576 /dev/zero | tr '\0' x; printf '"'"#, ("done, unreadable", "")),
        ("cat; exit 1", ("failed", "")),
    ] {
        let handler = script(text, Path::new("/nowhere")).reading_replies();

        assert_eq!(verdict(&handler.handle(&event(), &cx()).await), expected, "{text}");
    }
}

#[tokio::test]
async fn without_replies_stdout_is_read_and_forgotten() {
    assert_eq!(run("head -c 50000000 /dev/zero", &cx()).await.unwrap(), Handled::default());
}

#[tokio::test]
async fn a_long_event_goes_in_while_a_long_answer_comes_out() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("count");
    let text = r#"head -c 5000000 /dev/zero; head -c 5000000 /dev/zero >&2; wc -c > "$1""#;

    let result = script(text, &file).handle(&with_body(vec![b'x'; 10_000_000]), &cx()).await;

    assert_eq!(verdict(&result), ("done", ""));
    assert_eq!(fs::read_to_string(file).unwrap().trim(), "10000000");
}

#[tokio::test]
async fn a_program_need_not_read_the_event() {
    for text in ["exit 0", "exec 0<&-; sleep 0.1", "head -c 10 > /dev/null"] {
        let result = script(text, Path::new("/nowhere")).handle(&with_body(vec![b'x'; 10_000_000]), &cx()).await;

        assert_eq!(verdict(&result), ("done", ""), "{text}");
    }
}

#[tokio::test]
async fn the_last_2_kb_of_stderr_are_kept() {
    let result = run("head -c 9000 /dev/zero | tr '\\0' a >&2; printf '\\033[31mlast' >&2; exit 65", &cx()).await;

    let (verdict, detail) = verdict(&result);
    assert_eq!(verdict, "permanent");
    assert!(detail.starts_with("aaa") && detail.ends_with("a[31mlast") && detail.len() == 2_047, "{}", detail.len());
}

#[tokio::test]
async fn a_program_that_can_not_be_started_was_certainly_not_run() {
    let folder = TempDir::new().unwrap();
    let program = folder.path().join("program");
    let write = |text: &str, mode: u32| {
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("#!/no/such/interpreter\n", 0o755);
    let config = Config { command: vec![program.to_str().unwrap().to_owned()], ..Config::default() };
    let handler = ExecHandler::new(&config, false).unwrap();
    for case in ["no interpreter", "not executable", "gone"] {
        match case {
            "not executable" => write("#!/bin/sh\n", 0o644),
            "gone" => fs::remove_file(&program).unwrap(),
            _ => {}
        }
        for cx in [cx(), strict()] {
            let result = handler.handle(&event(), &cx).await;

            assert!(matches!(result, Err(HandlerError::TargetTrouble { .. })), "{case}: {result:?}");
        }
    }
}
