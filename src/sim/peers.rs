//! Connections between learners and leaders, and what passes over them: as `server::peers` and `net::quorum`.

use super::check::Seen;
use super::network::{Chunk, End, PipeId, Port};
use super::plan::{MS, Micros};
use super::server::{TICK_TIME_MS, tree_options};
use super::world::{Event, Of, World};
use crate::member::{Action, Input, QuorumPeer, election_connections};
use crate::tree::freeze::Frozen;
use crate::tree::load::Loader;
use crate::zab::{LinkId, Packet, SIGNATURE};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// How long a leader is called that refuses, and one that does not answer.
const REFUSED_US: Micros = 300 * MS;
const SILENT_US: Micros = 5 * TICK_TIME_MS * MS;
const DIAL_PAUSE_US: Micros = 20 * MS;

/// The leader, as its learner reaches it.
pub struct Leader {
    pub dial: u64,
    to: usize,
    pipe: Option<PipeId>,
    /// Said before there was a connection.
    unsent: Vec<Bytes>,
}

/// Waits behind a tree that is being sent.
enum Item {
    Bytes(Bytes),
    Tree(Frozen),
}

/// What came in over a connection and is no whole packet yet.
enum Reader {
    Packets(BytesMut),
    Tree { zxid: crate::model::Zxid, loader: Box<Loader>, bytes: BytesMut, is_ended: bool },
}

#[derive(Default)]
pub struct Links {
    learners: BTreeMap<LinkId, PipeId>,
    next_link: u64,
    pub leader: Option<Leader>,
    readers: BTreeMap<PipeId, Reader>,
    writers: BTreeMap<LinkId, VecDeque<Item>>,
}

/// The server that has these addresses: hosts are named `host<server>`.
pub fn server_at(addresses: &[(String, u16)]) -> Option<usize> {
    addresses.first()?.0.strip_prefix("host")?.parse().ok()
}

impl Links {
    fn link_of(&self, pipe: PipeId) -> Option<LinkId> {
        self.learners.iter().find(|(_, of)| **of == pipe).map(|(&link, _)| link)
    }

    /// Forgets a learner; gives the trees that are not sent to their end.
    fn forget(&mut self, link: LinkId) -> Vec<Frozen> {
        if let Some(pipe) = self.learners.remove(&link) {
            self.readers.remove(&pipe);
        }
        let unsent = self.writers.remove(&link).into_iter().flatten();
        unsent
            .filter_map(|item| if let Item::Tree(frozen) = item { Some(frozen) } else { None })
            .collect()
    }
}

impl World {
    /// Performs an action that concerns other servers.
    pub fn perform_for_links(&mut self, of: Of, action: Action) {
        let server = of.server;
        match action {
            Action::SendToLearner { link, bytes } => {
                self.see_packets(server, &bytes, false);
                self.put(of, link, bytes);
            }
            Action::SendTree { link, frozen, .. } => self.send_tree(of, link, frozen),
            Action::CloseLearner { link } => {
                self.drop_link(of, link);
                self.disconnected(of, QuorumPeer::Learner(link), "closed here");
            }
            Action::DialLeader { dial, addresses } => self.call(of, dial, &addresses),
            Action::SendToLeader { bytes } => {
                self.see_packets(server, &bytes, true);
                let Some(process) = self.process(of) else { return };
                let Some(leader) = &mut process.links.leader else { return };
                match leader.pipe {
                    Some(pipe) => self.send(pipe, End::Caller, bytes),
                    None => leader.unsent.push(bytes),
                }
            }
            Action::CloseLeader => self.hang_up(of),
            Action::SendNotification { to, message } => {
                self.step_wires(of, election_connections::Input::Send { to, message });
            }
            Action::DialElectionPorts => {
                self.step_wires(of, election_connections::Input::DialAll);
            }
            Action::DialElectionPort { to } => {
                self.step_wires(of, election_connections::Input::Dial { to });
            }
            Action::SetElectionAddresses(addresses) => {
                self.step_wires(of, election_connections::Input::SetPeers(addresses));
            }
            // Ports are everywhere here; the rest is the driver's.
            _ => {}
        }
    }

