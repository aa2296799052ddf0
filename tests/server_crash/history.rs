//! What was sent to the log, what of it was answered and when, and the check of a state that a crash left.

use std::collections::BTreeMap;

use jute::Reader;
use jute::txn::{MultiTxn, TxnHeader};
use oxkeeper::model::{Code, op};
use oxkeeper::tree::Tree;

use super::model::Model;

pub struct History {
    /// The state with all that was sent.
    pub now: Model,
    /// The state at each zxid that a crash may still leave.
    models: BTreeMap<i64, Model>,
    refused: BTreeMap<i64, Code>,
    /// When a session began.
    opened: BTreeMap<i64, i64>,
    /// (changes to the disk, highest zxid answered by then); both increase.
    acks: Vec<(u64, i64)>,
    /// Whether states are kept. States are not kept while a server is being filled.
    pub keeps: bool,
    /// Txns by type.
    pub kinds: BTreeMap<i32, u32>,
    /// Parts of multis by type.
    pub part_kinds: BTreeMap<i32, u32>,
    /// Multis with a refused part after at least one that would have changed something.
    pub failed_multis: u32,
}

impl History {
    /// A server that begins with this state, all of it acknowledged.
    pub fn new(now: Model) -> Self {
        let zxid = now.zxid;
        Self {
            models: BTreeMap::from([(zxid, now.clone())]),
            now,
            refused: BTreeMap::new(),
            opened: BTreeMap::new(),
            acks: vec![(0, zxid)],
            keeps: true,
            kinds: BTreeMap::new(),
            part_kinds: BTreeMap::new(),
            failed_multis: 0,
        }
    }

    /// Notes that an entry goes to the log.
    pub fn sent(&mut self, zxid: i64, entry: &[u8]) {
        assert!(self.now.zxid < zxid);
        let mut from = Reader::new(entry);
        let header: TxnHeader = from.read().unwrap();
        assert_eq!(header.zxid, zxid);
        *self.kinds.entry(header.kind).or_default() += 1;
        if header.kind == op::MULTI {
            let multi: MultiTxn<'_> = from.read().unwrap();
            let kinds: Vec<i32> = multi.txns.iter().map(|part| part.kind).collect();
            kinds.iter().for_each(|&kind| *self.part_kinds.entry(kind).or_default() += 1);
            let refused = kinds.iter().position(|&kind| kind == op::ERROR);
            self.failed_multis += u32::from(refused > Some(0));
        }
        let before = self.now.sessions.len();
        let refused = self.now.apply(entry);
        self.refused.extend(refused.map(|code| (zxid, code)));
        if before < self.now.sessions.len() {
            self.opened.insert(header.client_id, zxid);
        }
        if self.keeps {
            self.models.insert(zxid, self.now.clone());
        }
    }

    /// Notes that all through `zxid` was answered after this many changes to the disk.
    pub fn answered(&mut self, changes: u64, zxid: i64) {
        assert!(self.acked() <= zxid && zxid <= self.now.zxid);
        self.acks.push((changes, zxid));
    }

    /// The last zxid answered.
    pub fn acked(&self) -> i64 {
        self.acks.last().map_or(0, |ack| ack.1)
    }

    /// What must have survived in an image of the disk after this many changes.
    pub fn acked_at(&self, changes: u64) -> i64 {
        let answered = self.acks.partition_point(|ack| ack.0 <= changes);
        self.acks[answered.saturating_sub(1)].1
    }

    pub fn model(&self, zxid: i64) -> Option<&Model> {
        self.models.get(&zxid)
    }

    /// The code that the write with this zxid was refused with.
    pub fn refusal(&self, zxid: i64) -> Code {
        self.refused.get(&zxid).copied().unwrap_or(Code::OK)
    }

    /// The zxid of a session's beginning.
    pub fn opened(&self, session: i64) -> Option<i64> {
        self.opened.get(&session).copied()
    }

    /// Drops the states that no later image can hold, after the images so far were checked.
    pub fn forget(&mut self) {
        let acked = self.acked();
        self.models = self.models.split_off(&acked);
        if !self.models.contains_key(&acked) {
            assert!(!self.keeps);
        }
        self.acks.drain(..self.acks.len() - 1);
    }

    /// Starts to keep states, after a server was filled.
    pub fn keep(&mut self) {
        assert_eq!(self.acked(), self.now.zxid);
        self.keeps = true;
        self.models.insert(self.now.zxid, self.now.clone());
    }

    /// `None` if `tree` is exactly the state at some zxid from `acked` on, otherwise what is wrong.
    ///
    /// * `full`: compare znode by znode, not by digest and counts alone.
    pub fn judge(&self, tree: &Tree, acked: i64, full: bool) -> Option<String> {
        let last = tree.last_zxid().to_wire();
        if last < acked {
            return Some(format!("ends at {last:#x}, but {acked:#x} was answered"));
        }
        let Some(model) = self.models.get(&last) else {
            return Some(format!("ends at {last:#x}, which was never sent or already given up"));
        };
        if full {
            return model.differs_from(tree);
        }
        let counts = (tree.node_count() - 1, tree.digest());
        let expected = (model.nodes.len(), model.digest());
        (counts != expected).then(|| format!("znodes and digest {counts:?}, expected {expected:?}"))
    }
}
