//! Limits that depend on each other.

use std::time::Duration;

use humantime::format_duration;

use super::Check;

/// What covers a subscription and a topic with Pub/Sub's default message retention of 7 days.
const USUAL_RETENTION: Duration = Duration::from_secs(10 * 86_400);

impl Check<'_> {
    pub(super) fn limits(&mut self) {
        self.outstanding();
        self.drain();
        let retry = &self.config.retry;
        if retry.min_backoff > retry.max_backoff {
            let what = format!("is longer than retry.max_backoff ({})", format_duration(retry.max_backoff));
            self.problem("retry.min_backoff", what, "lower it, or raise retry.max_backoff");
        }
        if self.config.claims.retention < USUAL_RETENTION {
            let what = "must be the message retention of subscription and topic (7 days unless changed) + 3 days";
            self.warning("claims.retention", what, "below that, a late copy is put in quarantine as too old");
        }
    }

    fn outstanding(&mut self) {
        let (pubsub, worker) = (&self.config.pubsub, &self.config.worker);
        let (max, concurrency, parking) = (pubsub.max_outstanding_messages, worker.concurrency, worker.parking);
        if max == 0 {
            return;
        }
        if concurrency > max {
            let what = format!("is more than pubsub.max_outstanding_messages ({max}): handlers would wait for ever");
            let fix = format!("lower it, or set pubsub.max_outstanding_messages to {concurrency} or more, or to 0");
            self.problem("worker.concurrency", what, fix);
        } else if parking > max - concurrency {
            let what = format!(
                "and worker.concurrency ({concurrency}) are together more than pubsub.max_outstanding_messages ({max})"
            );
            self.problem(
                "worker.parking",
                what,
                "lower it, or raise pubsub.max_outstanding_messages, or set both to 0",
            );
        } else if self.config.worker.parking_places() > max - concurrency {
            let what = format!("leaves only {} places for waiting copies", max - concurrency);
            self.warning("pubsub.max_outstanding_messages", what, "set it to 0 to have it computed");
        }
        let least = 2 * pubsub.streams;
        if max < least {
            let what = format!("is divided over {} streams, at least 2 each", pubsub.streams);
            self.problem("pubsub.max_outstanding_messages", what, format!("set it to {least} or more, or to 0"));
        }
    }

    fn drain(&mut self) {
        let worker = &self.config.worker;
        let longest = self.config.rules().longest_timeout();
        let drain = worker.drain_timeout.for_handlers(longest);
        let known = !self.is_spoiled("handler.timeout") && !self.is_spoiled("rule");
        if known && drain < longest {
            let what = format!("is shorter than the longest handler timeout ({})", format_duration(longest));
            if worker.drain_may_cut {
                self.warning("worker.drain_timeout", what, "a drain cuts handlers that run longer");
            } else {
                let fix = "use \"auto\", or allow the cut with worker.drain_may_cut = true";
                self.problem("worker.drain_timeout", what, fix);
            }
        }
    }
}