    fn disconnected(&mut self, of: Of, from: QuorumPeer, why: &str) {
        self.come_in(of, Input::Disconnected { from, why: why.to_owned() });
    }

    fn see_packets(&mut self, server: usize, bytes: &Bytes, goes_up: bool) {
        let durable = self.servers[server].durable;
        let told = self.servers[server].process.as_ref().map(|process| process.told);
        let Some(told) = told else { return };
        let mut bytes = BytesMut::from(&bytes[..]);
        while let Ok(Some(packet)) = Packet::decode(&mut bytes) {
            self.note(server, || {
                let to = if goes_up { "leader" } else { "learner" };
                format!("> to {to} {}", super::driver::short(&format!("{packet:x?}")))
            });
            let packet = &packet;
            self.see(&if goes_up {
                Seen::ToLeader { server, packet, durable, told }
            } else {
                Seen::ToLearner { server, packet, durable }
            });
        }
    }

    pub fn come_in(&mut self, of: Of, incoming: Input) {
        if let Some(process) = self.process(of) {
            process.incoming.push_back(incoming);
            self.wake_driver(of);
        }
    }

    fn put(&mut self, of: Of, link: LinkId, bytes: Bytes) {
        let Some(process) = self.process(of) else { return };
        let Some(&pipe) = process.links.learners.get(&link) else { return };
        match process.links.writers.get_mut(&link) {
            Some(waiting) => waiting.push_back(Item::Bytes(bytes)),
            None => self.send(pipe, End::Called, bytes),
        }
    }

    pub fn send_tree(&mut self, of: Of, link: LinkId, frozen: Frozen) {
        self.note(of.server, || format!("> tree {} to {link:?}", frozen.zxid));
        let Some(process) = self.process(of) else { return };
        if !process.links.learners.contains_key(&link) {
            return self.end_trees(of, vec![frozen]);
        }
        let is_first = !process.links.writers.contains_key(&link);
        process.links.writers.entry(link).or_default().push_back(Item::Tree(frozen));
        if is_first {
            self.begin_tree(of, link);
        }
    }

    fn begin_tree(&mut self, of: Of, link: LinkId) {
        let Some(process) = self.process(of) else { return };
        let Some(&pipe) = process.links.learners.get(&link) else { return };
        let waiting = process.links.writers.get(&link).and_then(|waiting| waiting.front());
        let Some(Item::Tree(frozen)) = waiting else { return };
        let snap = Packet::Snap { zxid: frozen.zxid }.to_bytes();
        self.send(pipe, End::Called, snap);
        self.ask_within(50, 6000, Event::TreePiece(of, link));
    }

    /// The next piece of a tree goes to a learner.
    pub fn send_piece(&mut self, of: Of, link: LinkId) {
        let Some(process) = self.process(of) else { return };
        let Some(&pipe) = process.links.learners.get(&link) else { return };
        let waiting = process.links.writers.get(&link).and_then(|waiting| waiting.front());
        let Some(&Item::Tree(frozen)) = waiting else { return };
        let mut bytes = Vec::new();
        let is_last = {
            let tree = process.shared.state.tree.read();
            tree.holds(frozen).then(|| tree.freeze_piece(&mut bytes))
        };
        match is_last {
            // It was replaced while it was sent.
            None => {
                self.drop_link(of, link);
                self.disconnected(
                    of,
                    QuorumPeer::Learner(link),
                    "the tree was replaced while it was sent",
                );
            }
            Some(false) => {
                self.send(pipe, End::Called, bytes.into());
                self.progress(of, QuorumPeer::Learner(link));
                self.ask_within(20, 2000, Event::TreePiece(of, link));
            }
            Some(true) => {
                bytes.extend_from_slice(&(SIGNATURE.len() as u32).to_be_bytes());
                bytes.extend_from_slice(SIGNATURE);
                self.send(pipe, End::Called, bytes.into());
                self.end_trees(of, vec![frozen]);
                self.go_on_behind_tree(of, link, pipe);
            }
        }
    }

