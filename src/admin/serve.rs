//! `srvr`, `stat` and `isro`.

use std::fmt::Write;

use super::numbers::java_double;
use super::{Mode, Status, version};
use crate::metrics::Registry;

/// The first lines; `stat` lists connections after them.
///
/// Source: `StatCommand` and `ServerStats.toString`, ZooKeeper 3.9.5.
pub(super) fn head(status: &Status) -> String {
    let mut text = format!("Zookeeper version: {}\n", version());
    if status.mode == Mode::ReadOnly {
        text.push_str("READ-ONLY mode; serving only read-only clients\n");
    }
    text
}

/// The lines after the first ones, and after the connections of `stat`.
pub(super) fn figures(metrics: &Registry, status: &Status) -> String {
    let mut text = String::new();
    let latency = metrics.request_latency.values();
    // Writing to a string can't fail.
    _ = write!(
        text,
        "Latency min/avg/max: {}/{}/{}\n\
         Received: {}\nSent: {}\nConnections: {}\nOutstanding: {}\n\
         Zxid: {}\nMode: {}\nNode count: {}\n",
        latency.min,
        java_double(latency.avg),
        latency.max,
        metrics.packets_received.get(),
        metrics.packets_sent.get(),
        status.connection_count,
        status.outstanding_requests,
        status.zxid,
        status.mode.name(),
        status.node_count,
    );
    if status.mode == Mode::Leader {
        let sizes = metrics.proposal_size.values();
        let (last, min, max) = (sizes.last, sizes.min, sizes.max);
        _ = writeln!(text, "Proposal sizes last/min/max: {last}/{min}/{max}");
    }
    text
}

/// The answer to `isro`, which clients that accept a read-only server send before they connect.
pub(super) fn read_only_or_not(mode: Mode) -> &'static str {
    if mode == Mode::ReadOnly { "ro" } else { "rw" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Zxid;

    fn srvr(metrics: &Registry, status: &Status) -> String {
        head(status) + &figures(metrics, status)
    }

    fn sample() -> (Registry, Status) {
        let metrics = Registry::default();
        [12, 7, 1].into_iter().for_each(|latency_ms| metrics.request_latency.record(latency_ms));
        metrics.packets_received.add(6);
        metrics.packets_sent.add(5);
        let zxid = Zxid::from_wire(0x1_0000_000a).unwrap();
        let (connection_count, node_count) = (1, 5);
        let serving = true;
        let status = Status { serving, zxid, connection_count, node_count, ..Status::default() };
        (metrics, status)
    }

    /// The lines after the version in a Java server's answer, with these numbers.
    const SRVR: &str = "\
Latency min/avg/max: 1/6.6667/12
Received: 6
Sent: 5
Connections: 1
Outstanding: 0
Zxid: 0x10000000a
Mode: standalone
Node count: 5
";

    // rows: W-20
    #[test]
    fn srvr_is_printed_as_in_java() {
        let (metrics, mut status) = sample();
        let text = srvr(&metrics, &status);
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with("Zookeeper version: 3.9.5-oxkeeper."), "{first}");
        assert!(first.contains(", built on "), "{first}");
        assert_eq!(rest, SRVR);
        status.mode = Mode::ReadOnly;
        let text = srvr(&metrics, &status);
        let second = text.lines().nth(1).unwrap();
        assert_eq!(second, "READ-ONLY mode; serving only read-only clients");
        assert!(text.contains("\nMode: read-only\n"));
        assert_eq!(read_only_or_not(status.mode), "ro");
    }

    // rows: W-20
    #[test]
    fn srvr_of_a_leader_ends_with_proposal_sizes() {
        let (metrics, mut status) = sample();
        let last_line =
            |status: &Status| srvr(&metrics, status).lines().last().map(str::to_owned).unwrap();
        for mode in [Mode::Follower, Mode::Observer] {
            status.mode = mode;
            assert_eq!(last_line(&status), "Node count: 5", "{mode:?}");
        }
        status.mode = Mode::Leader;
        assert_eq!(last_line(&status), "Proposal sizes last/min/max: -1/-1/-1", "none was made");
        for (size, at_us) in [(90, 1), (48, 2)] {
            let seen = crate::metrics::SizeValues { last: size, min: size, max: size };
            metrics.proposal_size.record(seen, at_us);
        }
        assert_eq!(last_line(&status), "Proposal sizes last/min/max: 48/48/90");
        assert!(srvr(&metrics, &status).contains("\nMode: leader\n"));
    }
}
