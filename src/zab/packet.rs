//! Packets of learner connections (port 2888; Q-40..Q-58).
//!
//! A packet is the jute record `QuorumPacket {int type, long zxid, buffer data, vector<Id> authinfo}`, without a length
//! in front: where it ends is known once it is read. What stands in `data` depends on the type.
//!
//! Source: `Leader`, `LearnerHandler`, `Learner`, ZooKeeper 3.9.5.

use crate::model::{Epoch, Identity, ServerId, SessionId, Zxid};
use bytes::{Buf, Bytes, BytesMut};
use jute::{put_buffer, put_i32, put_i64};

/// The protocol version since 3.4.
pub const PROTOCOL_VERSION: i32 = 0x1_0000;
/// Limit on a client's identities: a length field alone must not cost memory.
const AUTH_MAX: usize = 4096;
/// A packet of this many times the longest data may be whole: a request and the identities of its client, which Java takes
/// as long as each of them is no longer than the data may be.
const WHOLE_FACTOR: usize = 4;

/// How long a packet may be. A longer one is refused once its lengths have come, before the rest is waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketLimits {
    /// Limit on its data, and on each of its identities.
    data_max: usize,
    /// Limit on the whole packet.
    whole_max: usize,
}

impl PacketLimits {
    /// * `entry_max`: `jute.maxbuffer` and its `extrasize` together, as Java's readers of records.
    pub const fn of(entry_max: usize) -> Self {
        Self { data_max: entry_max, whole_max: WHOLE_FACTOR * entry_max }
    }

    /// * `whole_max`: limit on a packet with all that belongs to it.
    pub const fn whole(whole_max: usize) -> Self {
        Self { data_max: whole_max, whole_max }
    }
}

mod kind {
    pub const REQUEST: i32 = 1;
    pub const PROPOSAL: i32 = 2;
    pub const ACK: i32 = 3;
    pub const COMMIT: i32 = 4;
    pub const PING: i32 = 5;
    pub const REVALIDATE: i32 = 6;
    pub const SYNC: i32 = 7;
    pub const INFORM: i32 = 8;
    pub const COMMIT_AND_ACTIVATE: i32 = 9;
    pub const NEW_LEADER: i32 = 10;
    pub const FOLLOWER_INFO: i32 = 11;
    pub const UP_TO_DATE: i32 = 12;
    pub const DIFF: i32 = 13;
    pub const TRUNC: i32 = 14;
    pub const SNAP: i32 = 15;
    pub const OBSERVER_INFO: i32 = 16;
    pub const LEADER_INFO: i32 = 17;
    pub const ACK_EPOCH: i32 = 18;
    pub const INFORM_AND_ACTIVATE: i32 = 19;
    /// Our own type, far from the numbers that ZooKeeper counts up; its observers log such a packet and go on.
    pub const SESSION_MOVED: i32 = 0x6f78;
}

/// A learner's id and versions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LearnerInfo {
    pub id: ServerId,
    pub protocol_version: i32,
    /// 0 from a server without configurations, as before 3.5.
    pub view_version: i64,
}

/// A write or sync that a client asked of a learner.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    pub session: SessionId,
    pub xid: i32,
    pub op: i32,
    /// The request's body as the client sent it.
    pub body: Bytes,
    /// The client's authenticated identities; none where a server asks in its own name.
    pub identities: Vec<Identity>,
}

