//! One struct of collectors, one registry, no globals.
//!
//! Labels come from closed enums only, so the number of series does not grow with traffic. Names and types are pinned
//! by a test.

use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    core::Collector,
};

use crate::outcome::Reason;

const QUEUE_SECONDS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0];
const HANDLER_SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
const ATTEMPTS: &[f64] = &[1.0, 2.0, 3.0, 5.0, 8.0, 13.0];

/// Everything bellhop counts.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each collector carries its help text, which is what operators see")]
pub struct Metrics {
    registry: Registry,
    pub shutting_down: IntGauge,
    pub pubsub_messages_received: IntCounterVec,
    pub pubsub_requests: IntCounterVec,
    pub pubsub_last_message_timestamp: Gauge,
    pub pubsub_outstanding_messages: IntGauge,
    pub pubsub_outstanding_bytes: IntGauge,
    pub source_up: IntGaugeVec,
    pub source_restarts: IntCounterVec,
    pub store_up: IntGauge,
    pub store_info: IntGaugeVec,
    pub db_errors: IntCounterVec,
    pub intake_paused: IntGaugeVec,
    pub parked_events: IntGauge,
    pub parked_over_cap: IntCounter,
    pub parked_expired: IntCounter,
    pub claims_lost: IntCounterVec,
    pub claims_stale: IntGauge,
    pub claims_stranded: IntGauge,
    pub events_claimed: IntCounterVec,
    pub events_finished: IntCounterVec,
    pub events_skipped: IntCounterVec,
    pub events_suspected_duplicate: IntCounterVec,
    pub workspace_subscription_warnings: IntCounterVec,
    pub quarantined: IntCounterVec,
    pub quarantined_events: IntGaugeVec,
    pub quarantine_oldest_timestamp: Gauge,
    pub drain_aborted: IntCounter,
    pub handlers_in_flight: IntGauge,
    pub handler_slots: IntGauge,
    pub handler_timeout: Gauge,
    pub oldest_running_timestamp: Gauge,
    pub handler_duration: HistogramVec,
    pub handler_replies_unreadable: IntCounter,
    pub event_queue_delay: HistogramVec,
    pub event_end_to_end: HistogramVec,
    pub event_attempts: Histogram,
}

