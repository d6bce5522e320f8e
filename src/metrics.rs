//! One struct of collectors, one registry, no globals.
//!
//! Labels come from closed enums only, so the number of series does not grow with traffic. Names and types are pinned
//! by a test.

use prometheus::{Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use self::register::Register;
use crate::{event::type_labels, outcome::Reason};

pub mod labels;
mod register;
#[cfg(test)]
pub(crate) mod tests;

const QUEUE_SECONDS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0];
/// Up to the longest timeout that can be configured.
const HANDLER_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0,
    7_200.0, 21_600.0,
];
/// Of the timeout that applies to the call, whatever it is: an alert on 0.8 is exact for every timeout.
const TIMEOUT_SHARES: &[f64] = &[0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const STORE_SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Up to the most that share one.
const BATCH_ITEMS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
const ACQUIRE_SECONDS: &[f64] = &[0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];
const ATTEMPTS: &[f64] = &[1.0, 2.0, 3.0, 5.0, 8.0, 13.0];
/// Up to the most attempts before a dead-letter policy takes an event away.
const DELIVERY_ATTEMPTS: &[f64] = &[1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 25.0, 50.0, 100.0];

/// Everything bellhop counts.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each collector carries its help text, which is what operators see")]
pub struct Metrics {
    registry: Registry,
    pub shutting_down: IntGauge,
    pub pubsub_messages_received: IntCounterVec,
    pub pubsub_requests: IntCounterVec,
    pub pubsub_delivery_attempts: Histogram,
    pub pubsub_lease_expirations: IntCounter,
    pub pubsub_last_message_timestamp: Gauge,
    pub pubsub_outstanding_messages: IntGauge,
    pub pubsub_outstanding_bytes: IntGauge,
    pub source_up: IntGaugeVec,
    pub source_restarts: IntCounterVec,
    pub store_up: IntGauge,
    pub store_info: IntGaugeVec,
    pub db_errors: IntCounterVec,
    pub db_query_duration: HistogramVec,
    pub db_batch_items: HistogramVec,
    pub db_acquire_duration: HistogramVec,
    pub db_pool_connections: IntGaugeVec,
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
    pub handler_timeout_used: Histogram,
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
        let new = Register(Registry::new());
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
                ["delivery"],
                labels::each(labels::DELIVERIES),
            )?,
            pubsub_requests: new.counters(
                "pubsub_requests_total",
                "Answers given to Pub/Sub.",
                ["operation", "result"],
                labels::requests(),
            )?,
            pubsub_delivery_attempts: new.histogram(
                "pubsub_delivery_attempts",
                "What the subscription counts for each delivery.",
                DELIVERY_ATTEMPTS,
            )?,
            pubsub_lease_expirations: new.counter(
                "pubsub_lease_expirations_total",
                "Messages that came again while this process still held them.",
            )?,
            pubsub_last_message_timestamp: new
                .float("pubsub_last_message_timestamp_seconds", "When the last delivery came; 0 = none since start.")?,
            pubsub_outstanding_messages: new.gauge("pubsub_outstanding_messages", "Deliveries not yet answered.")?,
            pubsub_outstanding_bytes: new.gauge("pubsub_outstanding_bytes", "Their payload bytes.")?,
            source_up: new.gauges("source_up", "1 while the source's own probe succeeds.", &["source"])?,
            source_restarts: new.counters(
                "source_restarts_total",
                "Streams opened anew.",
                ["source", "reason"],
                labels::pairs(labels::SOURCES, &labels::SOURCE_REASONS),
            )?,
            store_up: new.gauge("store_up", "1 while the store answers.")?,
            store_info: new.gauges("store_info", "Always 1.", &["backend"])?,
            db_errors: new.counters(
                "db_errors_total",
                "Failed store operations.",
                ["class"],
                labels::each(labels::STORE_ERRORS),
            )?,
            db_query_duration: new.histograms(
                "db_query_duration_seconds",
                "Store operations, waiting for a connection included.",
                &["query", "outcome"],
                STORE_SECONDS,
            )?,
            db_batch_items: new.histograms(
                "db_batch_items",
                "Events that shared a statement.",
                &["operation"],
                BATCH_ITEMS,
            )?,
            db_acquire_duration: new.histograms(
                "db_acquire_duration_seconds",
                "Waiting for a database connection.",
                &["pool"],
                ACQUIRE_SECONDS,
            )?,
            db_pool_connections: new.gauges("db_pool_connections", "Database connections.", &["pool", "state"])?,
            intake_paused: new.gauges("intake_paused", "1 while no new event is claimed.", &["reason"])?,
            parked_events: new.gauge("parked_events", "Copies waiting in the parking lot.")?,
            parked_over_cap: new.counter("parked_over_cap_total", "Copies nacked because the parking lot was full.")?,
            parked_expired: new.counter("parked_expired_total", "Copies nacked because they had waited too long.")?,
            claims_lost: new.counters(
                "claims_lost_total",
                "Claims lost while the handler ran.",
                ["reason"],
                labels::each(labels::LOSSES),
            )?,
            claims_stale: new.gauge("claims_stale", "Running claims whose lease is over.")?,
            claims_stranded: new.gauge("claims_stranded", "Claims that nobody delivers any more.")?,
            events_claimed: new.counters(
                "events_claimed_total",
                "Claims by answer.",
                ["event_type", "result"],
                labels::by_type(&labels::CLAIM_RESULTS),
            )?,
            events_finished: new.counters(
                "events_finished_total",
                "Attempts by outcome.",
                ["event_type", "outcome"],
                labels::by_type(&labels::OUTCOMES),
            )?,
            events_skipped: new.counters(
                "events_skipped_total",
                "Events a rule skipped.",
                ["event_type"],
                labels::each(type_labels()),
            )?,
            workspace_subscription_warnings: new.counters(
                "workspace_subscription_warnings_total",
                "Notices that a Workspace Events subscription ends or is suspended.",
                ["warning"],
                labels::each(labels::WARNINGS),
            )?,
            quarantined: new.counters(
                "quarantined_total",
                "Events put in quarantine.",
                ["reason"],
                labels::each(Reason::ALL.map(Reason::as_str)),
            )?,
            quarantined_events: new.gauges("quarantined_events", "Open quarantine rows.", &["reason"])?,
            quarantine_oldest_timestamp: new.float(
                "quarantine_oldest_timestamp_seconds",
                "When the oldest open quarantine row was written; 0 = none.",
            )?,
            drain_aborted: new.counter(
                "drain_aborted_total",
                "Attempts that a drain had cut, counted by who claims their event next.",
            )?,
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
            handler_timeout_used: new.histogram(
                "handler_timeout_used_ratio",
                "Handler call to verdict, as a share of the call's timeout.",
                TIMEOUT_SHARES,
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

    /// A gauge that was never set must read 0, not be absent: alerts on absent series are silent.
    fn start_at_zero(&self) {
        for reason in Reason::ALL {
            self.quarantined_events.with_label_values(&[reason.as_str()]);
        }
        for reason in labels::PAUSES {
            self.intake_paused.with_label_values(&[reason]);
        }
    }
}
