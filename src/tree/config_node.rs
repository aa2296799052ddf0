//! `/zookeeper/config`, which servers also write without a transaction, and what its configuration says of the history.

use super::Tree;
use super::acls;
use super::config_origin::ConfigOrigin;
use crate::model::{Acl, Identity, Zxid};
use std::mem;

const PATH: &str = "/zookeeper/config";

impl Tree {
    /// Writes the configuration into `/zookeeper/config`: this is no transaction, and every server does it for itself.
    ///
    /// * `version`: of the configuration, which is a zxid.
    ///
    /// Source: `ZKDatabase.initConfigInZKDatabase`, ZooKeeper 3.9.5.
    pub fn set_config(&mut self, text: &[u8], version: i64, wall_ms: i64) {
        let Some(id) = self.find(PATH) else { return };
        self.config_origin = ConfigOrigin::History;
        self.set_data(id, Some(text), |node| {
            (node.version, node.mzxid, node.mtime) = (-1, version, wall_ms);
        });
    }

    /// What `/zookeeper/config` holds.
    pub fn config(&self) -> Option<&[u8]> {
        self.znode(self.find(PATH)?).data().bytes()
    }

    /// What `/zookeeper/config` holds, unless the log proves that it is of a history that was lost.
    pub fn config_in_history(&self) -> Option<&[u8]> {
        if self.config_origin == ConfigOrigin::LostHistory { None } else { self.config() }
    }

    /// What `/zookeeper/config` held before the last reconfiguration that was applied here; `None`: none was, or that is not known.
    pub fn config_before(&self) -> Option<&[u8]> {
        self.config_before.as_deref()
    }

    /// Adds `/zookeeper/config` if it is missing, as Java does after every load (`DataTree.addConfigNode`).
    pub(super) fn add_config_node(&mut self) {
        if self.find(PATH).is_none() && self.find("/zookeeper").is_some() {
            // world:anyone:r
            let acl = acls::encode(&[Acl { perms: 1, who: Identity::new("world", "anyone") }]);
            self.insert_system(PATH, &acl, -1);
        }
    }

    /// The tree is that of a snapshot of `zxid`.
    pub(super) fn set_config_origin(&mut self, zxid: Zxid) {
        let written = self.find(PATH).map(|id| self.nodes.get(id).mzxid);
        self.config_origin = ConfigOrigin::of_snapshot(zxid, written.and_then(Zxid::from_wire));
    }

    /// A reconfiguration takes the place of what `/zookeeper/config` holds.
    pub(super) fn replace_config(&mut self) {
        self.config_before = match mem::replace(&mut self.config_origin, ConfigOrigin::History) {
            ConfigOrigin::History => Some(self.config().unwrap_or_default().to_vec()),
            ConfigOrigin::AfterSnapshot(_) | ConfigOrigin::LostHistory => None,
        };
    }
}
