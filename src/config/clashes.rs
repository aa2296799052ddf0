//! Addresses in `server.N` lines that can't all be bound or reached: Java starts with them, and fails later or without a word; and ports of this server
//! that clash.

use super::SettingPlace;
use super::admin_server::AdminServer;
use super::checker::{Checker, Setting};
use super::metrics_provider::Prometheus;
use super::system_properties::SystemProperties;
use super::tls::ClientTls;
use crate::model::{Member, PeerAddress, ServerId, View};
use std::collections::BTreeMap;

/// Refuses lines without a host, and an address that two ports of servers share.
pub(super) fn check_lines(checker: &mut Checker, lines: &[(String, Setting)]) {
    let mut seen: BTreeMap<(String, u16), String> = BTreeMap::new();
    let servers = lines.iter().filter(|(key, _)| key.starts_with("server.")).count();
    for (key, Setting { raw, place, .. }) in lines {
        // Another check reports a line that can't be read.
        let Some(member) = Some(key)
            .filter(|key| key.starts_with("server."))
            .and_then(|k| Member::parse(k, raw).ok())
        else {
            continue;
        };
        // Java takes this for localhost, where no other machine finds the server.
        if 1 < servers && raw.split('|').any(|address| address.trim_start().starts_with(':')) {
            checker.problem(place, format!("{key}={raw} names no host; write one"));
            continue;
        }
        for address in &member.addresses {
            let ports =
                [("quorum port", address.quorum_port), ("election port", address.election_port)];
            for (what, port) in ports {
                let mine = format!("the {what} of {key}");
                let at = (address.host.to_lowercase(), port);
                if let Some(other) = seen.insert(at, mine.clone()) {
                    let host = &address.host;
                    let text = format!("{host}:{port} is {other} and {mine}; give each its own");
                    checker.problem(place, text);
                }
            }
        }
    }
}

/// Warns of a server whose quorum and election port are those of all other servers in reverse, as far as each has the same two.
pub(super) fn warn_of_swapped_ports(
    checker: &mut Checker,
    lines: &[(String, Setting)],
    view: &View,
) {
    let ports = |member: &Member| -> Option<(u16, u16)> {
        let [address] = member.addresses.as_slice() else { return None };
        Some((address.quorum_port, address.election_port))
    };
    for member in view.members.values() {
        let Some((quorum, election)) = ports(member) else { continue };
        let mut others = view.members.values().filter(|other| other.id != member.id);
        let key = format!("server.{}", member.id);
        let line = lines.iter().find(|(its, _)| *its == key);
        if let Some((_, Setting { place, .. })) = line
            && 2 < view.members.len()
            && others.all(|other| ports(other) == Some((election, quorum)))
        {
            let text = format!(
                "{key} has the quorum port {quorum} and the election port {election}, in reverse of all other servers; swap them if that is not meant"
            );
            checker.warn(place, text);
        }
    }
}

/// Refuses a client port that is a port of this server for other servers, and warns if it is such a port of another server on this
/// host.
///
/// * `client_host`, `client_port`: where clients are served. * `id`: this server.
pub(super) fn check_client_port(
    checker: &mut Checker,
    client_host: Option<&str>,
    client_port: Option<u16>,
    place: Option<SettingPlace>,
    view: &View,
    id: ServerId,
) {
    let Some(client_port) = client_port else { return };
    let place = place.unwrap_or_else(|| checker.whole.clone());
    let Some(own) = view.members.get(&id) else { return };
    for member in view.members.values() {
        for address in &member.addresses {
            let same = |host: &str| host.eq_ignore_ascii_case(&address.host);
            let is_here = own.addresses.iter().any(|its| same(&its.host));
            if !client_host.map_or(is_here, same) {
                continue;
            }
            for what in named_ports(address, client_port) {
                let text = format!(
                    "clientPort={client_port} is the {what} of server.{} too; give clients another port",
                    member.id
                );
                match member.id == id {
                    true => checker.problem(&place, text),
                    false => checker.warn(&place, text),
                }
            }
        }
    }
}

/// Warns if followers accept observers at a port of this server for other servers.
pub(super) fn warn_of_observer_master_port(
    checker: &mut Checker,
    port: Option<u16>,
    place: Option<&SettingPlace>,
    own: &Member,
) {
    let (Some(port), Some(place)) = (port, place) else { return };
    for what in own.addresses.iter().flat_map(|address| named_ports(address, port)) {
        let text = format!(
            "observerMasterPort={port} is the {what} of server.{} too; give observers another port",
            own.id
        );
        checker.warn(place, text);
    }
}

