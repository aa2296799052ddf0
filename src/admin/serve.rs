//! `srvr` and `stat`: the server in a few lines; `isro`.

use std::fmt::Write;

use super::monitor::java_double;
use super::{Mode, Status, connections, version};
use crate::metrics::Registry;

/// * `clients`: whether connections are listed after the version, as `stat` does.
///
/// Source: `StatCommand` and `ServerStats.toString`, ZooKeeper 3.9.5.
pub(super) fn render(metrics: &Registry, status: &Status, clients: bool) -> String {
    let mut text = format!("Zookeeper version: {}\n", version());
    if status.mode == Mode::ReadOnly {
        text.push_str("READ-ONLY mode; serving only read-only clients\n");
    }
    if clients {
        text.push_str("Clients:\n");
        for connection in &status.connections {
            text.push_str(&connections::render(connection, true));
            text.push('\n');
        }
        text.push('\n');
    }
    let latency = metrics.request_latency.values();
    // A string never refuses.
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

/// The answer to `isro`, which read-only clients ask before they try a server.
pub(super) fn read_only_or_not(mode: Mode) -> &'static str {
    if mode == Mode::ReadOnly { "ro" } else { "rw" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::ConnectionInfo;
    use crate::model::Zxid;

    fn sample() -> (Registry, Status) {
        let metrics = Registry::default();
        [12, 7, 1].into_iter().for_each(|latency_ms| metrics.request_latency.record(latency_ms));
        metrics.packets_received.add(6);
        metrics.packets_sent.add(5);
        let connections = vec![ConnectionInfo {
            remote: "127.0.0.1:53682".parse().unwrap(),
            reads: true,
            writes: false,
            outstanding: 0,
            received: 3,
            sent: 3,
            session: None,
        }];
        let zxid = Zxid::from_wire(0x1_0000_000a).unwrap();
        let (connection_count, node_count) = (1, 5);
        let serving = true;
        let status = Status {
            serving,
            zxid,
            connection_count,
            node_count,
            connections,
            ..Status::default()
        };
        (metrics, status)
    }

    /// What follows the version line in a Java server's answer, with these numbers.
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
    fn srvr_is_javas() {
        let (metrics, mut status) = sample();
        let text = render(&metrics, &status, false);
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with("Zookeeper version: 3.9.5-oxkeeper."), "{first}");
        assert!(first.contains(", built on "), "{first}");
        assert_eq!(rest, SRVR);
        status.mode = Mode::ReadOnly;
        let text = render(&metrics, &status, false);
        let second = text.lines().nth(1).unwrap();
        assert_eq!(second, "READ-ONLY mode; serving only read-only clients");
        assert!(text.contains("\nMode: read-only\n"));
        assert_eq!(read_only_or_not(status.mode), "ro");
    }

    // rows: W-20
    #[test]
    fn a_leader_tells_how_large_its_proposals_are() {
        let (metrics, mut status) = sample();
        let last_line = |status: &Status| {
            render(&metrics, status, false).lines().last().map(str::to_owned).unwrap()
        };
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
        assert!(render(&metrics, &status, true).contains("\nMode: leader\n"));
    }

    // rows: W-21
    #[test]
    fn stat_lists_clients_first() {
        let (metrics, status) = sample();
        let text = render(&metrics, &status, true);
        let (_, rest) = text.split_once('\n').unwrap();
        let clients = "Clients:\n /127.0.0.1:53682[1](queued=0,recved=3,sent=3)\n\n";
        assert_eq!(rest, format!("{clients}{SRVR}"));
    }
}
