//! The few connections of a process, each checked before it is used and thrown away after any doubt.
//!
//! sqlx's own pool retries a failing check until its timeout and then says only "timed out"; here the first failure
//! is the answer, and a connection whose answer did not come (or whose caller went away) is closed, never reused:
//! its late answer would be taken for the next statement's.

use std::{
    fmt,
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use prometheus::{Histogram, IntGauge};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};
use tokio::{
    sync::{AcquireError, Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};
use tracing::warn;
use uuid::Uuid;

use super::{
    Config,
    error::{Busy, TimedOut, Unfit, classify, sqlstate},
    session::{self, Session},
    statement::Wire,
};
use crate::{
    metrics::Metrics,
    store::{StoreError, holdoff::Holdoff},
};

/// A connection idle for longer may have been cut on the way; a fresh one is cheaper than a timeout.
const MAX_IDLE: Duration = Duration::from_secs(60);
/// Connections are replaced now and then, so that a moved server name or a grown backend is noticed.
const MAX_AGE: Duration = Duration::from_secs(1_800);

/// Which connections a statement uses. Renewals have one of their own: a queue of claims must not cost a lease.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lane {
    /// Everything but renewals.
    Work,
    /// Renewals.
    Renewal,
}

/// The connections of a store.
pub(super) struct Connections {
    options: PgConnectOptions,
    /// With the bounds of the server's patience, and the marker: a server that knows it is ours alone.
    marked: PgConnectOptions,
    marker: String,
    /// A pooler refused these options, or the URL says that there is one.
    unmarked: AtomicBool,
    /// Begins a transaction with the same bounds.
    begin: String,
    timeout: Duration,
    holdoff: Arc<Holdoff>,
    work: LaneState,
    renewal: LaneState,
}

#[derive(Debug)]
struct LaneState {
    permits: Semaphore,
    idle: Mutex<Vec<Open>>,
    shown: Shown,
}

/// What metrics show of a lane.
#[derive(Debug)]
struct Shown {
    in_use: IntGauge,
    idle: IntGauge,
    waits: Histogram,
}

/// A statement's place in a lane: counted as in use until dropped.
struct Place<'a> {
    shown: &'a Shown,
    _permit: SemaphorePermit<'a>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shown.in_use.dec();
    }
}

#[derive(Debug)]
struct Open {
    connection: PgConnection,
    /// Behind a transaction pooler: statements are unnamed, each in a transaction of its own.
    pooled: bool,
    opened: Instant,
    used: Instant,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Connections {
    /// Opens nothing yet.
    ///
    /// # Errors
    /// `Refused` when the URL cannot be read.
    pub(super) fn new(
        config: &Config,
        timeout: Duration,
        holdoff: Arc<Holdoff>,
        metrics: &Metrics,
    ) -> Result<Self, StoreError> {
        let options = connect_options(config.url.expose()).map_err(classify)?;
        let work = usize::try_from(config.max_connections.saturating_sub(1)).unwrap_or(1).max(1);
        let marker = Uuid::new_v4().simple().to_string();
        // The server gives up before its client does: nobody waits for a lock on behalf of nobody. Between two statements
        // of a transaction only a client that froze is silent for long: its locks are not kept.
        let [lock, statement, check, idle] =
            [timeout / 2, timeout * 3 / 4, timeout, timeout * 4].map(|bound| bound.as_millis().to_string());
        Ok(Self {
            unmarked: AtomicBool::new(keeps_no_statements(&options)),
            begin: format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {lock}; \
                 SET LOCAL statement_timeout = {statement}; SET LOCAL idle_in_transaction_session_timeout = {idle}"
            ),
            marked: options.clone().options([
                (session::MARKER, &marker),
                ("lock_timeout", &lock),
                ("statement_timeout", &statement),
                ("client_connection_check_interval", &check),
            ]),
            marker,
            options,
            timeout,
            holdoff,
            work: LaneState::of(work, "work", metrics),
            renewal: LaneState::of(1, "renewal", metrics),
        })
    }

