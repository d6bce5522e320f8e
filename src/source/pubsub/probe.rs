//! Asks the server about the subscription: the only sign of life, since a stream that waits looks like a dead one.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;

use super::{
    clients::{Caller, Clients},
    health::Health,
    notice::Notice,
    reason::{Failure, Reason},
};
use crate::{metrics::Metrics, retry::Backoff};

/// Between two probes while all is well.
const PERIOD: Duration = Duration::from_secs(30);
/// How long one may take, from connecting to the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Between two attempts after a failure.
pub(super) const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Shared by the supervisors and its own loop; answers are shared too.
#[derive(Debug)]
pub(super) struct Probe {
    subscription: String,
    clients: Arc<Clients>,
    health: Arc<Health>,
    notice: Notice,
    metrics: Metrics,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    client: Option<Caller>,
    answer: Option<(Instant, Result<(), Failure>)>,
}

impl Probe {
    pub(super) fn new(subscription: String, clients: Arc<Clients>, health: Arc<Health>, metrics: Metrics) -> Self {
        let notice = Notice::about("The probe of the subscription");
        Self { subscription, clients, health, notice, metrics, last: Mutex::default() }
    }

    /// Probes now; callers that come while a probe runs share the next one.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        let called = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((begun, answer)) = &last.answer
            && *begun >= called
        {
            return answer.clone();
        }
        let begun = Instant::now();
        let answer = match time::timeout(TIMEOUT, self.ask(&mut last.client)).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::new(Reason::Timeout, "the probe got no answer in time")),
        };
        last.answer = Some((begun, answer.clone()));
        let result = match &answer {
            Ok(()) => "ok",
            Err(failure) => failure.reason.as_str(),
        };
        self.metrics.pubsub_requests.with_label_values(&["probe", result]).inc();
        match &answer {
            Ok(()) => {
                self.health.reached();
                self.notice.recovered(&self.subscription);
            }
            Err(failure) => {
                // The next probe must not fail on the same connection, nor on a key that was replaced since.
                last.client = None;
                if failure.reason.blames_credentials() {
                    self.clients.doubt_credentials().await;
                }
                self.health.missed(failure.reason);
                self.notice.failed(&self.subscription, failure);
            }
        }
        answer
    }

    /// Probes until `stopping`.
    pub(super) async fn run(&self, stopping: &CancellationToken) {
        loop {
            let pause = match u16::try_from(self.health.failures()).unwrap_or(u16::MAX) {
                0 => PERIOD,
                failures => BACKOFF.delay(failures, rand::random()),
            };
            let round = async {
                time::sleep(pause).await;
                // Its outcome is in `health`.
                let _ = self.check().await;
            };
            if stopping.run_until_cancelled(round).await.is_none() {
                return;
            }
        }
    }

    async fn ask(&self, client: &mut Option<Caller>) -> Result<(), Failure> {
        let client = match client {
            Some(client) => client,
            None => client.insert(self.clients.caller().await?),
        };
        client.get_subscription(&self.subscription).await.map(drop)
    }
}
