//! The settings of a [`super::Member`].

use super::election_connections;
use crate::model::{Member, ServerId, View};

/// Settings of every server.
pub struct Settings {
    /// `None`: standalone.
    pub ensemble: Option<EnsembleSettings>,
    pub log_read: LogReadLimit,
}

/// How much of the log is read for a learner before it is sent the tree instead.
#[derive(Clone, Copy, Debug)]
pub enum LogReadLimit {
    /// `snapshotSizeFactor`: this part of the tree's size; `None`: the tree is sent in any case.
    Factor(Option<f64>),
    /// This many bytes. Only tests and the simulator set it: their trees are so small that for a part of their size hardly any log
    /// would be read.
    Bytes(u64),
}

/// Settings of an ensemble member.
pub struct EnsembleSettings {
    pub my_id: ServerId,
    /// The configuration of the start.
    pub view: View,
    /// The same as a transaction or a leader gave it. An operator may have changed the lines of `view` in a dynamic file.
    pub decided: View,
    /// This server's line, by which its ports are bound. A server that was stopped while it joined has it in a proposed configuration only.
    pub own: Option<Member>,
    /// How the election connections are set up.
    pub election: election_connections::Settings,
    /// Listen on every address of the machine (`quorumListenOnAllIPs`).
    pub listen_on_all_addresses: bool,
    /// The port where this server accepts observers when it follows, and where it dials a follower when it observes
    /// (`observerMasterPort`).
    pub observer_master_port: Option<u16>,
    /// The static configuration file is copied at start: the ensemble may change, and that file still names its members.
    pub backs_up_config: bool,
    /// `reconfigEnabled`: whether a reconfiguration may write configuration files.
    pub writes_config: bool,
    /// `messageTracker.BufferSize`, if `messageTracker.Enabled`.
    pub tracked_messages: Option<u32>,
}