    /// Runs one statement. Waiting for a connection, and then connecting and the statement up to the last byte of its
    /// answer, may each take the client timeout.
    pub(super) async fn run<T, F>(&self, lane: Lane, statement: F) -> Result<T, StoreError>
    where
        T: Send,
        F: for<'c> FnOnce(Wire<'c>) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send,
    {
        let lane = match lane {
            Lane::Work => &self.work,
            Lane::Renewal => &self.renewal,
        };
        match timeout(self.timeout, lane.enter()).await {
            Ok(Ok(_place)) => {
                let answer = timeout(self.timeout, self.attempt(lane, statement)).await;
                let answer = answer.unwrap_or_else(|_elapsed| Err(StoreError::unknown(TimedOut)));
                if matches!(answer, Err(StoreError::Unknown(_))) {
                    self.doubt();
                }
                answer
            }
            // Nothing was sent, so nothing is known about the server: those who use the connections will tell.
            Ok(Err(closed)) => Err(StoreError::unknown(closed)),
            Err(_elapsed) => Err(StoreError::unknown(Busy)),
        }
    }

    async fn attempt<T, F>(&self, lane: &LaneState, statement: F) -> Result<T, StoreError>
    where
        T: Send,
        F: for<'c> FnOnce(Wire<'c>) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send,
    {
        let mut open = match lane.take() {
            Some(open) => open,
            None => self.open().await?,
        };
        let answer = open.run(&self.begin, statement).await.map_err(classify);
        if !matches!(answer, Err(StoreError::Unknown(_))) {
            lane.put(open);
        }
        answer
    }

    /// After an answer that did not come every other idle connection is doubtful, and so is every lease.
    fn doubt(&self) {
        self.holdoff.restart();
        self.work.forget();
        self.renewal.forget();
    }

    async fn open(&self) -> Result<Open, StoreError> {
        let marked = !self.unmarked.load(Ordering::Relaxed);
        let options = if marked { &self.marked } else { &self.options };
        let mut connection = match options.connect().await {
            Err(sqlx::Error::Database(error)) if marked && refuses_options(&*error) => {
                let connection = self.options.connect().await.map_err(classify)?;
                warn!(%error, "No start-up options are taken: statements are sent unnamed, each in a transaction");
                self.unmarked.store(true, Ordering::Relaxed);
                connection
            }
            other => other.map_err(classify)?,
        };
        let check = in_transaction(&mut connection, &self.begin, |wire| Box::pin(session::check(wire)));
        let session = check.await.map_err(classify)?;
        if let Some(unfit) = session.unfit() {
            return Err(StoreError::unknown(Unfit(unfit)));
        }
        let pooled = session.marker.as_ref() != Some(&self.marker);
        let now = Instant::now();
        let mut open = Open { connection, pooled, opened: now, used: now };
        match open.run(&self.begin, |wire| Box::pin(session::server_identity(wire))).await.map_err(classify) {
            Ok(server) => self.holdoff.saw(&server),
            // The schema is not there yet; `prepare` says so.
            Err(error) if sqlstate(&error) == Some("42883") => {}
            Err(error) => return Err(error),
        }
        Ok(open)
    }

    /// What the server in use says of itself, asked on a connection that is open already where there is one.
    pub(super) async fn session(&self) -> Result<Session, StoreError> {
        self.run(Lane::Work, |wire| Box::pin(session::check(wire))).await
    }
}

impl LaneState {
    fn of(connections: usize, name: &str, metrics: &Metrics) -> Self {
        let gauge = |state| metrics.db_pool_connections.with_label_values(&[name, state]);
        gauge("max").set(i64::try_from(connections).unwrap_or(i64::MAX));
        let waits = metrics.db_acquire_duration.with_label_values(&[name]);
        let shown = Shown { in_use: gauge("in_use"), idle: gauge("idle"), waits };
        Self { permits: Semaphore::new(connections), idle: Mutex::default(), shown }
    }

    /// Waits for a place.
    async fn enter(&self) -> Result<Place<'_>, AcquireError> {
        // Dropped unserved, a wait shows for as long as it lasted.
        let _wait = self.shown.waits.start_timer();
        let permit = self.permits.acquire().await?;
        self.shown.in_use.inc();
        Ok(Place { shown: &self.shown, _permit: permit })
    }

    fn take(&self) -> Option<Open> {
        self.with_idle(|idle| {
            idle.retain(|open| open.used.elapsed() < MAX_IDLE && open.opened.elapsed() < MAX_AGE);
            idle.pop()
        })
    }

    fn put(&self, mut open: Open) {
        open.used = Instant::now();
        self.with_idle(|idle| idle.push(open));
    }

    fn forget(&self) {
        self.with_idle(Vec::clear);
    }

    fn with_idle<T>(&self, change: impl FnOnce(&mut Vec<Open>) -> T) -> T {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = change(&mut idle);
        self.shown.idle.set(i64::try_from(idle.len()).unwrap_or(i64::MAX));
        answer
    }
}

impl Open {
    async fn run<T, F>(&mut self, begin: &str, statement: F) -> Result<T, sqlx::Error>
    where
        T: Send,
        F: for<'c> FnOnce(Wire<'c>) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send,
    {
        if self.pooled {
            in_transaction(&mut self.connection, begin, statement).await
        } else {
            statement(Wire { connection: &mut self.connection, named: true }).await
        }
    }
}

/// Runs a statement in a transaction, so that a pooler keeps one server for its parse and its execution.
async fn in_transaction<T, F>(connection: &mut PgConnection, begin: &str, statement: F) -> Result<T, sqlx::Error>
where
    T: Send,
    F: for<'c> FnOnce(Wire<'c>) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send,
{
    let mut transaction = connection.begin_with(AssertSqlSafe(begin.to_owned())).await?;
    match statement(Wire { connection: &mut transaction, named: false }).await {
        Ok(answer) => {
            transaction.commit().await?;
            Ok(answer)
        }
        Err(error) => {
            transaction.rollback().await?;
            Err(error)
        }
    }
}

/// The URL's own options, less what poolers refuse and what would put statements into the log.
pub(super) fn connect_options(url: &str) -> Result<PgConnectOptions, sqlx::Error> {
    let options = PgConnectOptions::from_str(url)?;
    let named = options.get_application_name().is_some();
    let options = if named { options } else { options.application_name("bellhop") };
    Ok(options.extra_float_digits(None).disable_statement_logging())
}

/// `?statement-cache-capacity=0`: the operator says that nothing can be kept on a connection.
fn keeps_no_statements(options: &PgConnectOptions) -> bool {
    options.to_url_lossy().query_pairs().any(|(key, value)| key == "statement-cache-capacity" && value == "0")
}

/// Whether this is a pooler that takes no options, or a server that does not know or admit one of them.
fn refuses_options(error: &dyn sqlx::error::DatabaseError) -> bool {
    refuses_marker(error) || matches!(error.code().as_deref(), Some("42704" | "22023"))
}

/// Whether this is a pooler that takes no settings it does not know.
pub(super) fn refuses_marker(error: &dyn sqlx::error::DatabaseError) -> bool {
    error.code().as_deref() == Some("08P01") && error.message().contains("unsupported startup parameter")
}