/// One packet. Epochs travel as zxids whose counter is 0.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Packet {
    /// A follower's first packet, with its acceptedEpoch.
    FollowerInfo {
        accepted: Epoch,
        info: LearnerInfo,
    },
    ObserverInfo {
        accepted: Epoch,
        info: LearnerInfo,
    },
    LeaderInfo {
        epoch: Epoch,
    },
    /// `current`: the epoch of the last leader that it synchronised with; `None` when it had promised the new epoch before,
    /// so that the promise does not count twice. `last`: the last zxid of its log; `None` when it has nothing that counts.
    AckEpoch {
        current: Option<Epoch>,
        last: Option<Zxid>,
    },
    Diff {
        zxid: Zxid,
    },
    Trunc {
        zxid: Zxid,
    },
    /// The tree follows as raw bytes, then the string [`SIGNATURE`].
    Snap {
        zxid: Zxid,
    },
    /// `view`: the configuration in Java's text.
    NewLeader {
        epoch: Epoch,
        view: Bytes,
    },
    UpToDate,
    /// `entry`: TxnHeader, txn, digest as they are logged.
    Proposal {
        zxid: Zxid,
        entry: Bytes,
    },
    Ack {
        zxid: Zxid,
    },
    Commit {
        zxid: Zxid,
    },
    /// A committed proposal, for observers.
    Inform {
        zxid: Zxid,
        entry: Bytes,
    },
    CommitAndActivate {
        zxid: Zxid,
        leader: ServerId,
    },
    InformAndActivate {
        zxid: Zxid,
        leader: ServerId,
        entry: Bytes,
    },
    /// From the leader: `zxid` is the last it proposed, `touched` is `None`. From a learner: the sessions whose clients were heard
    /// from since the last PING, each {long session, int timeout}; maybe no session.
    Ping {
        zxid: i64,
        touched: Option<Bytes>,
    },
    /// From a learner: {long session, int timeout}. From the leader: {long session, boolean valid}.
    Revalidate {
        data: Bytes,
    },
    Request(Request),
    /// The answer to a [`Request`] for a sync.
    Sync,
    /// From a follower to one of its observers: the session is at another server now. {long session}. ZooKeeper has no such
    /// packet. [`Self::Revalidate`] would not do: the observer may have sent a REVALIDATE meanwhile, for a client that came back,
    /// and would take this for the answer.
    SessionMoved {
        session: SessionId,
    },
}

/// Follows the tree of a [`Packet::Snap`].
pub const SIGNATURE: &[u8] = b"BenWasHere";

/// Why bytes are not a packet.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PacketError {
    #[error("packet of unknown type {}{}", .0, of_clients(*.0))]
    Kind(i32),
    #[error("packet of type {kind} with {len} bytes of data")]
    Data { kind: i32, len: i64 },
    #[error("packet of type {kind} with zxid {zxid:#x}")]
    Zxid { kind: i32, zxid: i64 },
    #[error("packet of type {kind} with {count} identities")]
    Auth { kind: i32, count: i32 },
    #[error("packet of type {kind} with at least {len} bytes")]
    Long { kind: i32, len: usize },
    #[error("packet of type {kind} whose identities are not text")]
    Text { kind: i32 },
}

/// What the log says of the first bytes of a client, or of a four-letter word.
fn of_clients(kind: i32) -> String {
    match str::from_utf8(&kind.to_be_bytes()) {
        // The length of a client's first frame.
        _ if matches!(kind, 44 | 45) => ": is it a client? Clients use clientPort".to_owned(),
        Ok(text) if text.chars().all(|each| each.is_ascii_graphic()) => {
            format!(
                ": the bytes look like the word \"{text}\"; clients and four-letter words use clientPort"
            )
        }
        _ => String::new(),
    }
}

