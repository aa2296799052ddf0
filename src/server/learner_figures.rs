//! What AdminServer's `observers` shows of the connections to learners.

use crate::admin::ObserverInfo;
use crate::member::quorum_connection::QuorumEvent;
use crate::model::{ServerId, Zxid};
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// The packets of one connection.
pub struct LearnerFigures {
    remote: SocketAddr,
    established_ms: u64,
    received: u64,
    sent: u64,
    requests: u64,
    last_zxid: Option<Zxid>,
}

impl LearnerFigures {
    pub fn new(remote: SocketAddr) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let established_ms = since.as_millis() as u64;
        Self { remote, established_ms, received: 0, sent: 0, requests: 0, last_zxid: None }
    }

    /// The learner's address.
    pub const fn peer(&self) -> SocketAddr {
        self.remote
    }

    pub fn received(&mut self, event: &QuorumEvent) {
        let received = event.received();
        self.received += received.packets;
        self.requests += received.requests;
        self.last_zxid = received.acknowledged.or(self.last_zxid);
    }

    pub fn sent(&mut self) {
        self.sent += 1;
    }

    /// * `unsent`: packets that wait for the socket, and their bytes.
    pub fn observer(&self, id: ServerId, unsent: (u64, u64)) -> ObserverInfo {
        ObserverInfo {
            remote: self.remote,
            id,
            established_ms: self.established_ms,
            queued_packets: unsent.0,
            queued_bytes: unsent.1,
            packets_received: self.received,
            packets_sent: self.sent,
            requests: self.requests,
            last_zxid: self.last_zxid,
        }
    }

    /// Resets what the command `observer_connection_stat_reset` resets.
    pub fn reset(&mut self) {
        (self.received, self.sent, self.requests, self.last_zxid) = (0, 0, 0, None);
    }
}
