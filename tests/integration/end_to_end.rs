//! The real process between a real broker, a real database and a handler: what a user is promised, end to end.
//!
//! Every scenario runs against Google's emulator and against the embedded server.

mod duplicates;
mod failures;
mod kill_run;
mod ledger;
mod on_googles_emulator;
mod on_the_embedded_server;
mod outages;
mod payloads;
mod samples;
mod start;
mod stopping;

use std::time::Duration;

use tokio::time;

use self::ledger::{Ledger, ledger};
use super::harness::{
    Behaviour, Broker, Postgres, ScriptedHandler, Setup, broker::Subscription, eventually, handler::Call, wait::when,
};

/// More than any event needs here: three ack deadlines.
const SETTLED_WITHIN: Duration = Duration::from_secs(45);

/// How often claims are looked at: seldom enough not to be a load.
const POLL: Duration = Duration::from_millis(100);

/// What surrounds bellhop.
#[derive(Debug)]
struct World {
    broker: Broker,
    subscription: Subscription,
    postgres: Postgres,
    handler: ScriptedHandler,
}

impl World {
    /// A fresh subscription and database, and a handler that follows `script`.
    async fn new(broker: Broker, script: impl Fn(&Call) -> Behaviour + Send + 'static) -> Self {
        Self::with(broker, Postgres::fresh().await, script).await
    }

    /// The same with a database that the test may hurt.
    async fn with(broker: Broker, postgres: Postgres, script: impl Fn(&Call) -> Behaviour + Send + 'static) -> Self {
        let subscription = broker.subscription().await;
        let handler = ScriptedHandler::start(script).await;
        let world = Self { broker, subscription, postgres, handler };
        world.setup(1).migrate().await;
        world
    }

    /// The configuration of processes in this world, `replicas` of them.
    fn setup(&self, replicas: u32) -> Setup {
        Setup::new(&self.broker, &self.subscription)
            .postgres(self.postgres.url(), replicas)
            .handler(&self.handler.url())
    }

    /// What stands in the claims.
    async fn ledger(&self) -> Ledger {
        ledger(&self.postgres).await
    }

    /// Waits until so many events are done or in quarantine, and returns what then stands in the claims.
    async fn settled(&self, events: usize) -> Ledger {
        self.settled_within(events, SETTLED_WITHIN).await
    }

    async fn settled_within(&self, events: usize, within: Duration) -> Ledger {
        let mut ledger = Ledger::default();
        let settled = time::timeout(within, async {
            while ledger.settled() != events {
                time::sleep(POLL).await;
                ledger = self.ledger().await;
            }
        });
        let in_time = settled.await.is_ok();
        assert!(in_time, "waited {within:?} in vain for {events} settled events: {ledger:?}");
        ledger
    }

    /// Waits until the handler was called so often.
    async fn called(&self, times: usize) {
        eventually(&format!("{times} calls"), SETTLED_WITHIN, async || when(self.handler.count() >= times)).await;
    }

    /// Nothing is left at the broker. Asks for longer than one ack deadline; nobody else may be pulling.
    async fn assert_all_acked(&self) {
        let left = self.subscription.leftovers().await;
        assert!(left.is_empty(), "{} messages are not acked", left.len());
    }
}
