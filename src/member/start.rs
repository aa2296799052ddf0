//! What a member of an ensemble knows when it starts: its epochs and configurations, as its files say.

use crate::model::{Epoch, ServerId, View, Zxid};
use crate::store::Disk;
use crate::store::epoch::{self, EpochError};
use crate::zab::{Peer, Settings};
use std::path::Path;

/// The configurations that the files name.
#[derive(Clone, Debug)]
pub struct Views {
    /// The configuration of this start.
    pub in_force: View,
    /// The one in `.dynamic.next`: proposed before the last stop, committed or not.
    pub proposed: Option<View>,
}

/// The machine of agreement of a member, about to look for a leader.
///
/// * `dir`: folder of the epoch files. `last`: of the log; `None`: this server has nothing that counts.
///
/// # Errors
/// When an epoch file can't be read.
pub fn peer<D: Disk>(
    disk: &D,
    dir: &Path,
    me: ServerId,
    settings: Settings,
    views: Views,
    last: Option<Zxid>,
) -> Result<Peer, EpochError> {
    let epochs: (Epoch, Epoch) = epoch::promised(disk, dir, last.unwrap_or(Zxid::ZERO))?;
    let mut peer = Peer::member(me, settings, views.in_force, epochs, last);
    // A configuration that is not in the log was never acknowledged by this server, so it is ignored.
    let is_logged = |view: &View| view.version <= last.map_or(0, Zxid::to_wire);
    if let Some(view) = views.proposed.filter(is_logged) {
        peer.core.see_view(view, &mut Vec::new());
    }
    Ok(peer)
}
