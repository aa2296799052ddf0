//! The state that all accepted learner connections of a server share.

use super::handle::lock;
use crate::member::ListenAddress;
use crate::member::quorum_connection::QuorumConnection;
use crate::member::unfinished_packets::UnfinishedPackets;
use crate::model::{LogMinute, ServerId};
use crate::net::bind::PortSetting;
use crate::zab::LearnerConnectionId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Numbers the accepted connections, and limits the sizes of their packets.
#[derive(Default)]
pub struct LearnerPort {
    accepted: AtomicU64,
    /// `jute.maxbuffer` and its `extrasize` together; `None`: the default of both.
    entry_max: Option<usize>,
    /// `observerMasterPort`.
    observer_master_port: Option<u16>,
    unfinished: Mutex<Unfinished>,
    /// WARNs about hosts whose connections are closed before their first packet, with the reason.
    logged: Mutex<LogMinute<(IpAddr, String)>>,
    /// Addresses that can't be bound, with the reason.
    unbound: Mutex<BTreeMap<ListenAddress, String>>,
}

#[derive(Default)]
struct Unfinished {
    packets: UnfinishedPackets,
    /// The address of each connection, and what ends it.
    stops: BTreeMap<LearnerConnectionId, (SocketAddr, CancellationToken)>,
}

impl LearnerPort {
    pub fn new(entry_max: usize, observer_master_port: Option<u16>) -> Self {
        Self { entry_max: Some(entry_max), observer_master_port, ..Self::default() }
    }

    /// Where the port of an address is set.
    pub(super) fn set_by(&self, address: &ListenAddress) -> PortSetting {
        match self.observer_master_port == Some(address.port) {
            true => PortSetting::ObserverMasterPort,
            false => PortSetting::ServerLine,
        }
    }

    /// When memory is short, connections of servers in no configuration are closed before those of these members.
    pub fn set_members(&self, members: BTreeSet<ServerId>) {
        lock(&self.unfinished).packets.set_members(members);
    }

    /// Notes the end of an attempt to listen at an address.
    ///
    /// * `error`: `None` if it is bound.
    pub(super) fn note_attempt(&self, address: &ListenAddress, error: Option<&str>) {
        let mut unbound = lock(&self.unbound);
        match error {
            None => unbound.remove(address),
            Some(error) => unbound.insert(address.clone(), error.to_owned()),
        };
    }

    /// Why no follower can connect at one of these addresses. At `observerMasterPort` none has to.
    pub fn error(&self, addresses: impl Iterator<Item = ListenAddress>) -> Option<String> {
        let unbound = lock(&self.unbound);
        let mut quorum_ports =
            addresses.filter(|address| self.set_by(address) == PortSetting::ServerLine);
        quorum_ports.find_map(|address| unbound.get(&address).cloned())
    }

    /// Whether to log a WARN for a connection of this host that is closed for this reason.
    pub(super) fn may_log(&self, host: IpAddr, why: &str, now_ms: u64) -> bool {
        lock(&self.logged).admit((host, why.to_owned()), now_ms)
    }

    pub(super) fn next_connection(&self) -> LearnerConnectionId {
        LearnerConnectionId(self.accepted.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn limited(&self, connection: QuorumConnection) -> QuorumConnection {
        match self.entry_max {
            Some(entry_max) => connection.with_entries_of(entry_max),
            None => connection,
        }
    }
}

/// The place of one connection among the unfinished packets, released when dropped.
pub(super) struct UnfinishedPlace {
    port: Arc<LearnerPort>,
    connection: LearnerConnectionId,
    peer: SocketAddr,
    stop: CancellationToken,
    is_taken: bool,
}

impl UnfinishedPlace {
    pub fn new(
        port: Arc<LearnerPort>,
        connection: LearnerConnectionId,
        peer: SocketAddr,
        stop: CancellationToken,
    ) -> Self {
        Self { port, connection, peer, stop, is_taken: false }
    }

    pub fn port(&self) -> Arc<LearnerPort> {
        self.port.clone()
    }

    /// Notes how much of a packet has come. If unfinished packets take too much memory, the connection that makes room is closed.
    ///
    /// * `learner`: the server id that the learner has sent.
    pub fn note(&mut self, learner: Option<ServerId>, bytes: usize, is_another: bool) {
        if bytes == 0 && !self.is_taken {
            return; // As nearly always: the last bytes that were read end a packet.
        }
        let mut unfinished = lock(&self.port.unfinished);
        if !self.is_taken {
            unfinished.stops.insert(self.connection, (self.peer, self.stop.clone()));
        }
        self.is_taken = bytes > 0;
        if !self.is_taken {
            unfinished.stops.remove(&self.connection);
        }
        if let Some(first) = unfinished.packets.note(self.connection, learner, bytes, is_another) {
            let held = unfinished.stops.remove(&first);
            held.iter().for_each(|(_, stop)| stop.cancel());
            tracing::warn!(
                target: crate::model::STRANGERS,
                peer = held.as_ref().map(|(peer, _)| display(peer)),
                connection = first.0,
                "connection to the quorum port closed: unfinished packets take too much memory; \
                 allow only members to connect to the quorum port"
            );
        }
    }
}

impl Drop for UnfinishedPlace {
    fn drop(&mut self) {
        let mut unfinished = lock(&self.port.unfinished);
        unfinished.packets.forget(self.connection);
        unfinished.stops.remove(&self.connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unbound_observer_master_port_keeps_no_follower_away() {
        let port = LearnerPort::new(1, Some(2889));
        let at = |port| ListenAddress { host: Some("zk1".to_owned()), port };
        let (quorum, observers) = (at(2888), at(2889));
        assert_eq!(port.set_by(&quorum), PortSetting::ServerLine);
        assert_eq!(port.set_by(&observers), PortSetting::ObserverMasterPort);
        let error = || port.error([quorum.clone(), observers.clone()].into_iter());
        port.note_attempt(&observers, Some("in use"));
        assert_eq!(error(), None);
        port.note_attempt(&quorum, Some("in use too"));
        assert_eq!(error().as_deref(), Some("in use too"));
        port.note_attempt(&quorum, None);
        assert_eq!(error(), None);
    }
}