impl Packet {
    /// Appends the packet's bytes.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let epoch = |epoch: Epoch| Zxid::new(epoch, 0).to_wire();
        match self {
            Self::FollowerInfo { accepted, info } => {
                put(to, kind::FOLLOWER_INFO, epoch(*accepted), Some(&info.to_bytes()));
            }
            Self::ObserverInfo { accepted, info } => {
                put(to, kind::OBSERVER_INFO, epoch(*accepted), Some(&info.to_bytes()));
            }
            Self::LeaderInfo { epoch: new } => {
                put(to, kind::LEADER_INFO, epoch(*new), Some(&PROTOCOL_VERSION.to_be_bytes()));
            }
            Self::AckEpoch { current, last } => {
                let current = current.map_or(-1, |epoch| epoch.0 as i32);
                let last = last.map_or(-1, Zxid::to_wire);
                put(to, kind::ACK_EPOCH, last, Some(&current.to_be_bytes()));
            }
            Self::Diff { zxid } => put(to, kind::DIFF, zxid.to_wire(), None),
            Self::Trunc { zxid } => put(to, kind::TRUNC, zxid.to_wire(), None),
            Self::Snap { zxid } => put(to, kind::SNAP, zxid.to_wire(), None),
            Self::NewLeader { epoch: new, view } => {
                put(to, kind::NEW_LEADER, epoch(*new), Some(view));
            }
            Self::UpToDate => put(to, kind::UP_TO_DATE, -1, None),
            Self::Proposal { zxid, entry } => {
                put(to, kind::PROPOSAL, zxid.to_wire(), Some(entry));
            }
            Self::Ack { zxid } => put(to, kind::ACK, zxid.to_wire(), None),
            Self::Commit { zxid } => put(to, kind::COMMIT, zxid.to_wire(), None),
            Self::Inform { zxid, entry } => put(to, kind::INFORM, zxid.to_wire(), Some(entry)),
            Self::CommitAndActivate { zxid, leader } => {
                let leader = leader.0.to_be_bytes();
                put(to, kind::COMMIT_AND_ACTIVATE, zxid.to_wire(), Some(&leader));
            }
            Self::InformAndActivate { zxid, leader, entry } => {
                let data = [&leader.0.to_be_bytes(), &entry[..]].concat();
                put(to, kind::INFORM_AND_ACTIVATE, zxid.to_wire(), Some(&data));
            }
            Self::Ping { zxid, touched } => put(to, kind::PING, *zxid, touched.as_deref()),
            Self::Revalidate { data } => put(to, kind::REVALIDATE, -1, Some(data)),
            Self::Request(request) => request.encode(to),
            Self::Sync => put(to, kind::SYNC, 0, None),
            Self::SessionMoved { session } => {
                put(to, kind::SESSION_MOVED, -1, Some(&session.0.to_be_bytes()));
            }
        }
    }

    /// Appends the packet to others that came with it. The last of several ACKs or COMMITs in a row replaces the others; but not
    /// ACKs of NEWLEADER and UPTODATE, whose counter is 0, because they mean something else.
    pub fn push_to(self, packets: &mut Vec<Self>) {
        match (packets.last_mut(), &self) {
            (Some(Self::Ack { zxid: last }), Self::Ack { zxid })
                if last.counter() != 0 && zxid.counter() != 0 =>
            {
                *last = (*last).max(*zxid);
            }
            (Some(Self::Commit { zxid: last }), Self::Commit { zxid }) => *last = *zxid,
            _ => packets.push(self),
        }
    }

    /// Whether an encoded packet answers what a learner asked: SYNC, REVALIDATE or SESSIONMOVED.
    pub fn is_answer(encoded: &[u8]) -> bool {
        encoded.first_chunk().is_some_and(|kind| {
            let kind = i32::from_be_bytes(*kind);
            matches!(kind, kind::SYNC | kind::REVALIDATE | kind::SESSION_MOVED)
        })
    }

    /// The name of the type in ZooKeeper's sources.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FollowerInfo { .. } => "FOLLOWERINFO",
            Self::ObserverInfo { .. } => "OBSERVERINFO",
            Self::LeaderInfo { .. } => "LEADERINFO",
            Self::AckEpoch { .. } => "ACKEPOCH",
            Self::Diff { .. } => "DIFF",
            Self::Trunc { .. } => "TRUNC",
            Self::Snap { .. } => "SNAP",
            Self::NewLeader { .. } => "NEWLEADER",
            Self::UpToDate => "UPTODATE",
            Self::Proposal { .. } => "PROPOSAL",
            Self::Ack { .. } => "ACK",
            Self::Commit { .. } => "COMMIT",
            Self::Inform { .. } => "INFORM",
            Self::CommitAndActivate { .. } => "COMMITANDACTIVATE",
            Self::InformAndActivate { .. } => "INFORMANDACTIVATE",
            Self::Ping { .. } => "PING",
            Self::Revalidate { .. } => "REVALIDATE",
            Self::Request(_) => "REQUEST",
            Self::Sync => "SYNC",
            Self::SessionMoved { .. } => "SESSIONMOVED",
        }
    }

    pub fn to_bytes(&self) -> Bytes {
        let data_len = match self {
            Self::Proposal { entry, .. } | Self::Inform { entry, .. } => entry.len(),
            Self::NewLeader { view, .. } => view.len(),
            Self::Request(request) => request.body.len() + 64,
            _ => 0,
        };
        let mut to = Vec::with_capacity(40 + data_len);
        self.encode(&mut to);
        to.into()
    }

    /// Takes one packet off the front of bytes that are all there, so that its length needs no limit.
    ///
    /// # Errors
    /// As [`Self::decode_within`].
    pub fn decode(from: &mut BytesMut) -> Result<Option<Self>, PacketError> {
        Self::decode_within(from, PacketLimits::whole(usize::MAX))
    }

    /// Takes one packet off the front; `None` while it is not all there.
    ///
    /// # Errors
    /// [`PacketError`]: the sender is no peer, or lost the place where a packet begins.
    pub fn decode_within(
        from: &mut BytesMut,
        limits: PacketLimits,
    ) -> Result<Option<Self>, PacketError> {
        let Some(shape) = Shape::of(from, limits)? else { return Ok(None) };
        let mut bytes = from.split_to(shape.len).freeze();
        let (kind, zxid) = (bytes.get_i32(), bytes.get_i64());
        let has_data = bytes.get_i32() >= 0;
        let data = bytes.split_to(shape.data_len);
        let identities = identities(kind, bytes, shape.identities)?;
        Self::from_parts(kind, zxid, has_data, data, identities).map(Some)
    }

    fn from_parts(
        kind: i32,
        raw: i64,
        has_data: bool,
        mut data: Bytes,
        identities: Vec<Identity>,
    ) -> Result<Self, PacketError> {
        let zxid = Zxid::from_wire(raw).ok_or(PacketError::Zxid { kind, zxid: raw });
        let short = PacketError::Data { kind, len: if has_data { data.len() as i64 } else { -1 } };
        let at_least = |len: usize| if data.len() < len { Err(short.clone()) } else { Ok(()) };
        Ok(match kind {
            kind::FOLLOWER_INFO | kind::OBSERVER_INFO => {
                at_least(12)?;
                let (accepted, info) = (zxid?.epoch(), LearnerInfo::read(data));
                if kind == kind::FOLLOWER_INFO {
                    Self::FollowerInfo { accepted, info }
                } else {
                    Self::ObserverInfo { accepted, info }
                }
            }
            kind::LEADER_INFO => {
                at_least(4)?;
                Self::LeaderInfo { epoch: zxid?.epoch() }
            }
            kind::ACK_EPOCH => {
                at_least(4)?;
                let current = u32::try_from(data.get_i32()).ok().map(Epoch);
                Self::AckEpoch { current, last: Zxid::from_wire(raw) }
            }
            kind::DIFF => Self::Diff { zxid: zxid? },
            kind::TRUNC => Self::Trunc { zxid: zxid? },
            kind::SNAP => Self::Snap { zxid: zxid? },
            kind::NEW_LEADER => Self::NewLeader { epoch: zxid?.epoch(), view: data },
            kind::UP_TO_DATE => Self::UpToDate,
            kind::PROPOSAL => Self::Proposal { zxid: zxid?, entry: data },
            kind::ACK => Self::Ack { zxid: zxid? },
            kind::COMMIT => Self::Commit { zxid: zxid? },
            kind::INFORM => Self::Inform { zxid: zxid?, entry: data },
            kind::COMMIT_AND_ACTIVATE => {
                at_least(8)?;
                Self::CommitAndActivate { zxid: zxid?, leader: ServerId(data.get_i64()) }
            }
            kind::INFORM_AND_ACTIVATE => {
                at_least(8)?;
                let leader = ServerId(data.get_i64());
                Self::InformAndActivate { zxid: zxid?, leader, entry: data }
            }
            kind::PING => Self::Ping { zxid: raw, touched: has_data.then_some(data) },
            kind::REVALIDATE => {
                at_least(9)?;
                Self::Revalidate { data }
            }
            kind::SESSION_MOVED => {
                at_least(8)?;
                Self::SessionMoved { session: SessionId(data.get_i64()) }
            }
            kind::REQUEST => {
                at_least(16)?;
                Self::Request(Request {
                    session: SessionId(data.get_i64()),
                    xid: data.get_i32(),
                    op: data.get_i32(),
                    body: data,
                    identities,
                })
            }
            kind::SYNC => Self::Sync,
            other => return Err(PacketError::Kind(other)),
        })
    }
}

