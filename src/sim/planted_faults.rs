//! Planted faults in frames, observations and trees: they prove that the checks see what happens in a world.

use super::check::Seen;
use super::client::Connection;
use super::model::is_from;
use super::plan::PlantedFault;
use super::workload::Op;
use super::world::World;
use crate::model::{Epoch, View, Zxid, op, xid};
use crate::tree::txn::Txn;
use crate::zab::Packet;
use jute::proto::WatcherEvent;
use jute::txn::TxnHeader;
use jute::{Decode as _, Reader};

/// Bytes of a reply's header: xid, zxid, code.
const HEADER_LEN: usize = 16;

impl World {
    /// The frames that reach a client in place of this one.
    pub fn spoil_frame(&mut self, client: usize, mut frame: Vec<u8>) -> Vec<Vec<u8>> {
        let Some(plant) = self.climate().plant else { return vec![frame] };
        let xid = frame.first_chunk().map_or(0, |head| i32::from_be_bytes(*head));
        let is_event = xid == xid::NOTIFICATION;
        let is_answer = 0 < xid && HEADER_LEN <= frame.len();
        let is_due = self.rng.one_in(8);
        let found = &mut self.clients[client];
        let is_connecting = matches!(found.connection, Connection::Connecting(_));
        match plant {
            PlantedFault::LostEvent if is_event && is_due => return Vec::new(),
            PlantedFault::LostLastingEvent if is_event && is_due => {
                let event = WatcherEvent::decode(&mut Reader::new(&frame[HEADER_LEN..]));
                let path = event.as_ref().ok().and_then(|event| event.path.as_deref());
                let path = path.unwrap_or_default();
                let mut watches = found.session.persistent_watches.iter();
                if watches.any(|(at, recursive)| at == path || *recursive && is_from(at, path)) {
                    return Vec::new();
                }
            }
            PlantedFault::RepeatedEvent if is_event && is_due => return vec![frame.clone(), frame],
            PlantedFault::LateEvent if is_event => {
                found.held = frame;
                return Vec::new();
            }
            PlantedFault::SwappedAnswers if is_answer && is_due => {
                found.held = frame;
                return Vec::new();
            }
            PlantedFault::LateEvent | PlantedFault::SwappedAnswers if !found.held.is_empty() => {
                return vec![frame, std::mem::take(&mut found.held)];
            }
            // In the data, after its length, or in whatever is at that place.
            PlantedFault::WrongAnswer if is_answer && is_due && HEADER_LEN + 5 < frame.len() => {
                frame[HEADER_LEN + 5] ^= 1;
            }
            // The reply to a request whose replies have no body, without the error code.
            PlantedFault::WriteInReadOnly if is_answer && found.leaves_us.is_some() => {
                let oldest = found.outstanding.front();
                if oldest.is_some_and(|(_, request)| matches!(request.op, Op::Delete | Op::Sync)) {
                    frame[HEADER_LEN - 4..HEADER_LEN].fill(0);
                }
            }
            // The timeout and the id of an answer to a connect request.
            PlantedFault::RefusedSession if is_connecting && is_due && 16 <= frame.len() => {
                frame[4..16].fill(0)
            }
            PlantedFault::OldZxid if is_answer && is_due => frame[4..12].fill(0),
            _ => {}
        }
        vec![frame]
    }

