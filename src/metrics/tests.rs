//! Names, types, labels and buckets: what the code exports is what the documentation says.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::MetricType;

use super::*;
use crate::config::ranges::{Range, range};

/// A series: its name, and its labels with their values.
type Series = (String, BTreeMap<String, String>);

/// Every labelled counter's series, with its value.
fn counters(metrics: &Metrics) -> BTreeMap<Series, f64> {
    let families = metrics.registry().gather();
    let families = families.into_iter().filter(|family| family.get_field_type() == MetricType::COUNTER);
    let mut found = BTreeMap::new();
    for family in families.filter(|family| family.name().starts_with("bellhop_")) {
        for metric in family.get_metric() {
            let labels = metric.get_label().iter().map(|label| (label.name().to_owned(), label.value().to_owned()));
            let value = metric.get_counter().get_value();
            found.insert((family.name().to_owned(), labels.collect()), value);
        }
    }
    found
}

/// Counter series that came about while `metrics` was in use: each is a label value that nobody declared.
pub(crate) fn undeclared(metrics: &Metrics) -> BTreeSet<Series> {
    let declared = counters(&Metrics::new().unwrap());
    counters(metrics).into_keys().filter(|series| !declared.contains_key(series)).collect()
}

/// The rows of the metrics table: name, type, labels.
fn documented() -> BTreeSet<(String, String, String)> {
    include_str!("../../docs/OPERATIONS.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| `bellhop_"))
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            (format!("bellhop_{}", cells[0].trim_end_matches('`')), cells[1].to_owned(), cells[2].to_owned())
        })
        .collect()
}

/// Makes one series of every collector that has none at the start, so that the registry shows it.
fn touch(metrics: &Metrics) {
    metrics.source_up.with_label_values(&["pubsub"]);
    metrics.store_info.with_label_values(&["memory"]);
    metrics.db_query_duration.with_label_values(&["claim", "ok"]);
    metrics.db_batch_items.with_label_values(&["enter"]);
    metrics.db_acquire_duration.with_label_values(&["work"]);
    metrics.db_pool_connections.with_label_values(&["work", "idle"]);
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

#[test]
fn every_counter_is_at_zero_from_the_start_for_every_value_of_its_labels() {
    let fresh = counters(&Metrics::new().unwrap());

    let shown: BTreeSet<_> = fresh.keys().map(|(name, _)| name.clone()).collect();
    let expected: BTreeSet<_> =
        documented().into_iter().filter(|(_, kind, _)| kind == "counter").map(|(name, ..)| name).collect();
    assert_eq!(shown, expected);
    assert_eq!(fresh.values().find(|value| **value > 0.0), None);

    for name in expected {
        let series: Vec<_> = fresh.keys().filter(|(of, _)| *of == name).map(|(_, labels)| labels).collect();
        let values = |label: &String| series.iter().map(|labels| &labels[label]).collect::<BTreeSet<_>>().len();
        let product: usize = series[0].keys().map(values).product();
        // What a request can come to depends on the request.
        let expected = if name == "bellhop_pubsub_requests_total" { 43 } else { product };
        assert_eq!(series.len(), expected, "{name}");
        assert!(series[0].is_empty() || series.len() > 1, "{name} has one series: {series:?}");
    }
}

#[test]
fn the_number_of_series_at_the_start_is_modest() {
    let fresh = counters(&Metrics::new().unwrap()).len();

    assert!(fresh < 600, "{fresh} series");
}

#[test]
fn no_handler_can_run_for_longer_than_the_histogram_reaches() {
    for key in ["handler.timeout", "rule[].timeout"] {
        let Some(Range::Time(_, longest)) = range(key) else { panic!("{key} has no limits") };

        assert!(HANDLER_SECONDS.iter().any(|edge| *edge >= longest.as_secs_f64()), "{key} allows {longest:?}");
    }
}
