//! Makes collectors and registers them under the prefix.

use prometheus::{
    Error, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, core::Collector,
};

/// Every collector made here is in the registry.
pub(super) struct Register(pub(super) Registry);

impl Register {
    fn add<C: Collector + Clone + 'static>(&self, collector: C) -> Result<C, Error> {
        self.0.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    fn opts(name: &str, help: &str) -> Opts {
        Opts::new(name, help).namespace("bellhop")
    }

    fn histogram_opts(name: &str, help: &str, buckets: &[f64]) -> HistogramOpts {
        HistogramOpts::new(name, help).namespace("bellhop").buckets(buckets.to_vec())
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.add(IntCounter::with_opts(Self::opts(name, help))?)
    }

    /// Each of `series` is there from the start: the first event of one that is born with it is invisible to `rate()`
    /// and `increase()`.
    pub(super) fn counters<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        series: impl IntoIterator<Item = [&'static str; N]>,
    ) -> Result<IntCounterVec, Error> {
        let counters = self.add(IntCounterVec::new(Self::opts(name, help), &labels)?)?;
        for values in series {
            counters.with_label_values(&values);
        }
        Ok(counters)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.add(IntGauge::with_opts(Self::opts(name, help))?)
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
        self.add(IntGaugeVec::new(Self::opts(name, help), labels)?)
    }

    pub(super) fn float(&self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.add(Gauge::with_opts(Self::opts(name, help))?)
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram, Error> {
        self.add(Histogram::with_opts(Self::histogram_opts(name, help, buckets))?)
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> Result<HistogramVec, Error> {
        self.add(HistogramVec::new(Self::histogram_opts(name, help, buckets), labels)?)
    }
}
