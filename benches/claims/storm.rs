//! Many processes that take over the same rows at once, as when the owner of many events is lost.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use async_trait::async_trait;
use bellhop::claim::Identity;
use rand::seq::SliceRandom;
use tokio::{
    sync::Barrier,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    contest::Contestant,
    event::{Claimer, identity, intent},
    now,
    server::Database,
};

pub(crate) const PROCESSES: usize = 8;
const ROWS: usize = 1_000;
/// Events that one process asks for at the same time.
const TASKS: usize = 64;

/// The time in milliseconds until every row has a new owner.
pub(crate) struct Storm {
    processes: Vec<Arc<dyn Claimer>>,
    database: Database,
    ready_at: Instant,
}

impl Storm {
    pub(crate) async fn of(processes: Vec<Arc<dyn Claimer>>, database: &Database) -> anyhow::Result<Self> {
        warm(&processes).await?;
        let ready_at = Instant::now() + now::storm_ready_after();
        Ok(Self { processes, database: database.clone(), ready_at })
    }
}

#[async_trait]
impl Contestant for Storm {
    async fn turn(&self) -> anyhow::Result<f64> {
        sleep_until(self.ready_at).await;
        self.database.rest().await?;
        warm(&self.processes).await?;
        let rows: Vec<_> = (0..ROWS).map(|_| identity()).collect();
        self.database.abandon(&rows).await?;
        let start = Arc::new(Barrier::new(PROCESSES * TASKS + 1));
        let mut running = JoinSet::new();
        for process in &self.processes {
            let mut rows = rows.clone();
            rows.shuffle(&mut rand::rng());
            let rows = Arc::new(Mutex::new(rows));
            for _ in 0..TASKS {
                running.spawn(take_over(Arc::clone(process), Arc::clone(&rows), Arc::clone(&start)));
            }
        }
        start.wait().await;
        let began = Instant::now();
        let mut taken = Vec::new();
        while let Some(task) = running.join_next().await {
            taken.append(&mut task??);
        }
        ensure!(taken.len() == ROWS, "{} of {ROWS} rows were taken over", taken.len());
        let last = taken.into_iter().max().unwrap_or(began);
        Ok((last - began).as_secs_f64() * 1e3)
    }
}

/// When this task took each row that it got.
async fn take_over(
    process: Arc<dyn Claimer>,
    rows: Arc<Mutex<Vec<Identity>>>,
    start: Arc<Barrier>,
) -> anyhow::Result<Vec<Instant>> {
    let next = || rows.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut taken = Vec::new();
    start.wait().await;
    while let Some(row) = next() {
        if process.claim(&intent(row)).await?.is_some() {
            taken.push(Instant::now());
        }
    }
    Ok(taken)
}

/// Every process has its connections, and has sent each statement.
async fn warm(processes: &[Arc<dyn Claimer>]) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for process in processes.iter().flat_map(|process| std::iter::repeat_n(process, TASKS)) {
        let process = Arc::clone(process);
        running.spawn(async move {
            let held = process.claim(&intent(identity())).await?.context("a new event is somebody else's")?;
            process.complete(held).await
        });
    }
    while let Some(task) = running.join_next().await {
        task??;
    }
    Ok(())
}
