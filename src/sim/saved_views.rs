//! Checks of when proposed configurations are saved: `.dynamic.next` is written after the log has the proposal and before the proposal is
//! acknowledged.

use super::check::Seen;
use super::membership;
use super::network::ProcessId;
use super::process::Process;
use super::world::World;
use crate::model::{View, Zxid};
use crate::store::disk::read_file;
use crate::zab::Packet;

impl Process {
    /// Keeps the epoch that LEADERINFO names, and the version of the configuration that its NEWLEADER names.
    pub fn note_leaders_packets(&mut self, packets: &[Packet]) {
        for packet in packets {
            self.watched.stage = self.watched.stage.after(packet).unwrap_or(self.watched.stage);
            match packet {
                Packet::LeaderInfo { epoch } => {
                    (self.watched.leader_epoch, self.watched.named_view) = (*epoch, None);
                }
                Packet::NewLeader { view, .. } => {
                    let parsed = View::from_bytes(view).ok();
                    self.watched.named_view = parsed.and_then(|view| Zxid::from_wire(view.version));
                }
                _ => {}
            }
        }
    }
}

impl World {
    /// Checks that `.dynamic.next` has a proposed configuration before this server acknowledges the proposal.
    pub fn look_for_saved_view(&mut self, at: ProcessId, acknowledged: Zxid) {
        let version = acknowledged.to_wire();
        let Some(process) = self.process(at) else { return };
        let core = &process.member.replica.peer().core;
        // What was in force before an operator wrote other lines is in `lastConfiguration` (world 1810000005675).
        let is_proposed = core.current_and_proposed().skip(1).any(|view| view.version == version);
        if !is_proposed {
            return;
        }
        let server = at.server;
        let saved =
            read_file(&self.servers[server].disk, &membership::proposed_file()).unwrap_or_default();
        let is_saved = String::from_utf8_lossy(&saved).contains(&format!("version={version:x}"));
        self.see(&Seen::AcknowledgesView { server, zxid: acknowledged, is_saved });
    }

    /// Checks that the log has the newest of the configurations that are saved, if this server's history has it.
    ///
    /// What NEWLEADER names is saved before NEWLEADER is acknowledged, whether the log has it or not.
    pub fn look_for_logged_view(&mut self, at: ProcessId, saved: &[View]) {
        let newest = saved.last().and_then(|view| Zxid::from_wire(view.version));
        let durable = self.servers[at.server].durable.last;
        let Some(newest) = newest.filter(|newest| durable < *newest) else { return };
        let Some(process) = self.process(at) else { return };
        let is_named = process.watched.named_view == Some(newest);
        let is_in_history = process.member.replica.peer().core.history.entry(newest).is_some();
        let is_proposed = !is_named && is_in_history;
        self.see(&Seen::SavesView { server: at.server, zxid: newest, is_proposed, durable });
    }
}
