//! Deadlines, and that nothing of an attempt outlives it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bellhop::handler::{Handler, HandlerError};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::{cx, event, exec::script, verdict, within};

/// Writes the ids of the program and of a child of it, which has the pipes too, to `$1`.
const FAMILY: &str = r#"sleep 1000 & echo $$ $! > "$1.new"; mv "$1.new" "$1"; "#;

struct Family {
    folder: TempDir,
}

impl Family {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("ids")
    }

    async fn started(&self) {
        eventually(|| self.file().exists()).await;
    }

    /// Returns once neither program nor child is running any more.
    async fn gone(&self) {
        let text = fs::read_to_string(self.file()).unwrap();
        let ids: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(ids.len(), 2);
        eventually(|| ids.iter().all(|id| !is_running(id))).await;
    }
}

fn is_running(id: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

async fn eventually(met: impl Fn() -> bool) {
    let waiting = async {
        while !met() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), waiting).await.expect("it happens in 10 s");
}

#[tokio::test]
async fn a_program_is_asked_to_end_2_s_before_its_deadline() {
    let (handler, started) =
        (script("trap 'exit 75' TERM; while :; do sleep 0.05; done", Path::new("/")), Instant::now());

    let result = handler.handle(&event(), &within(Duration::from_secs(3))).await;

    assert_eq!(verdict(&result).0, "not run");
    assert!((1_000..1_400).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_program_that_does_not_end_is_killed_at_its_deadline_with_all_it_started() {
    let family = Family::new();
    let text = format!("trap '' TERM; {FAMILY} echo why >&2; wait");
    let (handler, started) = (script(&text, &family.file()), Instant::now());
    let limit = Duration::from_millis(1_500);

    let cx = within(limit);
    let event = event();
    let result = timeout(limit, handler.handle(&event, &cx)).await.expect("told before the caller cuts");

    assert!(matches!(result, Err(HandlerError::TimedOut { .. })), "{result:?}");
    assert_eq!(verdict(&result).1, "why\n");
    assert!(started.elapsed() >= Duration::from_millis(1_300));
    family.gone().await;
}

#[tokio::test]
async fn a_program_that_dies_of_the_signal_before_its_deadline_did_not_end_in_time() {
    let result = script("sleep 1000", Path::new("/")).handle(&event(), &within(Duration::from_millis(500))).await;

    assert!(matches!(result, Err(HandlerError::TimedOut { .. })), "{result:?}");
}

#[tokio::test]
async fn dropping_a_call_kills_the_program_with_all_it_started() {
    let family = Family::new();
    let handler = script(&format!("trap '' TERM; {FAMILY} wait"), &family.file());
    let (event, cx) = (event(), cx());
    let mut call = Box::pin(handler.handle(&event, &cx));
    tokio::select! {
        result = &mut call => panic!("{result:?}"),
        () = family.started() => {}
    }

    drop(call);

    family.gone().await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_is_read_for_a_second_then_killed() {
    let family = Family::new();
    let handler = script(&format!("{FAMILY} echo '\"reply\"'; exit 0"), &family.file()).reading_replies();
    let started = Instant::now();

    let result = handler.handle(&event(), &cx()).await;

    assert_eq!(verdict(&result), ("done", "\"reply\"\n"));
    assert!((1_000..3_000).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
    family.gone().await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_never_costs_it_its_verdict() {
    let family = Family::new();
    let handler = script(&format!("{FAMILY} exit 0"), &family.file());
    let limit = Duration::from_millis(900);

    let (event, cx) = (event(), within(limit));
    let result = timeout(limit, handler.handle(&event, &cx)).await.expect("told before the caller cuts");

    assert_eq!(verdict(&result), ("done", ""));
    family.gone().await;
}

#[tokio::test]
async fn what_a_program_leaves_behind_without_its_pipes_is_killed_at_once() {
    let family = Family::new();
    let text = r#"sleep 1000 < /dev/null > /dev/null 2>&1 & echo $$ $! > "$1"; exit 0"#;
    let started = Instant::now();

    let result = script(text, &family.file()).handle(&event(), &cx()).await;

    assert_eq!(verdict(&result), ("done", ""));
    assert!(started.elapsed() < Duration::from_secs(1));
    family.gone().await;
}
