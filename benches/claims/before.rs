//! The design before this one: a statement for each claim and one for each completion.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use bellhop::claim::{ClaimIntent, ClaimRef};
use sqlx::{PgConnection, Row as _};
use tokio::sync::Semaphore;

use super::{
    event::{BUDGET, Claimer, Held, LEASE, RETENTION, TIMEOUT},
    rate::CONNECTIONS,
    server::Database,
    storm::PROCESSES,
};

/// How often a race that was lost after the snapshot is run again.
const RACES: usize = 5;

const CLAIM: &str = include_str!("before.sql");

const DONE: &str = "WITH d AS (
        UPDATE claims SET state = 2, finished_at = coalesce(finished_at, clock_timestamp())
        WHERE key = $1 AND nonce = $2
        RETURNING key, nonce, phase
    ),
    r AS (DELETE FROM replies USING d WHERE d.phase = 2 AND replies.key = d.key),
    q AS (
        UPDATE quarantine SET resolution = 'late_success', settled_at = clock_timestamp()
        FROM d WHERE quarantine.key = d.key AND quarantine.nonce = d.nonce AND settled_at IS NULL
            AND reason NOT IN ('mismatch', 'reply_undelivered')
    )
    SELECT count(*) FROM d";

/// A process with a few connections, each of which sends one statement at a time.
struct OneByOne {
    permits: Semaphore,
    idle: Mutex<Vec<PgConnection>>,
    server: String,
}

pub(crate) async fn in_postgres(database: &Database) -> anyhow::Result<Arc<dyn Claimer>> {
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        idle.push(database.connect().await?);
    }
    let server = sqlx::query_scalar("SELECT server_identity()").fetch_one(&mut database.connect().await?).await?;
    Ok(Arc::new(OneByOne { permits: Semaphore::new(CONNECTIONS), idle: Mutex::new(idle), server }))
}

pub(crate) async fn processes_in_postgres(database: &Database) -> anyhow::Result<Vec<Arc<dyn Claimer>>> {
    let mut processes = Vec::new();
    for _ in 0..PROCESSES {
        processes.push(in_postgres(database).await?);
    }
    Ok(processes)
}

impl OneByOne {
    fn take(&self) -> anyhow::Result<PgConnection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().context("a permit without a connection")
    }

    fn give_back(&self, connection: PgConnection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// Whether the event is ours; `None` = a race was lost.
    async fn send_claim(&self, intent: &ClaimIntent) -> anyhow::Result<Option<bool>> {
        let _permit = self.permits.acquire().await?;
        let mut connection = self.take()?;
        let answer = sqlx::query(CLAIM)
            .bind(intent.key().as_uuid())
            .bind(intent.event.event_id.as_str())
            .bind(&intent.event.event_type)
            .bind(&intent.event.fingerprint.0[..])
            .bind(intent.nonce.as_uuid())
            .bind(intent.strict)
            .bind(micros(LEASE.length()))
            .bind(micros(LEASE.grace()))
            .bind(micros(TIMEOUT))
            .bind(intent.born)
            .bind(micros(RETENTION))
            .bind(i32::from(BUDGET.max_failures))
            .bind(i32::from(BUDGET.max_lost))
            .bind(intent.suspect)
            .bind(true)
            .bind(&self.server)
            .fetch_optional(&mut connection)
            .await?;
        self.give_back(connection);
        let Some(answer) = answer else { return Ok(None) };
        let (kind, ok): (&str, bool) = (answer.try_get("kind!")?, answer.try_get("ok!")?);
        Ok(match kind {
            "mine" => Some(true),
            "other" if ok => None,
            _ => Some(false),
        })
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 4)
}

#[async_trait]
impl Claimer for OneByOne {
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> anyhow::Result<Option<Held>> {
        for _ in 0..RACES {
            if let Some(mine) = self.send_claim(intent).await? {
                return Ok(mine.then(|| Held::Reference(intent.reference())));
            }
        }
        bail!("lost {RACES} races for one event")
    }

    async fn complete(&self, held: Held) -> anyhow::Result<()> {
        let claim = reference(&held)?;
        let _permit = self.permits.acquire().await?;
        let mut connection = self.take()?;
        let query = sqlx::query_scalar(DONE).bind(claim.key.as_uuid()).bind(claim.nonce.as_uuid());
        let moved: i64 = query.fetch_one(&mut connection).await?;
        self.give_back(connection);
        ensure!(moved == 1, "the row is somebody else's");
        Ok(())
    }
}

pub(super) fn reference(held: &Held) -> anyhow::Result<ClaimRef> {
    match held {
        Held::Reference(claim) => Ok(*claim),
        Held::Claim(_) => bail!("not claimed here"),
    }
}
