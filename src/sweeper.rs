//! Keeps the store fit, on every replica, paced: forgets what is past retention and counts what stands.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::time;

use crate::{
    claims::Claims,
    metrics::Metrics,
    outcome::Reason,
    store::{Counts, StoreError},
};

/// About how often a replica sweeps. Jitter keeps replicas apart; two at once do no harm.
const EVERY: Duration = Duration::from_secs(60);
/// The pause between two steps of one sweep, so that deleting never crowds out claiming.
const PAUSE: Duration = Duration::from_secs(1);

/// Sweeps until dropped.
#[derive(Debug, Clone)]
pub struct Sweeper {
    claims: Arc<Claims>,
    quarantine_retention: Duration,
    metrics: Metrics,
}

impl Sweeper {
    /// A sweeper that deletes quarantined payloads once they are older than `quarantine_retention`.
    #[must_use]
    pub fn new(claims: Arc<Claims>, quarantine_retention: Duration, metrics: Metrics) -> Self {
        Self { claims, quarantine_retention, metrics }
    }

    /// Never returns. Cancel-safe: every step is one statement.
    pub async fn run(&self) -> Infallible {
        loop {
            if let Err(error) = self.sweep().await {
                // The worker notices outages by itself; a sweep that was missed is made up for by the next.
                tracing::debug!(error.kind = error.label(), "Sweep was cut short");
            }
            time::sleep(EVERY.mul_f64(0.75 + rand::random::<f64>() / 2.0)).await;
        }
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        self.publish(&self.claims.counts().await?);
        while self.claims.expire(self.quarantine_retention).await? > 0 {
            time::sleep(PAUSE).await;
        }
        Ok(())
    }

    fn publish(&self, counts: &Counts) {
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for reason in Reason::ALL {
            let open = counts.quarantined.iter().find(|(of, _)| *of == reason).map_or(0, |(_, open)| *open);
            self.metrics.quarantined_events.with_label_values(&[reason.as_str()]).set(whole(open));
        }
        let oldest = counts.oldest_quarantined_at.map_or(0, |at| at.timestamp());
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit a float exactly")]
        self.metrics.quarantine_oldest_timestamp.set(oldest as f64);
        self.metrics.claims_stale.set(whole(counts.stale));
        self.metrics.claims_stranded.set(whole(counts.stranded));
    }
}