    fn go_on_behind_tree(&mut self, of: Of, link: LinkId, pipe: PipeId) {
        let Some(process) = self.process(of) else { return };
        let Some(mut waiting) = process.links.writers.remove(&link) else { return };
        waiting.pop_front();
        while let Some(item) = waiting.pop_front() {
            match item {
                Item::Bytes(bytes) => self.send(pipe, End::Called, bytes),
                Item::Tree(_) => {
                    waiting.push_front(item);
                    let Some(process) = self.process(of) else { return };
                    process.links.writers.insert(link, waiting);
                    return self.begin_tree(of, link);
                }
            }
        }
    }

    fn end_trees(&mut self, of: Of, trees: Vec<Frozen>) {
        for frozen in trees {
            self.ask_within(10, 100, Event::Report(of, Input::TreeSent(frozen)));
        }
    }

    /// Closes the connection to a learner.
    fn drop_link(&mut self, of: Of, link: LinkId) {
        let Some(process) = self.process(of) else { return };
        let pipe = process.links.learners.get(&link).copied();
        let trees = process.links.forget(link);
        self.end_trees(of, trees);
        if let Some(pipe) = pipe {
            self.close(pipe, End::Called);
        }
    }

    fn hang_up(&mut self, of: Of) {
        let Some(process) = self.process(of) else { return };
        let Some(leader) = process.links.leader.take() else { return };
        if let Some(pipe) = leader.pipe {
            process.links.readers.remove(&pipe);
            self.close(pipe, End::Caller);
        }
    }

    fn call(&mut self, of: Of, dial: u64, addresses: &[(String, u16)]) {
        self.hang_up(of);
        let now_us = self.now_us;
        let Some(process) = self.process(of) else { return };
        let Some(to) = server_at(addresses) else {
            return self.disconnected(of, QuorumPeer::Leader { dial }, "no address");
        };
        process.links.leader = Some(Leader { dial, to, pipe: None, unsent: Vec::new() });
        self.ask_within(100, 2000, Event::Dial { of, dial, began_us: now_us });
    }

    /// A tree gets on: a sign of life to the server that waits at the other end.
    fn progress(&mut self, of: Of, from: QuorumPeer) {
        self.come_in(of, Input::Progress { from });
    }

    pub fn dial(&mut self, of: Of, dial: u64, began_us: Micros) {
        let Some(process) = self.process(of) else { return };
        let Some(leader) = process.links.leader.as_mut().filter(|leader| leader.dial == dial)
        else {
            return;
        };
        let to = leader.to;
        let reaches = self.net.reaches(of.server, to);
        if reaches && self.servers[to].process.is_some() {
            return self.reach(of, to, dial);
        }
        let limit_us = if reaches { REFUSED_US } else { SILENT_US };
        if limit_us < self.now_us - began_us {
            self.note(of.server, || format!("* leader {to} is not to be reached"));
            return self.disconnected(of, QuorumPeer::Leader { dial }, "not reached");
        }
        self.ask_within(DIAL_PAUSE_US / 2, DIAL_PAUSE_US, Event::Dial { of, dial, began_us });
    }

    fn reach(&mut self, of: Of, to: usize, dial: u64) {
        let pipe = self.net.connect(of.server, to, Port::Quorum { dial });
        let there = self.of(to);
        if let Some(process) = self.process(there) {
            process.links.next_link += 1;
            let link = LinkId(process.links.next_link);
            process.links.learners.insert(link, pipe);
            process.links.readers.insert(pipe, Reader::Packets(BytesMut::new()));
            self.come_in(there, Input::LearnerConnected { link });
        }
        let Some(process) = self.process(of) else { return };
        process.links.readers.insert(pipe, Reader::Packets(BytesMut::new()));
        let Some(leader) = &mut process.links.leader else { return };
        leader.pipe = Some(pipe);
        for bytes in std::mem::take(&mut leader.unsent) {
            self.send(pipe, End::Caller, bytes);
        }
    }