impl Metrics {
    /// Fresh collectors in a registry of their own.
    ///
    /// # Errors
    /// Only when two collectors share a name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let new = Build(Registry::new());
        let build = new.gauges("build_info", "Always 1.", &["version", "revision"])?;
        build
            .with_label_values(&[env!("CARGO_PKG_VERSION"), option_env!("BELLHOP_REVISION").unwrap_or("unknown")])
            .set(1);
        #[cfg(target_os = "linux")]
        new.0.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let metrics = Self {
            shutting_down: new.gauge("shutting_down", "1 from the first stop signal on.")?,
            pubsub_messages_received: new.counters(
                "pubsub_messages_received_total",
                "Deliveries received.",
                &["delivery"],
            )?,
            pubsub_requests: new.counters(
                "pubsub_requests_total",
                "Answers given to Pub/Sub.",
                &["operation", "result"],
            )?,
            pubsub_last_message_timestamp: new
                .float("pubsub_last_message_timestamp_seconds", "When the last delivery came; 0 = none since start.")?,
            pubsub_outstanding_messages: new.gauge("pubsub_outstanding_messages", "Deliveries not yet answered.")?,
            pubsub_outstanding_bytes: new.gauge("pubsub_outstanding_bytes", "Their payload bytes.")?,
            source_up: new.gauges("source_up", "1 while the source's own probe succeeds.", &["source"])?,
            source_restarts: new.counters("source_restarts_total", "Streams opened anew.", &["source", "reason"])?,
            store_up: new.gauge("store_up", "1 while the store answers.")?,
            store_info: new.gauges("store_info", "Always 1.", &["backend"])?,
            db_errors: new.counters("db_errors_total", "Failed store statements.", &["class"])?,
            intake_paused: new.gauges("intake_paused", "1 while no new event is claimed.", &["reason"])?,
            parked_events: new.gauge("parked_events", "Copies waiting in the parking lot.")?,
            parked_over_cap: new.counter("parked_over_cap_total", "Copies nacked because the parking lot was full.")?,
            parked_expired: new.counter("parked_expired_total", "Copies nacked because they had waited too long.")?,
            claims_lost: new.counters("claims_lost_total", "Claims lost while the handler ran.", &["reason"])?,
            claims_stale: new.gauge("claims_stale", "Running claims whose lease is over.")?,
            claims_stranded: new.gauge("claims_stranded", "Claims that nobody delivers any more.")?,
            events_claimed: new.counters("events_claimed_total", "Claims by answer.", &["event_type", "result"])?,
            events_finished: new.counters(
                "events_finished_total",
                "Attempts by outcome.",
                &["event_type", "outcome"],
            )?,
            events_skipped: new.counters("events_skipped_total", "Events a rule skipped.", &["event_type"])?,
            events_suspected_duplicate: new.counters(
                "events_suspected_duplicate_total",
                "Events alike in all but time within two minutes; handled all the same.",
                &["event_type"],
            )?,
            workspace_subscription_warnings: new.counters(
                "workspace_subscription_warnings_total",
                "Notices that a Workspace Events subscription ends or is suspended.",
                &["warning"],
            )?,
            quarantined: new.counters("quarantined_total", "Events put in quarantine.", &["reason"])?,
            quarantined_events: new.gauges("quarantined_events", "Open quarantine rows.", &["reason"])?,
            quarantine_oldest_timestamp: new.float(
                "quarantine_oldest_timestamp_seconds",
                "When the oldest open quarantine row was written; 0 = none.",
            )?,
            drain_aborted: new.counter("drain_aborted_total", "Attempts cut by a drain.")?,
            handlers_in_flight: new.gauge("handlers_in_flight", "Handlers running now.")?,
            handler_slots: new.gauge("handler_slots", "Handlers that may run at once.")?,
            handler_timeout: new.float("handler_timeout_seconds", "The longest handler timeout.")?,
            oldest_running_timestamp: new.float(
                "oldest_running_timestamp_seconds",
                "When the longest-running handler was called; 0 = none runs.",
            )?,
            handler_duration: new.histograms(
                "handler_duration_seconds",
                "Handler call to verdict.",
                &["event_type", "outcome"],
                HANDLER_SECONDS,
            )?,
            handler_replies_unreadable: new.counter(
                "handler_replies_unreadable_total",
                "Handlers that succeeded with a body that could not be read.",
            )?,
            event_queue_delay: new.histograms(
                "event_queue_delay_seconds",
                "Publish to handler call.",
                &["event_type"],
                QUEUE_SECONDS,
            )?,
            event_end_to_end: new.histograms(
                "event_end_to_end_seconds",
                "Publish to final state.",
                &["event_type"],
                QUEUE_SECONDS,
            )?,
            event_attempts: new.histogram("event_attempts", "Attempts at the final state.", ATTEMPTS)?,
            registry: new.0,
        };
        metrics.start_at_zero();
        Ok(metrics)
    }

    /// The registry, for the scrape endpoint.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// A series that never moved must read 0, not be absent: alerts on absent series are silent.
    fn start_at_zero(&self) {
        for reason in Reason::ALL {
            self.quarantined.with_label_values(&[reason.as_str()]);
            self.quarantined_events.with_label_values(&[reason.as_str()]);
        }
        for reason in ["store", "breaker", "brake"] {
            self.intake_paused.with_label_values(&[reason]);
        }
        for reason in ["fenced", "expired"] {
            self.claims_lost.with_label_values(&[reason]);
        }
        for warning in ["expiring", "expired", "suspended"] {
            self.workspace_subscription_warnings.with_label_values(&[warning]);
        }
        for delivery in ["first", "redelivered", "unknown"] {
            self.pubsub_messages_received.with_label_values(&[delivery]);
        }
    }
}

