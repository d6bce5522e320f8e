//! Whether the process may get work: waits for the store at start, watches store, source and target afterwards.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::time::{self, Instant};
use tracing::warn;

use crate::{
    claims::Claims,
    server::{Check, Health},
    shutdown::Shutdown,
    store,
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
    claims: Arc<Claims>,
    health: Health,
}

impl Readiness {
    pub(super) const fn new(claims: Arc<Claims>, health: Health) -> Self {
        Self { claims, health }
    }

    /// Waits until the store can be used; false when a stop was ordered first.
    ///
    /// # Errors
    /// With `no_wait`: what is wrong with the store.
    pub(super) async fn await_store(&self, no_wait: bool, shutdown: &Shutdown) -> Result<bool, NotReady> {
        let mut delay = RETRY.0;
        let mut mentioned: Option<(Instant, String)> = None;
        loop {
            let asked = tokio::select! {
                biased;
                () = shutdown.stopping() => return Ok(false),
                asked = self.claims.prepare() => asked,
            };
            self.publish(&asked);
            let Some(trouble) = NotReady::of(asked) else { return Ok(true) };
            if no_wait {
                return Err(trouble);
            }
            let text = trouble.to_string();
            if mentioned.as_ref().is_none_or(|(at, last)| at.elapsed() >= MENTION_EVERY || *last != text) {
                warn!(hint = trouble.hint(), "Not ready, waiting: {text}");
                mentioned = Some((Instant::now(), text));
            }
            tokio::select! {
                () = shutdown.stopping() => return Ok(false),
                () = time::sleep(delay) => delay = (delay * 2).min(RETRY.1),
            }
        }
    }

    /// Watches until dropped.
    pub(super) async fn watch(
        self,
        source_good: Arc<dyn Fn() -> bool + Send + Sync>,
        intake: Arc<Intake>,
    ) -> Infallible {
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
                self.publish(&self.claims.prepare().await);
            }
        };
        tokio::select! {
            never = flags => never,
            never = store => never,
        }
    }

    fn publish(&self, asked: &Result<store::Readiness, store::StoreError>) {
        let (answers, fits) = match asked {
            Ok(store::Readiness::Ready) => (true, true),
            Ok(store::Readiness::SchemaTooOld { .. } | store::Readiness::CodeTooOld { .. }) => (true, false),
            Ok(store::Readiness::Unfit(_)) | Err(_) => (false, true),
        };
        self.health.set(Check::Store, answers);
        self.health.set(Check::Schema, answers && fits);
    }
}

/// Why a store can not be used now.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// A migration is missing, or still running.
    #[error("the store's schema is version {found}, this bellhop needs {needed}")]
    SchemaTooOld {
        /// What it has; 0 = none.
        found: i64,
        /// What is needed.
        needed: i64,
    },
    /// The schema went ahead of this code.
    #[error("the store's schema admits bellhop from schema version {min_code} on; this is {mine}")]
    CodeTooOld {
        /// The oldest code version it admits.
        min_code: i64,
        /// What this code is.
        mine: i64,
    },
    /// Writing to it would not be safe.
    #[error("the store can not be used safely: {0}")]
    Unfit(String),
    /// It does not answer.
    #[error("the store does not answer: {}", .0.cause().as_str())]
    Away(store::StoreError),
}

impl NotReady {
    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::SchemaTooOld { .. } => "run `bellhop migrate up`",
            Self::CodeTooOld { .. } => "deploy a newer bellhop",
            Self::Unfit(_) => "point store.url at a primary with safe settings",
            Self::Away(_) => "is the database up, and is store.url right?",
        }
    }

    fn of(asked: Result<store::Readiness, store::StoreError>) -> Option<Self> {
        Some(match asked {
            Ok(store::Readiness::Ready) => return None,
            Ok(store::Readiness::SchemaTooOld { found, needed }) => Self::SchemaTooOld { found, needed },
            Ok(store::Readiness::CodeTooOld { min_code, mine }) => Self::CodeTooOld { min_code, mine },
            Ok(store::Readiness::Unfit(why)) => Self::Unfit(why),
            Err(error) => Self::Away(error),
        })
    }
}