impl Request {
    fn encode(&self, to: &mut Vec<u8>) {
        put_i32(to, kind::REQUEST);
        put_i64(to, -1);
        put_i32(to, 16 + self.body.len() as i32);
        put_i64(to, self.session.0);
        put_i32(to, self.xid);
        put_i32(to, self.op);
        to.extend_from_slice(&self.body);
        // Java's null: a client has at least the identity of its address.
        put_i32(to, if self.identities.is_empty() { -1 } else { self.identities.len() as i32 });
        for Identity { scheme, id } in &self.identities {
            put_buffer(to, scheme.as_bytes());
            put_buffer(to, id.as_bytes());
        }
    }
}

impl LearnerInfo {
    fn read(mut from: Bytes) -> Self {
        Self {
            id: ServerId(from.get_i64()),
            protocol_version: from.get_i32(),
            view_version: from.try_get_i64().unwrap_or(0),
        }
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut to = Vec::with_capacity(20);
        put_i64(&mut to, self.id.0);
        put_i32(&mut to, self.protocol_version);
        put_i64(&mut to, self.view_version);
        to
    }
}

fn put(to: &mut Vec<u8>, kind: i32, zxid: i64, data: Option<&[u8]>) {
    put_i32(to, kind);
    put_i64(to, zxid);
    match data {
        Some(data) => put_buffer(to, data),
        None => put_i32(to, -1),
    }
    put_i32(to, -1); // No identities.
}

