//! What the checks see of a server: its packets, its entries, and what each step has changed in it.

use super::check::Seen;
use super::learner_stage::Stage;
use super::network::ProcessId;
use super::plan::MS;
use super::process::Server;
use super::trace::short;
use super::world::World;
use crate::member::QuorumPeer;
use crate::model::Zxid;
use crate::replica::Mode;
use crate::tree::txn::{Entry, Txn};
use crate::zab::{Note, Packet};
use bytes::{Bytes, BytesMut};

impl World {
    /// Tells the checks what has changed in the server with the step.
    pub fn observe(&mut self, at: ProcessId) {
        let server = at.server;
        let Some(process) = self.process(at) else { return };
        let notes = process.member.replica.notes();
        let (last, is_serving, mode) =
            (process.last(), process.is_serving(), process.member.replica.mode());
        self.see_notes(at, notes, last, is_serving);
        let now_us = self.now_us;
        let Some(process) = self.process(at) else { return };
        let was_leading = process.note_mode(mode, now_us);
        let has_committed = was_leading && !is_serving && process.has_handed_over();
        if !is_serving && !has_committed {
            process.served = None;
            return;
        }
        let (standing, mismatches) =
            (process.standing(), process.member.replica.stats.digest_mismatches);
        if 0 < mismatches {
            self.see(&Seen::Mismatch { server });
        }
        let Some(process) = self.process(at) else { return };
        if is_serving && process.standing.replace(standing) != Some(standing) {
            let durable = self.servers[server].durable;
            self.see(&Seen::Stands { server, standing, durable });
        }
        let Some(process) = self.process(at) else { return };
        if process.served == Some(last) {
            return;
        }
        let begins = process.served.is_none();
        process.served = is_serving.then_some(last);
        let digest = process.shared.state.tree.read().digest();
        self.become_whole(server);
        let commits = has_committed || matches!(mode, Mode::Leading | Mode::Standalone);
        let disks = self.acknowledged();
        let commits = commits.then_some(&disks[..]);
        self.note(server, || format!("* applied {last}, {mode:?}"));
        let may_go_back = begins && mode == Mode::Observing && self.climate().relays;
        self.see(&Seen::Applied { server, last, may_go_back, digest, commits });
        if begins {
            self.leave_java_tree(at);
        }
    }

    /// * `last`: the last zxid of its tree.
    fn see_notes(&mut self, at: ProcessId, notes: Vec<Note>, last: Zxid, is_serving: bool) {
        let server = at.server;
        let now_us = self.now_us;
        if let Some(process) = self.process(at) {
            process.note_election(now_us, &notes);
        }
        for note in notes {
            self.note(server, || format!("* {note:?}"));
            match note {
                Note::SyncBegun { sync, .. } => {
                    self.trace.count(sync.sync_type.name());
                    if !is_serving {
                        self.cut_off_synchronising_leader(server, last);
                    }
                }
                Note::Looking { .. } => {
                    self.trace.count("elections");
                    self.look_for_views_at_election(at);
                    if let Some(process) = self.process(at) {
                        process.leads_us = None;
                        if std::mem::replace(&mut process.watched.has_looked, true) {
                            process.watched.looked_again_us = Some(now_us);
                        }
                    }
                }
                Note::Leads { epoch, .. } => {
                    self.trace.count("leaders");
                    let now_us = self.now_us;
                    if let Some(process) = self.process(at) {
                        process.leads_us = Some(now_us);
                    }
                    self.is_recovering = self.outsider.is_some();
                    if self.outsider.is_some() {
                        self.bring_outsider(server, epoch);
                    }
                    let disks = &self.acknowledged()[..];
                    self.see(&Seen::Leads { server, epoch, last, disks });
                }
                Note::Alone { is_alone: true } => self.count_alone(),
                _ => {}
            }
        }
    }

    fn count_alone(&mut self) {
        self.trace.count("voters that go on alone");
        if self.checks.history.newest_views().any(|view| view.version != 0) {
            self.trace.count("voters that go on alone after a change");
        }
    }

    /// A server serves: its data is whole again, and it could start again with what it logs next.
    fn become_whole(&mut self, server: usize) {
        if !self.servers[server].becomes_whole() {
            self.fail("snapshots", format!("{server} serves and has no snapshot"));
        }
        if self.serves_locked(server) {
            let what = "serves and can't write its configuration files";
            self.fail("configurations", format!("{server} {what}"));
        }
    }

    /// The end of the history that each server's disk has, or had when it acknowledged it.
    fn acknowledged(&self) -> Vec<Zxid> {
        self.servers.iter().map(Server::acknowledged).collect()
    }

    /// Tells the checks of a leader that expires a session, and keeps when it heard of a session that it creates.
    pub fn watch_sessions(&mut self, at: ProcessId, entry: &[u8]) {
        let (now_us, sessions) = (self.now_us, &self.checks.history.model.timeouts);
        let Some(process) = self.servers[at.server].process.as_mut() else { return };
        let (Some(leads_us), Ok(entry)) = (process.leads_us, Entry::decode(entry)) else { return };
        let session = entry.header.client_id;
        match entry.txn {
            Txn::CreateSession { .. } => drop(process.heard.insert(session, now_us)),
            Txn::CloseSession { .. } if entry.header.cxid == 0 => {
                let heard_us = process.heard.get(&session).map_or(leads_us, |&at| at.max(leads_us));
                let silent_ms = (now_us - heard_us).div_ceil(MS);
                let Some(&timeout_ms) = sessions.get(&session) else { return };
                self.trace.count("sessions expired");
                self.see(&Seen::Expires { session, silent_ms, timeout_ms });
            }
            _ => {}
        }
    }

    pub fn see_packets(&mut self, at: ProcessId, peer: QuorumPeer, bytes: &Bytes) {
        let (server, durable) = (at.server, self.servers[at.server].durable);
        let Some(epoch) = self.process(at).map(|process| process.watched.leader_epoch) else {
            return;
        };
        let mut bytes = BytesMut::from(&bytes[..]);
        while let Ok(Some(packet)) = Packet::decode(&mut bytes) {
            let packet = &packet;
            self.note(server, || format!("> to {peer:?} {}", short(&format!("{packet:x?}"))));
            if let (QuorumPeer::Learner(_), Packet::LeaderInfo { .. }) = (peer, packet) {
                self.look_for_outsider(at, peer);
            }
            if let (QuorumPeer::Leader { .. }, Packet::AckEpoch { .. }) = (peer, packet)
                && let Some(process) = self.process(at)
            {
                process.watched.stage = Stage::Promised;
            }
            if let (QuorumPeer::Leader { .. }, Packet::AckEpoch { current, .. }) = (peer, packet) {
                self.look_for_promise(at, current.is_some());
            }
            if let (QuorumPeer::Leader { .. }, &Packet::Ack { zxid }) = (peer, packet) {
                self.look_for_saved_view(at, zxid);
                self.look_for_views_at_ack(at, zxid);
                self.stop_after_ack(at.server, zxid);
            }
            self.see(&match peer {
                QuorumPeer::Leader { .. } => Seen::ToLeader { server, packet, durable, epoch },
                QuorumPeer::Learner(_) => Seen::ToLearner { server, packet, durable },
            });
        }
    }
}
