//! Faults that no server makes: with them it is seen that the checks look at what goes on in a world.

use super::plan::Plant;
use super::world::World;
use crate::model::xid;
use crate::tree::txn::Txn;
use jute::proto::WatcherEvent;
use jute::txn::TxnHeader;
use jute::{Decode as _, Reader};

/// Bytes of a reply's header: xid, zxid, code.
const HEADER_LEN: usize = 16;

impl World {
    /// What becomes of a frame on its way to a client.
    pub fn plant(&mut self, client: usize, frame: Vec<u8>) -> Vec<Vec<u8>> {
        let Some(plant) = self.climate().plant else { return vec![frame] };
        let is_event = frame.get(..4) == Some(&xid::NOTIFICATION.to_be_bytes());
        let is_answer = !is_event
            && frame.first_chunk::<4>().is_some_and(|head| 0 < i32::from_be_bytes(*head))
            && HEADER_LEN <= frame.len();
        let is_due = self.rng.one_in(8);
        match plant {
            Plant::LostEvent if is_event && is_due => Vec::new(),
            Plant::LostLastingEvent if is_event && is_due && self.is_followed(client, &frame) => {
                Vec::new()
            }
            Plant::RepeatedEvent if is_event && is_due => vec![frame.clone(), frame],
            Plant::LateEvent if is_event => {
                self.clients[client].held = frame;
                Vec::new()
            }
            Plant::SwappedAnswers if is_answer && is_due => {
                self.clients[client].held = frame;
                Vec::new()
            }
            Plant::LateEvent | Plant::SwappedAnswers if !self.clients[client].held.is_empty() => {
                vec![frame, std::mem::take(&mut self.clients[client].held)]
            }
            Plant::WrongAnswer if is_answer && is_due && HEADER_LEN + 5 < frame.len() => {
                let mut frame = frame;
                // Of the data, behind its length, or of whatever stands there.
                frame[HEADER_LEN + 5] ^= 1;
                vec![frame]
            }
            Plant::OldZxid if is_answer && is_due => {
                let mut frame = frame;
                frame[4..12].copy_from_slice(&0i64.to_be_bytes());
                vec![frame]
            }
            _ => vec![frame],
        }
    }

    /// Whether an event is of a path, or below one, that a client watches for good.
    fn is_followed(&self, client: usize, frame: &[u8]) -> bool {
        let event = WatcherEvent::decode(&mut Reader::new(&frame[HEADER_LEN..]));
        let path = event.as_ref().ok().and_then(|event| event.path.as_deref()).unwrap_or_default();
        let mut all = self.clients[client].lasting.iter();
        all.any(|(at, deep)| at == path || *deep && super::model::is_from(at, path))
    }

    /// Changes a server's tree without a transaction.
    pub fn tamper(&mut self, server: usize) {
        let Some(process) = &self.servers[server].process else { return };
        let mut tree = process.shared.state.tree.write();
        let header = TxnHeader {
            client_id: 0,
            cxid: 0,
            zxid: tree.last_zxid().to_wire(),
            time: 0,
            kind: crate::model::op::SET_DATA,
        };
        let txn = Txn::SetData { path: "/pair1".into(), data: Some(b"tampered"), version: 99 };
        tree.apply(&header, &txn, &mut Vec::new());
    }
}
