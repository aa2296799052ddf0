//! The metrics as the provider of Prometheus has them.

use super::counter::Counter;
use super::names;
use super::percentiles::Percentiles;
use super::registry::{Queues, Registry};
use super::summary::Summary;

/// A metric with its values since the start, and those of the last minutes.
#[derive(Clone, Debug, PartialEq)]
pub enum Family {
    Counter(u64),
    /// A counter for each key.
    CounterSet(Vec<(Box<str>, u64)>),
    Summary {
        count: u64,
        sum: i64,
        quantiles: Vec<(&'static str, f64)>,
    },
    SummarySet {
        values: Vec<SetValues>,
        quantiles: &'static [&'static str],
    },
}

/// The samples of one key; their sum and number since the start, and the median of the last minutes.
#[derive(Clone, Debug, PartialEq)]
pub struct SetValues {
    pub key: Box<str>,
    pub count: u64,
    pub sum: i64,
    pub median: f64,
}

impl Registry {
    /// Gives every metric to `sink`, as the provider of Prometheus has it.
    ///
    /// * `queues`: as for [`Self::dump`].
    pub fn families(&self, queues: Queues, sink: &mut dyn FnMut(&str, Family)) {
        let reads = self.reads_in_role();
        for name in names::COUNTERS {
            let counted = self.counter(name).map_or(0, Counter::get);
            let takes_all = queues.names().contains(name);
            let all = if takes_all { counted.wrapping_add(reads) } else { counted };
            sink(name, Family::Counter(all));
        }
        for (name, set) in self.counter_sets() {
            let values = set.values().into_iter().map(|(key, values)| (key, values.count));
            sink(name, Family::CounterSet(values.collect()));
        }
        for name in names::SUMMARIES {
            sink(name, family(self.summary(name), &MEDIAN));
        }
        for name in names::PERCENTILES {
            sink(name, family(self.percentiles(name).map(Percentiles::summary), &RANKS));
        }
        for (name, set) in self.sets() {
            let medians = set.medians();
            let values = set.values().into_iter().map(|(key, values)| {
                let median = medians.get(&key).copied().unwrap_or(f64::NAN);
                SetValues { key, count: values.count, sum: values.sum, median }
            });
            sink(name, Family::SummarySet { values: values.collect(), quantiles: &["0.5"] });
        }
        for (name, quantiles) in LEARNERS_QUEUES {
            sink(name, Family::SummarySet { values: Vec::new(), quantiles });
        }
    }

    /// What `srst` resets with the provider of Prometheus: metrics go on.
    pub fn reset_stats(&self) {
        self.request_latency.reset();
        self.packets_received.reset();
        self.packets_sent.reset();
        self.client_response_size.reset();
    }
}

/// Quantiles of a summary, and of one with percentiles.
///
/// Source: `PrometheusMetricsProvider`, ZooKeeper 3.9.5.
const MEDIAN: [(&str, f64); 1] = [("0.5", 0.5)];
const RANKS: [(&str, f64); 3] = [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99)];

/// Java's figures of queues between a leader and its learners; there are no such queues.
const LEARNERS_QUEUES: [(&str, &[&str]); 3] = [
    ("ack_latency", &["0.5", "0.9", "0.99"]),
    ("learner_handler_qp_size", &["0.5"]),
    ("learner_handler_qp_time_ms", &["0.5", "0.9", "0.99"]),
];

/// * `summary`: `None`: nothing is ever recorded.
fn family<const N: usize>(
    summary: Option<&Summary>,
    quantiles: &[(&'static str, f64); N],
) -> Family {
    let values = summary.map(Summary::values).unwrap_or_default();
    let at = quantiles.map(|(_, quantile)| quantile);
    let found = summary.map_or([f64::NAN; N], |summary| summary.window().quantiles(at));
    let quantiles = quantiles.iter().zip(found).map(|((name, _), found)| (*name, found));
    Family::Summary { count: values.count, sum: values.sum, quantiles: quantiles.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: M-42 M-46
    #[test]
    fn every_metric_of_java_is_one_family() {
        let registry = Registry::default();
        registry.commit_count.add(3);
        registry.fsynctime.record(5);
        let mut found = std::collections::BTreeMap::new();
        registry.families(Queues::OfStandalone, &mut |name, family| {
            assert!(found.insert(name.to_owned(), family).is_none(), "{name} twice");
        });
        assert_eq!(found["commit_count"], Family::Counter(3));
        let Family::Summary { count: 1, sum: 5, quantiles } = &found["fsynctime"] else { panic!() };
        assert_eq!(quantiles.len(), 1);
        let Family::Summary { quantiles, .. } = &found["readlatency"] else { panic!() };
        let names: Vec<&str> = quantiles.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["0.5", "0.9", "0.99"]);
    }
}
