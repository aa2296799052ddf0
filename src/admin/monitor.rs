//! `mntr`: all gauges and metrics.

use std::fmt::Write;

use super::{LeaderInfo, Mode, Status, version};
use crate::metrics::{Registry, Value};

/// Lines `zk_<name>`, tab, value: version, state, gauges, then the registry's dump; all in Java's order.
///
/// * `metrics`: `None` with `NullMetricsProvider`: version and state alone are shown.
///
/// Source: `MonitorCommand`, `ZooKeeperServer.dumpMonitorValues` and `registerMetrics`, 3.9.5.
pub(super) fn render(metrics: Option<&Registry>, status: &Status) -> String {
    let mut text = String::with_capacity(16 << 10);
    // Writing to a string can't fail.
    _ = writeln!(text, "zk_version\t{}", version());
    _ = writeln!(text, "zk_server_state\t{}", status.mode.name());
    if let Some(member) = &status.member {
        _ = writeln!(text, "zk_peer_state\t{}", status.mode.peer_state());
        if let Some(leader) = member.leader.filter(|_| status.mode == Mode::Observer) {
            _ = writeln!(text, "zk_observer_master_id\t{leader}");
        }
    }
    let Some(metrics) = metrics else { return text };
    let mut line = |name: &str, value: Value| {
        _ = match value {
            Value::Integer(value) => writeln!(text, "zk_{name}\t{value}"),
            Value::Float(value) => writeln!(text, "zk_{name}\t{}", java_double(value)),
        };
    };
    gauges(metrics, status, &mut line);
    for (name, values) in &status.quotas {
        for (namespace, value) in values {
            line(&format!("{namespace}_{name}"), Value::Integer(*value));
        }
    }
    metrics.dump(status.mode.queues(), &mut line);
    text
}

