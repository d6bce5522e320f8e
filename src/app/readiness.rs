//! Whether the process may get work: waits for the store at start, watches store, source and target afterwards.

use std::{sync::Arc, time::Duration};

use tokio::time::{self, Instant};

use crate::{
    app::{Exit, Failure},
    metrics::Metrics,
    server::{Check, Health},
    shutdown::Shutdown,
    store::{self, Upkeep},
    worker::Intake,
};

/// How often the store is asked.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// How often flags are read: nothing is asked over the network.
const GLANCE_EVERY: Duration = Duration::from_millis(250);
/// The delays between questions to a store that is not there yet.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often a wait is mentioned in the log.
const MENTION_EVERY: Duration = Duration::from_secs(60);

/// Keeps the readiness checks up to date.
pub(super) struct Readiness {
    upkeep: Arc<dyn Upkeep>,
    health: Health,
    metrics: Metrics,
}

impl Readiness {
    pub(super) const fn new(upkeep: Arc<dyn Upkeep>, health: Health, metrics: Metrics) -> Self {
        Self { upkeep, health, metrics }
    }

    /// Waits until the store can be used; false when a stop was ordered first.
    ///
    /// # Errors
    /// With `no_wait`: what is wrong with the store.
    pub(super) async fn await_store(&self, no_wait: bool, shutdown: &Shutdown) -> anyhow::Result<bool> {
        let mut delay = RETRY.0;
        let mut mentioned: Option<(Instant, String)> = None;
        loop {
            let asked = tokio::select! {
                biased;
                () = shutdown.stopping() => return Ok(false),
                asked = self.upkeep.prepare() => asked,
            };
            self.publish(&asked);
            let Some(failure) = failure(&asked) else { return Ok(true) };
            if no_wait {
                return Err(failure.into());
            }
            let news =
                mentioned.as_ref().is_none_or(|(at, text)| at.elapsed() >= MENTION_EVERY || *text != failure.message);
            if news {
                tracing::warn!(hint = failure.hint, "Not ready: {}; waiting", failure.message);
                mentioned = Some((Instant::now(), failure.message));
            }
            tokio::select! {
                () = shutdown.stopping() => return Ok(false),
                () = time::sleep(delay) => delay = (delay * 2).min(RETRY.1),
            }
        }
    }

    /// Watches until dropped.
    pub(super) async fn watch(self, source_good: Arc<dyn Fn() -> bool + Send + Sync>, intake: Arc<Intake>) {
        let flags = async {
            let mut glances = time::interval(GLANCE_EVERY);
            loop {
                glances.tick().await;
                self.health.set(Check::Source, source_good());
                self.health.set(Check::Breaker, intake.target_good());
            }
        };
        let store = async {
            let mut questions = time::interval(ASK_EVERY);
            loop {
                questions.tick().await;
                self.publish(&self.upkeep.prepare().await);
            }
        };
        tokio::join!(flags, store);
    }

    fn publish(&self, asked: &Result<store::Readiness, store::StoreError>) {
        let (answers, fits) = match asked {
            Ok(store::Readiness::Ready) => (true, true),
            Ok(store::Readiness::SchemaTooOld { .. } | store::Readiness::CodeTooOld { .. }) => (true, false),
            Ok(store::Readiness::Unfit(_)) | Err(_) => (false, true),
        };
        self.health.set(Check::Store, answers);
        self.health.set(Check::Schema, answers && fits);
        self.metrics.store_up.set(i64::from(answers));
    }
}

/// What is wrong with a store, and what to do; `None` when it can be used.
fn failure(asked: &Result<store::Readiness, store::StoreError>) -> Option<Failure> {
    Some(match asked {
        Ok(store::Readiness::Ready) => return None,
        Ok(store::Readiness::SchemaTooOld { found, needed }) => {
            let message = format!("the store's schema is version {found}, this bellhop needs {needed}");
            Failure::new(Exit::Refused, "schema_too_old", message).hint("run `bellhop migrate up`")
        }
        Ok(store::Readiness::CodeTooOld { min_code, mine }) => {
            let message = format!("the store's schema admits bellhop from schema version {min_code}; this is {mine}");
            Failure::new(Exit::Refused, "code_too_old", message).hint("deploy a newer bellhop")
        }
        Ok(store::Readiness::Unfit(why)) => {
            Failure::new(Exit::Refused, "store_unfit", format!("the store can not be used safely: {why}"))
        }
        Err(error) => Failure::unreachable(error.to_string()).hint("is the database up, and is store.url right?"),
    })
}