/// Makes collectors and registers them under the prefix.
struct Build(Registry);

impl Build {
    fn add<C: Collector + Clone + 'static>(&self, collector: C) -> Result<C, prometheus::Error> {
        self.0.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    fn opts(name: &str, help: &str) -> Opts {
        Opts::new(name, help).namespace("bellhop")
    }

    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        self.add(IntCounter::with_opts(Self::opts(name, help))?)
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
        self.add(IntCounterVec::new(Self::opts(name, help), labels)?)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.add(IntGauge::with_opts(Self::opts(name, help))?)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
        self.add(IntGaugeVec::new(Self::opts(name, help), labels)?)
    }

    fn float(&self, name: &str, help: &str) -> Result<Gauge, prometheus::Error> {
        self.add(Gauge::with_opts(Self::opts(name, help))?)
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram, prometheus::Error> {
        let opts = HistogramOpts::new(name, help).namespace("bellhop").buckets(buckets.to_vec());
        self.add(Histogram::with_opts(opts)?)
    }

    fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> Result<HistogramVec, prometheus::Error> {
        let opts = HistogramOpts::new(name, help).namespace("bellhop").buckets(buckets.to_vec());
        self.add(HistogramVec::new(opts, labels)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The rows of the metrics table: name, type, labels.
    fn documented() -> BTreeSet<(String, String, String)> {
        include_str!("../docs/OPERATIONS.md")
            .lines()
            .filter_map(|line| line.strip_prefix("| `bellhop_"))
            .map(|row| {
                let cells: Vec<_> = row.split('|').map(str::trim).collect();
                (format!("bellhop_{}", cells[0].trim_end_matches('`')), cells[1].to_owned(), cells[2].to_owned())
            })
            .collect()
    }

    /// Makes one series of every collector, so that the registry shows it.
    fn touch(metrics: &Metrics) {
        metrics.pubsub_requests.with_label_values(&["ack", "sent"]);
        metrics.source_up.with_label_values(&["pubsub"]);
        metrics.source_restarts.with_label_values(&["pubsub", "ended"]);
        metrics.store_info.with_label_values(&["memory"]);
        metrics.db_errors.with_label_values(&["unknown"]);
        metrics.events_claimed.with_label_values(&["MESSAGE", "claimed"]);
        metrics.events_finished.with_label_values(&["MESSAGE", "done"]);
        metrics.events_skipped.with_label_values(&["MESSAGE"]);
        metrics.events_suspected_duplicate.with_label_values(&["MESSAGE"]);
        metrics.handler_duration.with_label_values(&["MESSAGE", "ok"]);
        metrics.event_queue_delay.with_label_values(&["MESSAGE"]);
        metrics.event_end_to_end.with_label_values(&["MESSAGE"]);
    }

    #[test]
    fn every_metric_is_documented_with_its_type_and_labels_and_the_other_way_round() {
        let metrics = Metrics::new().unwrap();
        touch(&metrics);

        let exported = metrics.registry().gather().into_iter().filter(|family| family.name().starts_with("bellhop_"));
        let exported: BTreeSet<_> = exported
            .map(|family| {
                let labels = family.get_metric()[0].get_label().iter().map(|label| label.name().to_owned());
                let kind = format!("{:?}", family.get_field_type()).to_lowercase();
                (family.name().to_owned(), kind, labels.collect::<BTreeSet<_>>())
            })
            .collect();
        let documented: BTreeSet<_> = documented()
            .into_iter()
            .map(|(name, kind, labels)| {
                let labels = labels.split(", ").filter(|label| !label.is_empty()).map(str::to_owned);
                (name, kind, labels.collect::<BTreeSet<_>>())
            })
            .collect();

        assert_eq!(exported, documented);
    }
}