/// Lengths of the parts of a packet.
struct Shape {
    len: usize,
    data_len: usize,
    identities: usize,
}

impl Shape {
    /// `None` while the packet is not all there.
    fn of(bytes: &[u8], limits: PacketLimits) -> Result<Option<Self>, PacketError> {
        let i32_at = |at: usize| {
            let four = bytes.get(at..at + 4)?;
            Some(i32::from_be_bytes(four.try_into().expect("four bytes")))
        };
        let Some(kind) = i32_at(0) else { return Ok(None) };
        let is_known =
            matches!(kind, kind::REQUEST..=kind::INFORM_AND_ACTIVATE | kind::SESSION_MOVED);
        if !is_known {
            return Err(PacketError::Kind(kind)); // Before the rest has come.
        }
        let Some(data_len) = i32_at(12) else { return Ok(None) };
        let len_wrong = PacketError::Data { kind, len: i64::from(data_len) };
        let data_len = match data_len {
            -1 => 0,
            len => {
                let len = usize::try_from(len).ok().filter(|len| *len <= limits.data_max);
                len.ok_or(len_wrong)?
            }
        };
        let mut at = 16 + data_len;
        let Some(count) = i32_at(at) else { return Ok(None) };
        at += 4;
        let identities = match count {
            -1 => 0,
            _ => usize::try_from(count)
                .ok()
                .filter(|count| *count <= AUTH_MAX)
                .ok_or(PacketError::Auth { kind, count })?,
        };
        for _ in 0..2 * identities {
            let Some(len) = i32_at(at) else { return Ok(None) };
            let len = len.max(0) as usize;
            at += 4 + len;
            if limits.data_max < len || limits.whole_max < at {
                return Err(PacketError::Long { kind, len: at });
            }
        }
        Ok((at <= bytes.len()).then_some(Self { len: at, data_len, identities }))
    }
}

/// `from`: the bytes after the data.
fn identities(kind: i32, mut from: Bytes, count: usize) -> Result<Vec<Identity>, PacketError> {
    from.advance(4); // Their number.
    let mut text = || {
        let len = from.get_i32().max(0) as usize;
        let bytes = from.split_to(len);
        std::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| PacketError::Text { kind })
    };
    let mut identities = Vec::with_capacity(count.min(16));
    for _ in 0..count {
        let (scheme, id) = (text()?, text()?);
        identities.push(Identity::new(&scheme, &id));
    }
    Ok(identities)
}