/// What `port` is for other servers.
fn named_ports(address: &PeerAddress, port: u16) -> impl Iterator<Item = &'static str> {
    let ports = [("quorum port", address.quorum_port), ("election port", address.election_port)];
    ports.into_iter().filter(move |&(_, its)| its == port).map(|(what, _)| what)
}

/// Where ports are set; `None`: they have their defaults.
pub(super) struct PortPlaces {
    pub observer_master: Option<SettingPlace>,
    admin: Option<SettingPlace>,
    metrics: Option<SettingPlace>,
    metrics_https: Option<SettingPlace>,
}

impl PortPlaces {
    pub fn of(checker: &Checker, system: &SystemProperties) -> Self {
        let in_file = |key: &str| checker.get(key).map(|setting| setting.place.clone());
        let flag = || system.get("zookeeper.admin.serverPort").map(|found| found.place.clone());
        Self {
            observer_master: in_file("observerMasterPort"),
            admin: in_file("admin.serverPort").or_else(flag),
            metrics: in_file("metricsProvider.httpPort"),
            metrics_https: in_file("metricsProvider.httpsPort"),
        }
    }
}

/// A port that the server listens at.
struct Port<'a> {
    name: &'static str,
    /// `None`: every address of the machine.
    host: Option<&'a str>,
    port: u16,
}

/// What listens, and where.
pub(super) struct Ports<'a> {
    pub client: (Option<&'a str>, Option<u16>),
    pub tls: Option<&'a ClientTls>,
    pub metrics: Option<&'a Prometheus>,
    pub admin: Option<&'a AdminServer>,
    /// This server's line, if it is a member.
    pub own: Option<&'a Member>,
}

/// Refuses a port for HTTP that is another port of this server too. A member serves without AdminServer, so its clash is a
/// warning.
pub(super) fn check_http_ports(checker: &mut Checker, ports: &Ports<'_>, places: &PortPlaces) {
    let mut taken: Vec<Port<'_>> = Vec::new();
    let mut take = |name, host, port: Option<u16>| {
        taken.extend(port.filter(|port| *port != 0).map(|port| Port { name, host, port }));
    };
    take("clientPort", ports.client.0, ports.client.1);
    if let Some(tls) = ports.tls {
        take("secureClientPort", tls.secure_host.as_deref(), tls.secure_port);
    }
    for address in ports.own.into_iter().flat_map(|own| &own.addresses) {
        let host = Some(&*address.host);
        take("the quorum port of this server's line", host, Some(address.quorum_port));
        take("the election port of this server's line", host, Some(address.election_port));
    }
    let mut http: Vec<(Port<'_>, &Option<SettingPlace>, bool)> = Vec::new();
    if let Some(metrics) = ports.metrics {
        let host = metrics.host.as_deref();
        if let Some(port) = metrics.port {
            http.push((
                Port { name: "metricsProvider.httpPort", host, port },
                &places.metrics,
                false,
            ));
        }
        if let Some(https) = metrics.https.as_ref().filter(|_| !metrics.is_shared()) {
            let port = Port { name: "metricsProvider.httpsPort", host, port: https.port };
            http.push((port, &places.metrics_https, false));
        }
    }
    if let Some(admin) = ports.admin {
        let port = Port { name: "admin.serverPort", host: admin.host.as_deref(), port: admin.port };
        http.push((port, &places.admin, ports.own.is_some()));
    }
    for (port, place, is_warning) in http {
        let Port { name, host, port: number } = port;
        let shares = |other: &&Port<'_>| {
            let is_same_host = other.host.is_none() || host.is_none() || other.host == host;
            other.port == number && is_same_host
        };
        if let Some(other) = taken.iter().find(shares) {
            let text = format!("{name}={number} is {} too; give it another port", other.name);
            let place = place.clone().unwrap_or_else(|| checker.whole.clone());
            match is_warning {
                true => checker.warn(&place, format!("{text}, or AdminServer does not start")),
                false => checker.problem(&place, text),
            }
        }
        if number != 0 {
            taken.push(port);
        }
    }
}
