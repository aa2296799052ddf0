//! Metrics in the text format of Prometheus, as ZooKeeper's provider writes them.

use super::super::gauges::gauges;
use super::super::numbers::java_double;
use super::super::status::{ProcessInfo, Status};
use crate::metrics::{Family, Registry, SetValues, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A metric with its samples.
struct Metric {
    help: String,
    kind: &'static str,
    samples: Vec<Sample>,
}

pub(super) struct Sample {
    /// Name of the metric with its suffix.
    name: String,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// Every metric by its name.
pub struct Metrics(BTreeMap<String, Metric>);

impl Metrics {
    pub fn of(metrics: &Registry, status: &Status) -> Self {
        let mut all = Self(BTreeMap::new());
        if status.serving {
            gauges(metrics, status, &mut |name, value| {
                let value = match value {
                    Value::Integer(value) => value as f64,
                    Value::Float(value) => value,
                };
                all.put(name, name, "gauge", vec![sample(name, vec![], value)]);
            });
            for (name, values) in &status.quotas {
                let samples = values
                    .iter()
                    .map(|(key, value)| sample(name, vec![("key", key.clone())], *value as f64));
                all.put(name, name, "gauge", samples.collect());
            }
        }
        metrics.families(status.mode.queues(), &mut |name, family| all.put_family(name, family));
        if let Some(process) = &status.process {
            all.put_process(process);
        }
        all.put_own(metrics, status);
        all
    }

    pub(super) fn put(&mut self, name: &str, help: &str, kind: &'static str, samples: Vec<Sample>) {
        self.0.insert(name.to_owned(), Metric { help: help.to_owned(), kind, samples });
    }

    fn put_family(&mut self, name: &str, family: Family) {
        let (kind, samples) = match family {
            Family::Counter(value) => ("counter", vec![sample(name, vec![], value as f64)]),
            Family::CounterSet(values) => {
                let samples = values.into_iter().map(|(key, value)| {
                    sample(name, vec![("key", key.into_string())], value as f64)
                });
                ("counter", samples.collect())
            }
            Family::Summary { count, sum, quantiles } => {
                let samples = quantiles.into_iter().map(|(quantile, value)| {
                    sample(name, vec![("quantile", quantile.to_owned())], value)
                });
                let mut samples: Vec<Sample> = samples.collect();
                samples.push(sample(&format!("{name}_count"), vec![], count as f64));
                samples.push(sample(&format!("{name}_sum"), vec![], sum as f64));
                ("summary", samples)
            }
            Family::SummarySet { values, quantiles } => {
                let mut samples = Vec::new();
                for SetValues { key, count, sum, median } in values {
                    let key = || ("key", key.to_string());
                    for quantile in quantiles {
                        let labels = vec![key(), ("quantile", (*quantile).to_owned())];
                        samples.push(sample(name, labels, median));
                    }
                    samples.push(sample(&format!("{name}_count"), vec![key()], count as f64));
                    samples.push(sample(&format!("{name}_sum"), vec![key()], sum as f64));
                }
                ("summary", samples)
            }
        };
        self.put(name, name, kind, samples);
    }

    /// Source: `StandardExports`, simpleclient 0.9.0.
    fn put_process(&mut self, process: &ProcessInfo) {
        let facts = [
            (
                "process_cpu_seconds_total",
                "Total user and system CPU time spent in seconds.",
                process.cpu_seconds,
            ),
            (
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                process.start_seconds,
            ),
            ("process_open_fds", "Number of open file descriptors.", process.open_files),
            ("process_max_fds", "Maximum number of open file descriptors.", process.files_max),
            (
                "process_virtual_memory_bytes",
                "Virtual memory size in bytes.",
                process.virtual_bytes,
            ),
            (
                "process_resident_memory_bytes",
                "Resident memory size in bytes.",
                process.resident_bytes,
            ),
        ];
        for (name, help, value) in facts {
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            self.put(name, help, kind, vec![sample(name, vec![], value)]);
        }
    }

    /// Every sample under its name with its labels, as `mntr` and `monitor` show it.
    pub fn each(&self, sink: &mut dyn FnMut(&str, f64)) {
        for sample in self.0.values().flat_map(|metric| &metric.samples) {
            let labels: Vec<String> =
                sample.labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
            match labels.is_empty() {
                true => sink(&sample.name, sample.value),
                false => sink(&format!("{}{{{}}}", sample.name, labels.join(",")), sample.value),
            }
        }
    }

    /// What a scrape is answered.
    ///
    /// * `names`: of samples; empty: all.
    pub(super) fn text(&self, names: &[String]) -> String {
        let mut text = String::with_capacity(32 << 10);
        for (name, metric) in &self.0 {
            let is_asked = |sample: &&Sample| names.is_empty() || names.contains(&sample.name);
            let mut samples = metric.samples.iter().filter(is_asked).peekable();
            if samples.peek().is_none() && !names.is_empty() {
                continue;
            }
            // Writing to a string can't fail.
            _ = write!(text, "# HELP {name} {}\n# TYPE {name} {}\n", metric.help, metric.kind);
            samples.for_each(|sample| put_sample(sample, &mut text));
        }
        text
    }
}

pub(super) fn sample(name: &str, labels: Vec<(&'static str, String)>, value: f64) -> Sample {
    Sample { name: name.to_owned(), labels, value }
}

/// Source: `TextFormat.write004`, simpleclient 0.9.0: each label has a comma after it.
fn put_sample(sample: &Sample, to: &mut String) {
    to.push_str(&sample.name);
    if !sample.labels.is_empty() {
        to.push('{');
        for (key, value) in &sample.labels {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            _ = write!(to, "{key}=\"{value}\",");
        }
        to.push('}');
    }
    _ = writeln!(to, " {}", java_double(sample.value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Samples;

    fn scraped(names: &[&str]) -> String {
        let registry = Registry::default();
        registry.bytes_received_count.add(52_428_800);
        registry.fsynctime.record(5);
        let one = Samples { count: 1, sum: 9, min: 9, max: 9 };
        registry.read_per_namespace.record("a\"b\\\n", &one);
        let status = Status { serving: true, node_count: 5, ..Status::default() };
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        Metrics::of(&registry, &status).text(&names)
    }

    // rows: M-41 M-43 M-45
    #[test]
    fn samples_are_written_as_javas_are() {
        let text = scraped(&[]);
        for part in [
            "# HELP znode_count znode_count\n# TYPE znode_count gauge\nznode_count 5.0\n",
            "# TYPE bytes_received_count counter\nbytes_received_count 5.24288E7\n",
            // Another test of this process may keep windows.
            "# TYPE fsynctime summary\nfsynctime{quantile=\"0.5\",} ",
            "\nfsynctime_count 1.0\nfsynctime_sum 5.0\n",
            "read_per_namespace{key=\"a\\\"b\\\\\\n\",quantile=\"0.5\",} ",
            "read_per_namespace_count{key=\"a\\\"b\\\\\\n\",} 1.0\n",
            "# TYPE ack_latency summary\n# HELP add_dead",
            "oxkeeper_is_leader 0.0\n",
            "oxkeeper_role{role=\"standalone\",} 1.0\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("\nprocess_") && !text.contains("jvm_memory"), "{text}");
    }

    // rows: M-40
    #[test]
    fn scrapes_are_filtered_by_the_names_of_samples() {
        let expected =
            "# HELP fsynctime fsynctime\n# TYPE fsynctime summary\nfsynctime_count 1.0\n";
        assert_eq!(scraped(&["fsynctime_count"]), expected);
    }

    // rows: M-48
    #[test]
    fn mntr_has_samples_with_their_labels() {
        let registry = Registry::default();
        let status = Status { serving: true, ..Status::default() };
        let mut keys = Vec::new();
        Metrics::of(&registry, &status).each(&mut |key, _| keys.push(key.to_owned()));
        for key in ["fsynctime{quantile=\"0.5\"}", "fsynctime_count", "znode_count"] {
            assert!(keys.iter().any(|found| found == key), "{key}");
        }
    }
}
