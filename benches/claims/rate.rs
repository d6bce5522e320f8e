//! Pairs of claim and completion: how many in a second, and how long a lone claim takes.

use std::{sync::Arc, time::Duration};

use anyhow::ensure;
use async_trait::async_trait;
use sqlx::PgConnection;
use tokio::{sync::Mutex, task::JoinSet, time::Instant};
use uuid::Uuid;

use super::{
    contest::{Contestant, median},
    event::{Claimer, identity, intent},
    server::Database,
};

/// How long a turn lasts.
const TURN: Duration = Duration::from_millis(1_500);
/// Connections of a process, those for renewals left out.
pub(crate) const CONNECTIONS: usize = 4;

/// Pairs per second of so many tasks, each of which claims an event and completes it, again and again.
pub(crate) struct Rate {
    claimer: Arc<dyn Claimer>,
    tasks: usize,
    database: Option<Database>,
}

impl Rate {
    pub(crate) fn of(claimer: &Arc<dyn Claimer>, tasks: usize) -> Self {
        Self { claimer: Arc::clone(claimer), tasks, database: None }
    }

    pub(crate) fn on(self, database: &Database) -> Self {
        Self { database: Some(database.clone()), ..self }
    }
}

#[async_trait]
impl Contestant for Rate {
    async fn turn(&self) -> anyhow::Result<f64> {
        if let Some(database) = &self.database {
            database.rest().await?;
        }
        Ok(per_second(pairs(&self.claimer, self.tasks).await?.len()))
    }
}

/// The median time of a claim that is alone, in milliseconds.
pub(crate) struct Latency {
    claimer: Arc<dyn Claimer>,
    database: Database,
}

impl Latency {
    pub(crate) fn of(claimer: &Arc<dyn Claimer>, database: &Database) -> Self {
        Self { claimer: Arc::clone(claimer), database: database.clone() }
    }
}

#[async_trait]
impl Contestant for Latency {
    async fn turn(&self) -> anyhow::Result<f64> {
        self.database.rest().await?;
        let claims = pairs(&self.claimer, 1).await?;
        Ok(median(claims.iter().map(|took| took.as_secs_f64() * 1e3).collect()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(pairs: usize) -> f64 {
    pairs as f64 / TURN.as_secs_f64()
}

/// How long each claim took; every one was completed.
async fn pairs(claimer: &Arc<dyn Claimer>, tasks: usize) -> anyhow::Result<Vec<Duration>> {
    let end = Instant::now() + TURN;
    let mut running = JoinSet::new();
    for _ in 0..tasks {
        let claimer = Arc::clone(claimer);
        running.spawn(async move {
            let mut claims = Vec::new();
            loop {
                let intent = intent(identity());
                let sent_at = Instant::now();
                let held = claimer.claim(&intent).await?;
                let took = sent_at.elapsed();
                let Some(held) = held else { anyhow::bail!("a new event is somebody else's") };
                claimer.complete(held).await?;
                if Instant::now() >= end {
                    return Ok(claims);
                }
                claims.push(took);
            }
        });
    }
    let mut all = Vec::new();
    while let Some(task) = running.join_next().await {
        all.append(&mut task??);
    }
    Ok(all)
}

/// Batches of so many rows, inserted and then updated by key, on each of the connections at the same time: what a
/// server can do at best with these rows.
pub(crate) struct Bare {
    connections: Vec<Arc<Mutex<PgConnection>>>,
    database: Database,
    rows: usize,
}

impl Bare {
    pub(crate) async fn of(database: &Database, rows: usize) -> anyhow::Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(Arc::new(Mutex::new(database.connect().await?)));
        }
        Ok(Self { connections, database: database.clone(), rows })
    }
}

#[async_trait]
impl Contestant for Bare {
    async fn turn(&self) -> anyhow::Result<f64> {
        self.database.rest().await?;
        let end = Instant::now() + TURN;
        let mut running = JoinSet::new();
        for connection in &self.connections {
            let (connection, rows) = (Arc::clone(connection), self.rows);
            running.spawn(async move {
                let mut connection = connection.lock().await;
                let mut written = 0;
                while Instant::now() < end {
                    batch(&mut connection, rows).await?;
                    written += rows;
                }
                anyhow::Ok(written)
            });
        }
        let mut written = 0;
        while let Some(task) = running.join_next().await {
            written += task??;
        }
        Ok(per_second(written))
    }
}

async fn batch(db: &mut PgConnection, rows: usize) -> anyhow::Result<()> {
    let events: Vec<_> = (0..rows).map(|_| identity()).collect();
    let keys: Vec<_> = events.iter().map(|event| event.key.as_uuid()).collect();
    let inserted = sqlx::query(
        "INSERT INTO claims (key, event_id, event_type, fingerprint, state, phase, strict, epoch, nonce, lease_until,
            deadline)
        SELECT m.key, m.event_id, 'MESSAGE', m.fingerprint, 1, 1, false, 1, m.nonce,
            clock_timestamp() + interval '60 s', clock_timestamp() + interval '65 s'
        FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::bytea[]) AS m(key, nonce, event_id, fingerprint)
        ORDER BY m.key
        ON CONFLICT DO NOTHING",
    )
    .bind(&keys)
    .bind(keys.iter().map(|_| Uuid::new_v4()).collect::<Vec<_>>())
    .bind(events.iter().map(|event| event.event_id.as_str()).collect::<Vec<_>>())
    .bind(events.iter().map(|event| &event.fingerprint.0[..]).collect::<Vec<_>>())
    .execute(&mut *db)
    .await?;
    let updated = sqlx::query(
        "UPDATE claims SET state = 2, finished_at = clock_timestamp() FROM unnest($1::uuid[]) AS m(key)
        WHERE claims.key = m.key",
    )
    .bind(&keys)
    .execute(db)
    .await?;
    let written = u64::try_from(rows)?;
    ensure!((inserted.rows_affected(), updated.rows_affected()) == (written, written), "a row was not written");
    Ok(())
}
