//! The metrics that only this server has, in addition to those of ZooKeeper.

use crate::model::ServerId;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnFigures {
    /// Time since the newest snapshot was written; `None`: there is none.
    pub snapshot_age_seconds: Option<f64>,
    /// Free bytes of the file system of each directory, by the setting that names it.
    pub free_bytes: Vec<(&'static str, u64)>,
    /// Bytes of the largest znode since the tree was loaded, and children of the longest list.
    pub node_bytes_max: u64,
    pub children_max: u64,
    pub list_bytes_max: u64,
    pub sequence_max: i64,
    pub jute_max_buffer_bytes: u64,
    pub watch_bytes: u64,
    /// Sessions of connected clients, by the time for which they are connected.
    pub sessions: Vec<(&'static str, u64)>,
    /// For a leader: the other members.
    pub peers: Vec<PeerFigures>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PeerFigures {
    pub id: ServerId,
    pub is_connected: bool,
    /// Committed bytes that it has not acknowledged; `None`: it is not connected.
    pub lag_bytes: Option<u64>,
}