    /// From a learner, or from the leader.
    pub fn link_hears(&mut self, of: Of, pipe: PipeId, end: End, chunk: Chunk) {
        let seed = self.climate().seed ^ of.server as u64;
        let dial = match self.net.pipes.get(&pipe).map(|found| found.port) {
            Some(Port::Quorum { dial }) => dial,
            _ => return,
        };
        let Some(process) = self.process(of) else { return };
        let from = match (end, process.links.link_of(pipe)) {
            (End::Called, Some(link)) => QuorumPeer::Learner(link),
            (End::Called, None) => return,
            (End::Caller, _) => QuorumPeer::Leader { dial },
        };
        let Chunk::Bytes(bytes) = chunk else {
            process.links.readers.remove(&pipe);
            if let QuorumPeer::Learner(link) = from {
                let trees = process.links.forget(link);
                self.end_trees(of, trees);
            }
            return self.disconnected(of, from, "closed by the peer");
        };
        let Some(reader) = process.links.readers.get_mut(&pipe) else { return };
        let is_in_tree = matches!(reader, Reader::Tree { .. });
        let mut incoming = Vec::new();
        match reader.take(&bytes, seed, &mut incoming) {
            Ok(()) => {}
            Err(why) => return self.fail("panic", format!("{} hears {why}", of.server)),
        }
        if is_in_tree && end == End::Caller {
            self.progress(of, from);
        }
        let mut packets = Vec::new();
        for read in incoming {
            match read {
                Read::Packet(packet) => packets.push(packet),
                Read::Tree(zxid, tree) => {
                    self.packets_come_in(of, from, &mut packets);
                    self.come_in(of, Input::LeaderTree { dial, zxid, tree });
                }
            }
        }
        self.packets_come_in(of, from, &mut packets);
    }

    fn packets_come_in(&mut self, of: Of, from: QuorumPeer, packets: &mut Vec<Packet>) {
        if !packets.is_empty() {
            self.come_in(of, Input::Packets { from, packets: std::mem::take(packets) });
        }
    }
}

enum Read {
    Packet(Packet),
    Tree(crate::model::Zxid, Box<crate::tree::Tree>),
}

impl Reader {
    /// # Errors
    /// In words, what is wrong with the bytes.
    fn take(&mut self, more: &Bytes, seed: u64, read: &mut Vec<Read>) -> Result<(), String> {
        let mut packets = Vec::new();
        match self {
            Self::Packets(bytes) | Self::Tree { bytes, .. } => bytes.extend_from_slice(more),
        }
        loop {
            match self {
                Self::Packets(bytes) => {
                    let packet = Packet::decode(bytes).map_err(|error| error.to_string())?;
                    match packet {
                        None => break,
                        Some(Packet::Snap { zxid }) => {
                            let loader = Box::new(Loader::new(tree_options(seed)));
                            let bytes = std::mem::take(bytes);
                            read.extend(packets.drain(..).map(Read::Packet));
                            *self = Self::Tree { zxid, loader, bytes, is_ended: false };
                        }
                        Some(packet) => packet.push_to(&mut packets),
                    }
                }
                Self::Tree { zxid, loader, bytes, is_ended } => {
                    if !*is_ended {
                        let taken = loader.take(bytes).map_err(|error| error.to_string())?;
                        let _taken = bytes.split_to(taken.bytes);
                        *is_ended = taken.ended;
                        if taken.bytes == 0 && !taken.ended {
                            break;
                        }
                        continue;
                    }
                    let wanted = 4 + SIGNATURE.len();
                    if bytes.len() < wanted {
                        break;
                    }
                    let signature = bytes.split_to(wanted);
                    if &signature[4..] != SIGNATURE {
                        return Err("no signature behind a tree".to_owned());
                    }
                    let (zxid, rest) = (*zxid, std::mem::take(bytes));
                    let fresh = Box::new(Loader::new(tree_options(seed)));
                    let loader = std::mem::replace(loader, fresh);
                    let tree = loader.finish(zxid).map_err(|error| error.to_string())?;
                    read.push(Read::Tree(zxid, Box::new(tree)));
                    *self = Self::Packets(rest);
                }
            }
        }
        read.extend(packets.into_iter().map(Read::Packet));
        Ok(())
    }
}
