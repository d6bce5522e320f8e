//! How fast events are claimed and completed: `tests/run.sh cargo bench --bench claims`.
//!
//! Each line sets bellhop beside something that took turns with it in the same minutes on the same machine: the design
//! before this one (one statement per claim and one per completion, each alone), or the bare tables (inserts and
//! updates in batches, no protocol at all). A ratio is the median of the ratios of all rounds. It fails when a bound
//! is missed.
//!
//! Words after `--` choose the lines that have one of them.
//!
//! The server at `BELLHOP_TEST_POSTGRES_URL` gets databases of its own, dropped at the end. The server of
//! `tests/run.sh` does not wait for the disk; as long as this runs, it does.

use std::process::ExitCode;

/// Holds the modules, so that their files stand in a folder of the same name.
mod claims {
    pub(crate) mod before;
    pub(crate) mod before_sqlite;
    pub(crate) mod contest;
    pub(crate) mod event;
    pub(crate) mod now;
    pub(crate) mod rate;
    pub(crate) mod server;
    pub(crate) mod storm;
}

use claims::{
    before, before_sqlite,
    contest::{Bound, Contest, say},
    now,
    rate::{Bare, Latency, Rate},
    server::Server,
    storm::Storm,
};

/// How often each line is measured, after one turn to warm up.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let server = Server::reach().await?;
    let all_held = measure(&server).await;
    server.leave().await?;
    Ok(if all_held? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(server: &Server) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let mut contests = contests(server, folder.path()).await?;
    // Cargo passes `--bench`, test runners other flags; none matters here.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    contests.retain(|contest| words.is_empty() || words.iter().any(|word| contest.has(word)));
    for round in 0..=ROUNDS {
        for contest in &mut contests {
            contest.round(round).await?;
        }
    }
    say(&Contest::header());
    for contest in &contests {
        say(&contest.line());
    }
    Ok(contests.iter().all(Contest::holds))
}

async fn contests(server: &Server, folder: &std::path::Path) -> anyhow::Result<Vec<Contest>> {
    let (ours, old, bare) = (server.database().await?, server.old_database().await?, server.database().await?);
    let (claims, one_by_one) = (now::in_postgres(&ours)?, before::in_postgres(&old).await?);
    let sqlite = now::in_sqlite(&folder.join("now.db")).await?;
    let old_sqlite = before_sqlite::in_sqlite(&folder.join("before.db")).await?;
    let ours_with = |tasks| Rate::of(&claims, tasks).on(&ours);
    let old_with = |tasks| Rate::of(&one_by_one, tasks).on(&old);
    let storm = Storm::of(now::processes_in_postgres(&ours)?, &ours).await?;
    let old_storm = Storm::of(before::processes_in_postgres(&old).await?, &old).await?;
    Ok(vec![
        Contest::of("PostgreSQL, 1 task: pairs/s", ours_with(1)).beside("one by one", old_with(1)),
        Contest::of("PostgreSQL, 64 tasks: pairs/s", ours_with(64))
            .beside("one by one", old_with(64))
            .held_to(Bound::AtLeast(2.0)),
        Contest::of("PostgreSQL, 256 tasks: pairs/s", ours_with(256))
            .beside("one by one", old_with(256))
            .held_to(Bound::AtLeast(6.0)),
        Contest::of("PostgreSQL, 64 tasks: pairs/s", ours_with(64)).beside("bare, 64", Bare::of(&bare, 64).await?),
        Contest::of("PostgreSQL, 256 tasks: pairs/s", ours_with(256))
            .beside("bare, 128", Bare::of(&bare, 128).await?)
            .held_to(Bound::AtLeast(0.5)),
        Contest::of("PostgreSQL, a lone claim: ms", Latency::of(&claims, &ours))
            .beside("one by one", Latency::of(&one_by_one, &old))
            .held_to(Bound::AtMost(1.1)),
        Contest::of("PostgreSQL, 8 take over 1,000 rows: ms", storm)
            .beside("one by one", old_storm)
            .held_to(Bound::AtMost(1.0)),
        Contest::of("SQLite, 64 tasks: pairs/s", Rate::of(&sqlite, 64))
            .beside("one by one", Rate::of(&old_sqlite, 64))
            .held_to(Bound::AtLeast(3.0)),
        Contest::of("Memory, 64 tasks: pairs/s", Rate::of(&now::in_memory()?, 64))
            .beside("SQLite now", Rate::of(&sqlite, 64)),
    ])
}