    /// Tells the checks what was seen, and something false: in place of it, before it or after it.
    pub fn see_spoilt(&mut self, plant: PlantedFault, seen: &Seen<'_>) {
        if let (PlantedFault::SecondLeader, &Seen::Leads { epoch, last, disks, .. }) = (plant, seen)
        {
            let server = self.servers.len();
            self.run_checks(&Seen::Leads { server, epoch, last, disks });
        }
        self.run_checks_on_altered(plant, *seen);
        match (plant, *seen) {
            (PlantedFault::UnopenedEpoch, Seen::Logs { server, entry, .. }) => {
                let zxid = Zxid::new(Epoch(i32::MAX as u32), 1);
                if self.checks.history.proposal(zxid).is_none() {
                    self.run_checks(&Seen::Logs { server, zxid, entry });
                }
            }
            (PlantedFault::StepBack, Seen::Applied { server, last, .. }) => {
                let mut committed = self.checks.history.committed().iter().rev();
                let Some(before) = committed.find(|it| it.zxid < last) else { return };
                let (last, may_go_back, digest) = (before.zxid, false, before.digest);
                self.run_checks(&Seen::Applied {
                    server,
                    last,
                    may_go_back,
                    digest,
                    commits: None,
                });
            }
            (PlantedFault::UnfinishedRestore, Seen::Restores { server, zxid, .. }) => {
                self.run_checks(&Seen::RestoreEnded { server, zxid, is_done: true });
            }
            (
                PlantedFault::HastyAck,
                Seen::ToLeader { server, packet: Packet::AckEpoch { .. }, durable, epoch },
            ) if durable.last.counter() != 0 => {
                let packet = &Packet::Ack { zxid: durable.last };
                self.run_checks(&Seen::ToLeader { server, packet, durable, epoch });
            }
            (PlantedFault::SharedSession, Seen::SessionOpened { session, is_new: true, .. }) => {
                let client = self.clients.len();
                self.run_checks(&Seen::SessionOpened { client, session, is_new: true });
            }
            _ => {}
        }
    }

    fn run_checks_on_altered(&mut self, plant: PlantedFault, seen: Seen<'_>) {
        let (mut few_disks, other_view);
        let mut seen = seen;
        if let (PlantedFault::MinorityEpoch, Seen::ToLeader { packet: Packet::Ack { .. }, .. }) =
            (plant, seen)
        {
            return;
        }
        match (plant, &mut seen) {
            (PlantedFault::OtherDigest, Seen::Applied { digest, .. }) => *digest ^= 1,
            (PlantedFault::FewDisks, Seen::Applied { server, commits: Some(disks), .. }) => {
                few_disks = vec![Zxid::ZERO; disks.len()];
                few_disks[*server] = disks[*server];
                *disks = &few_disks;
            }
            (PlantedFault::UncommittedView, Seen::InForce { view, .. }) => {
                other_view = View { version: view.version + 1, ..(*view).clone() };
                *view = &other_view;
            }
            (
                PlantedFault::EarlyAck | PlantedFault::ShortHistory,
                Seen::ToLeader { packet: Packet::Ack { zxid }, durable, .. },
            ) if (zxid.counter() == 0) == (plant == PlantedFault::ShortHistory) => {
                durable.last = Zxid::ZERO;
            }
            (PlantedFault::UnsavedEpoch, Seen::Stands { durable, .. }) => {
                durable.current = Epoch(0)
            }
            (PlantedFault::UnsentBytes, Seen::Queued { unsent, limit, batch, .. }) => {
                *unsent = *limit + *batch + 1;
            }
            (PlantedFault::HeardAfterClose, Seen::FromClosed { actions, .. }) => *actions += 1,
            (PlantedFault::CutSnapshot, Seen::Named { tree, durable, .. }) => {
                (*tree, durable.last) = (Zxid::ZERO, Zxid::ZERO);
            }
            _ => {}
        }
        self.run_checks(&seen);
    }

    /// Changes a server's tree without a transaction.
    pub fn tamper(&mut self, server: usize) {
        let Some(process) = &self.servers[server].process else { return };
        let mut tree = process.shared.state.tree.write();
        let (zxid, kind) = (tree.last_zxid().to_wire(), op::SET_DATA);
        let header = TxnHeader { client_id: 0, cxid: 0, zxid, time: 0, kind };
        let txn = Txn::SetData { path: "/pair1".into(), data: Some(b"tampered"), version: 99 };
        tree.apply(&header, &txn, &mut Vec::new());
    }
}
