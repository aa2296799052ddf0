//! A snapshot that is restored over a leader's history.

use super::{Action, Core, Peer, Promise, Role};
use crate::model::{Epoch, Zxid};

impl Peer {
    /// A leader gives up its role, and stands for election with the restored history. In any other role nothing happens.
    pub(super) fn restore(&mut self, zxid: Zxid, past: Option<Epoch>, out: &mut Vec<Action>) {
        if matches!(self.role(), Role::Leading(_)) {
            self.stand_down("a snapshot is restored".to_owned(), out);
            self.core.restore(zxid, past, out);
        }
    }
}

impl Core {
    /// Replaces this server's whole history by a restored tree, whose zxid is beyond all that was proposed in the current epoch.
    pub(super) fn restore(&mut self, zxid: Zxid, past: Option<Epoch>, out: &mut Vec<Action>) {
        let (last, current) = (self.history.last(), self.current.0);
        assert!(
            last < zxid && zxid.epoch().0 == current,
            "restore {zxid} after {last} in {current}"
        );
        self.history.restart(zxid);
        self.retain_logged_views(|version| zxid.to_wire() < version);
        self.seen.before_cut = None;
        if let Some(past) = past.filter(|past| self.accepted < *past) {
            self.promise(Promise::Accepted, past, out);
        }
        self.installing += 1;
        out.push(Action::Install { zxid });
    }
}