fn gauges(metrics: &Registry, status: &Status, line: &mut dyn FnMut(&str, Value)) {
    let count = |count: u64| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    let latency = metrics.request_latency.values();
    let sizes = metrics.client_response_size.values();
    let proposals = metrics.proposal_size.values();
    let leader = |figure: fn(&LeaderInfo) -> u64| status.leader.as_ref().map(figure).map(count);
    let proposal = |size: i64| status.leader.map(|_| Value::Integer(size));
    let quorum_size =
        status.member.as_ref().map(|member| count(member.view.voters().count() as u64));
    let gauges = [
        ("ephemerals_count", Some(count(status.ephemerals_count))),
        ("num_alive_connections", Some(count(status.connection_count))),
        ("avg_latency", Some(Value::Float(latency.avg))),
        ("min_proposal_size", proposal(proposals.min)),
        ("outstanding_requests", Some(count(status.outstanding_requests))),
        ("znode_count", Some(count(status.node_count))),
        ("global_sessions", Some(count(status.global_sessions))),
        // Connections to a client port where TLS is none, or not all, of what is spoken.
        ("non_mtls_remote_conn_count", Some(count(metrics.tls.non_mtls_remote.get()))),
        ("last_client_response_size", Some(Value::Integer(sizes.last))),
        ("packets_sent", Some(count(metrics.packets_sent.get()))),
        ("packets_received", Some(count(metrics.packets_received.get()))),
        ("max_proposal_size", proposal(proposals.max)),
        ("max_client_response_size", Some(Value::Integer(sizes.max))),
        ("synced_followers", leader(|leader| leader.followers)),
        ("connection_drop_probability", Some(Value::Float(status.connection_drop_chance))),
        ("watch_count", Some(count(status.watch_count))),
        ("synced_non_voting_followers", leader(|leader| leader.non_voting_followers)),
        ("synced_observers", leader(|leader| leader.observers)),
        // Handshakes and client certificates refused: Java counts no other failed authentication here.
        ("auth_failed_count", Some(count(metrics.tls.auth_failed.get()))),
        ("min_latency", Some(Value::Integer(latency.min))),
        ("max_file_descriptor_count", status.max_file_descriptors.map(count)),
        ("approximate_data_size", Some(count(status.approximate_data_size_bytes))),
        ("open_file_descriptor_count", status.open_file_descriptors.map(count)),
        ("last_proposal_size", proposal(proposals.last)),
        ("pending_syncs", leader(|leader| leader.pending_syncs)),
        ("leader_uptime", leader(|leader| leader.uptime_ms)),
        // Sessions that only this member of the ensemble knows.
        ("local_sessions", Some(count(status.local_sessions))),
        ("uptime", Some(count(status.uptime_ms))),
        ("max_latency", Some(Value::Integer(latency.max))),
        ("outstanding_tls_handshake", Some(count(metrics.tls.handshakes_under_way()))),
        ("learners", leader(|leader| leader.learners)),
        ("min_client_response_size", Some(Value::Integer(sizes.min))),
        ("non_mtls_local_conn_count", Some(count(metrics.tls.non_mtls_local.get()))),
        ("quorum_size", quorum_size),
    ];
    for (name, value) in gauges {
        if let Some(value) = value {
            line(name, value);
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
    use crate::admin::MemberInfo;

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

    // rows: M-21 M-22 M-23
    #[test]
    fn mntr_of_each_role_has_the_keys_that_java_has() {
        let config = "server.1=a:1:2\nserver.2=a:3:4\nserver.3=a:5:6\nserver.4=a:7:8:observer\n";
        let view = crate::model::View::parse(config).unwrap();
        let id = crate::model::ServerId;
        let leader = LeaderInfo { learners: 3, followers: 2, observers: 1, ..Default::default() };
        // A line of the file: a role, and the keys before the counters of a 3.9.5 server in that role, in its order.
        for line in include_str!("../../compat-tests/golden/words/mntr-roles.txt").lines() {
            let (role, keys) = line.split_once(' ').unwrap();
            let mode = match role {
                "leader" => Mode::Leader,
                "follower" => Mode::Follower,
                _ => Mode::Observer,
            };
            let leads = mode == Mode::Leader;
            let status = Status {
                mode,
                member: Some(MemberInfo {
                    id: id(1),
                    view: view.clone(),
                    leader: (!leads).then_some(id(2)),
                }),
                leader: leads.then_some(leader),
                open_file_descriptors: Some(7),
                max_file_descriptors: Some(7),
                ..Status::default()
            };
            let text = render(Some(&Registry::default()), &status);
            let ours: Vec<&str> =
                text.lines().map(|line| line.split_once('\t').unwrap().0).collect();
            let java: Vec<&str> = keys.split(' ').collect();
            assert_eq!(ours[..java.len()], java, "{role}");
            assert_eq!(ours[java.len()], "zk_watch_bytes", "{role}: the first counter");
            assert!(text.contains("\nzk_quorum_size\t3\n"));
            assert_eq!(text.contains("\nzk_synced_followers\t2\n"), leads);
            assert_eq!(text.contains("\nzk_synced_observers\t1\n"), leads);
            assert_eq!(text.contains("\nzk_observer_master_id\t2\n"), mode == Mode::Observer);
        }
    }

    // rows: M-36 M-37
    #[test]
    fn mntr_has_javas_keys_in_its_order() {
        // Names from a fresh 3.9.5 server.
        let java: Vec<&str> =
            include_str!("../../compat-tests/golden/words/mntr-keys.txt").lines().collect();
        let known = Some(7);
        let status = Status {
            node_count: 5,
            open_file_descriptors: known,
            max_file_descriptors: known,
            ..Status::default()
        };
        let text = render(Some(&Registry::default()), &status);
        let ours: Vec<&str> = text.lines().map(|line| line.split_once('\t').unwrap().0).collect();
        assert_eq!(ours, java);
        assert!(
            text.starts_with(&format!("zk_version\t{}\nzk_server_state\tstandalone\n", version()))
        );
        assert!(text.contains("\nzk_znode_count\t5\n") && text.contains("\nzk_avg_latency\t0.0\n"));
        assert!(text.contains("\nzk_open_file_descriptor_count\t7\n"));
        assert!(text.contains("\nzk_last_client_response_size\t-1\n"), "none was sent");
        let unlimited = render(Some(&Registry::default()), &Status::default());
        assert!(!unlimited.contains("file_descriptor"));
        let none = render(None, &status);
        assert_eq!(none, format!("zk_version\t{}\nzk_server_state\tstandalone\n", version()));
    }
}
