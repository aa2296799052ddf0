//! Configurations in worlds and scripts: how a payload proposes one.

use oxkeeper::model::{PeerAddress, View};

/// In front of a payload that proposes a configuration.
pub const VIEW: &str = "view ";

pub fn view_in(payload: &[u8]) -> Option<View> {
    View::parse(std::str::from_utf8(payload).ok()?.strip_prefix(VIEW)?).ok()
}

pub fn address(at: usize) -> PeerAddress {
    PeerAddress { host: format!("host{at}"), quorum_port: 2888, election_port: 3888 }
}
