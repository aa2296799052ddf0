//! `mntr`: all gauges and metrics.

use std::fmt::Write;

use super::gauges::gauges;
use super::http::Metrics;
use super::numbers::java_double;
use super::{Mode, Status, version};
use crate::config::Provider;
use crate::metrics::{Registry, Value};

/// Lines `zk_<name>`, tab, value: version, state, gauges, then the registry's dump; all in Java's order.
///
/// With `NullMetricsProvider` version and state alone are shown, with that of Prometheus every sample of a scrape.
///
/// Source: `MonitorCommand`, `ZooKeeperServer.dumpMonitorValues` and `registerMetrics`, 3.9.5.
pub(super) fn render(provider: Provider, metrics: &Registry, status: &Status) -> String {
    let mut text = String::with_capacity(16 << 10);
    each(provider, metrics, status, &mut |name, figure| {
        // Writing to a string can't fail.
        _ = match figure {
            Figure::Text(value) => writeln!(text, "zk_{name}\t{value}"),
            Figure::Number(Value::Integer(value)) => writeln!(text, "zk_{name}\t{value}"),
            Figure::Number(Value::Float(value)) => {
                writeln!(text, "zk_{name}\t{}", java_double(value))
            }
        };
    });
    text
}

/// A value of `mntr`.
pub(super) enum Figure<'a> {
    Text(&'a str),
    Number(Value),
}

/// Gives every value to `sink` under its name without prefix; see [`render`].
pub(super) fn each(
    provider: Provider,
    metrics: &Registry,
    status: &Status,
    sink: &mut dyn FnMut(&str, Figure<'_>),
) {
    sink("version", Figure::Text(&version()));
    sink("server_state", Figure::Text(status.mode.name()));
    if let Some(member) = &status.member {
        sink("peer_state", Figure::Text(status.mode.peer_state()));
        if let Some(leader) = member.leader.filter(|_| status.mode == Mode::Observer) {
            sink("observer_master_id", Figure::Number(Value::Integer(leader.0)));
        }
    }
    if provider == Provider::Null {
        return;
    }
    let mut line = |name: &str, value: Value| sink(name, Figure::Number(value));
    if provider == Provider::Prometheus {
        Metrics::of(metrics, status).each(&mut |name, value| line(name, Value::Float(value)));
        return;
    }
    gauges(metrics, status, &mut line);
    for (name, values) in &status.quotas {
        for (namespace, value) in values {
            line(&format!("{namespace}_{name}"), Value::Integer(*value));
        }
    }
    metrics.dump(status.mode.queues(), &mut line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{LeaderInfo, MemberInfo};

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
            let text = render(Provider::Default, &Registry::default(), &status);
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
        let text = render(Provider::Default, &Registry::default(), &status);
        let ours: Vec<&str> = text.lines().map(|line| line.split_once('\t').unwrap().0).collect();
        assert_eq!(ours, java);
        assert!(
            text.starts_with(&format!("zk_version\t{}\nzk_server_state\tstandalone\n", version()))
        );
        assert!(text.contains("\nzk_znode_count\t5\n") && text.contains("\nzk_avg_latency\t0.0\n"));
        assert!(text.contains("\nzk_open_file_descriptor_count\t7\n"));
        assert!(text.contains("\nzk_last_client_response_size\t-1\n"), "none was sent");
        let unlimited = render(Provider::Default, &Registry::default(), &Status::default());
        assert!(!unlimited.contains("file_descriptor"));
        let none = render(Provider::Null, &Registry::default(), &status);
        assert_eq!(none, format!("zk_version\t{}\nzk_server_state\tstandalone\n", version()));
    }
}
