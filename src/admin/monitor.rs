//! `mntr`: every number there is.

use std::fmt::Write;

use super::{Status, version};
use crate::metrics::{Registry, Value};

/// Lines `zk_<name>`, tab, value: version, state, gauges, then the registry's dump.
///
/// Java prints each group in the order of its hash table; readers go by name.
///
/// Source: `MonitorCommand`, `ZooKeeperServer.dumpMonitorValues` and `registerMetrics`, 3.9.5.
pub(super) fn render(metrics: &Registry, status: &Status) -> String {
    let mut text = String::with_capacity(8 << 10);
    // A string never refuses.
    _ = writeln!(text, "zk_version\t{}", version());
    _ = writeln!(text, "zk_server_state\t{}", status.mode.name());
    let mut line = |name: &str, value: Value| {
        _ = match value {
            Value::Integer(value) => writeln!(text, "zk_{name}\t{value}"),
            Value::Float(value) => writeln!(text, "zk_{name}\t{}", java_double(value)),
        };
    };
    gauges(metrics, status, &mut line);
    metrics.dump(&mut line);
    text
}

fn gauges(metrics: &Registry, status: &Status, line: &mut dyn FnMut(&str, Value)) {
    let latency = metrics.request_latency.values();
    line("avg_latency", Value::Float(latency.avg));
    line("max_latency", Value::Integer(latency.max));
    line("min_latency", Value::Integer(latency.min));
    let counts = [
        ("packets_received", Some(metrics.packets_received.get())),
        ("packets_sent", Some(metrics.packets_sent.get())),
        ("num_alive_connections", Some(status.connection_count)),
        ("outstanding_requests", Some(status.outstanding_requests)),
        ("uptime", Some(status.uptime_ms)),
        ("znode_count", Some(status.node_count)),
        ("watch_count", Some(status.watch_count)),
        ("ephemerals_count", Some(status.ephemerals_count)),
        ("approximate_data_size", Some(status.approximate_data_size_bytes)),
        ("global_sessions", Some(status.global_sessions)),
        ("local_sessions", Some(status.local_sessions)),
        ("open_file_descriptor_count", status.open_file_descriptors),
        ("max_file_descriptor_count", status.max_file_descriptors),
        ("auth_failed_count", Some(metrics.auth_failed_count.get())),
    ];
    for (name, count) in counts {
        if let Some(count) = count {
            line(name, Value::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
        }
    }
}

/// A double as Java's `Double.toString` prints it: at least one decimal, and an exponent outside
/// of 0.001 up to 10,000,000.
pub(super) fn java_double(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) || !value.is_finite() {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    format!("{digits}{point}E{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn doubles_are_printed_as_java_does() {
        let cases = [
            (0.0, "0.0"),
            (6.6667, "6.6667"),
            (78.0, "78.0"),
            (9_999_999.5, "9999999.5"),
            (1e7, "1.0E7"),
            (12_345_678.25, "1.234567825E7"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (-2.5, "-2.5"),
        ];
        for (value, expected) in cases {
            assert_eq!(java_double(value), expected);
        }
    }

    // rows: W-25 M-36 M-37
    #[test]
    fn every_line_is_one_that_java_has() {
        // Names from a 3.9.5 server with one session, those per namespace left out.
        let java: BTreeSet<&str> =
            include_str!("../../compat-tests/golden/words/mntr-keys.txt").lines().collect();
        let known = Some(7);
        let status = Status {
            node_count: 5,
            open_file_descriptors: known,
            max_file_descriptors: known,
            ..Status::default()
        };
        let text = render(&Registry::default(), &status);
        let mut ours = BTreeSet::new();
        for line in text.lines() {
            let (key, _) = line.split_once('\t').unwrap();
            assert!(java.contains(key), "{key}");
            assert!(ours.insert(key), "{key} twice");
        }
        for key in ["server_state", "znode_count", "watch_count", "ephemerals_count"] {
            assert!(ours.contains(format!("zk_{key}").as_str()), "{key}");
        }
        assert!(
            text.starts_with(&format!("zk_version\t{}\nzk_server_state\tstandalone\n", version()))
        );
        assert!(text.contains("\nzk_znode_count\t5\n") && text.contains("\nzk_avg_latency\t0.0\n"));
        assert!(text.contains("\nzk_open_file_descriptor_count\t7\n"));
        assert!(!render(&Registry::default(), &Status::default()).contains("file_descriptor"));
    }
}
