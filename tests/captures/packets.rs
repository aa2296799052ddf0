//! A learner connection, packet by packet.

use super::tape::Piece;
use super::{entry, request, tree};
use bytes::{Buf, Bytes, BytesMut};
use oxkeeper::model::{View, Zxid};
use oxkeeper::tree::load::Loader;
use oxkeeper::zab::{LearnerInfo, Packet, SIGNATURE};

pub enum Said {
    Packet(Packet),
    /// The tree after SNAP, without the signature.
    Tree {
        body: Vec<u8>,
    },
}

/// One packet or tree.
pub struct Captured {
    pub is_dialer: bool,
    pub said: Said,
    pub bytes: Vec<u8>,
}

/// The bytes from one end of a connection that don't form a whole packet or tree yet.
#[derive(Default)]
struct PacketReader {
    unread: BytesMut,
    tree: Option<(Loader, Vec<u8>)>,
}

/// All packets and trees of a capture, each decoded and encoded again to the same bytes.
pub fn of(pieces: &[Piece]) -> Vec<Captured> {
    let mut readers = [PacketReader::default(), PacketReader::default()];
    let mut packets = Vec::new();
    for Piece { is_dialer, bytes } in pieces {
        let reader = &mut readers[usize::from(*is_dialer)];
        reader.unread.extend_from_slice(bytes);
        while let Some((said, bytes)) = reader.next() {
            packets.push(Captured { is_dialer: *is_dialer, said, bytes });
        }
    }
    for reader in readers {
        assert!(reader.unread.is_empty() && reader.tree.is_none(), "the last packet is cut short");
    }
    packets
}

impl PacketReader {
    fn next(&mut self) -> Option<(Said, Vec<u8>)> {
        if self.tree.is_some() {
            return self.rest_of_tree();
        }
        let before = self.unread.clone();
        let packet = Packet::decode(&mut self.unread).expect("a packet of Java's")?;
        let bytes = before[..before.len() - self.unread.len()].to_vec();
        let mut again = Vec::new();
        packet.encode(&mut again);
        assert_eq!(again, bytes, "{packet:?}");
        if matches!(packet, Packet::Snap { .. }) {
            self.tree = Some((Loader::new(tree::OPTIONS), Vec::new()));
        }
        Some((Said::Packet(packet), bytes))
    }

    fn rest_of_tree(&mut self) -> Option<(Said, Vec<u8>)> {
        let (loader, body) = self.tree.as_mut()?;
        let taken = loader.take(&self.unread).expect("a tree of Java's");
        body.extend_from_slice(&self.unread.split_to(taken.bytes));
        let sealed = [&(SIGNATURE.len() as u32).to_be_bytes()[..], SIGNATURE].concat();
        if !taken.ended || self.unread.len() < sealed.len() {
            return None;
        }
        assert_eq!(self.unread.split_to(sealed.len()), sealed);
        let (_, body) = self.tree.take()?;
        assert_eq!(tree::again(&body), body);
        let bytes = [&body[..], &sealed].concat();
        Some((Said::Tree { body }, bytes))
    }
}

fn info(info: &LearnerInfo) -> String {
    let LearnerInfo { id, protocol_version, view_version } = info;
    format!("server {id} protocol {protocol_version:#x} configuration {view_version:#x}")
}

/// The configuration in one line; our text of it must be Java's.
pub fn view(bytes: &[u8]) -> String {
    let read = View::from_bytes(bytes).expect("a configuration of Java's");
    let text = std::str::from_utf8(bytes).expect("text");
    assert_eq!(read.to_string(), text);
    text.replace('\n', " ")
}

fn sessions(mut from: Bytes) -> String {
    let mut text = String::new();
    while from.has_remaining() {
        let (session, timeout_ms) = (from.get_i64(), from.get_i32());
        text += &format!(" {session:#x} {timeout_ms} ms");
    }
    text
}

pub fn text(said: &Said) -> String {
    let packet = match said {
        Said::Packet(packet) => packet,
        Said::Tree { body } => return tree::text(body),
    };
    let name = packet.name();
    match packet {
        Packet::FollowerInfo { accepted, info: who }
        | Packet::ObserverInfo { accepted, info: who } => {
            format!("{name} {} accepted {}", info(who), accepted.0)
        }
        Packet::LeaderInfo { epoch } => format!("{name} epoch {}", epoch.0),
        Packet::AckEpoch { current, last } => {
            let current = current.map_or("promised before".to_owned(), |epoch| epoch.0.to_string());
            let last = last.map_or("none".to_owned(), |last| format!("{last:?}"));
            format!("{name} current {current} last {last}")
        }
        Packet::Diff { zxid }
        | Packet::Trunc { zxid }
        | Packet::Snap { zxid }
        | Packet::Ack { zxid }
        | Packet::Commit { zxid } => format!("{name} {zxid:?}"),
        Packet::NewLeader { epoch, view: text } => {
            format!("{name} epoch {} {}", epoch.0, view(text))
        }
        Packet::UpToDate | Packet::Sync => name.to_owned(),
        Packet::Proposal { zxid, entry: bytes } | Packet::Inform { zxid, entry: bytes } => {
            format!("{name} {zxid:?} {}", entry::text(*zxid, bytes))
        }
        Packet::CommitAndActivate { zxid, leader } => format!("{name} {zxid:?} leader {leader}"),
        Packet::InformAndActivate { zxid, leader, entry: bytes } => {
            format!("{name} {zxid:?} leader {leader} {}", entry::text(*zxid, bytes))
        }
        Packet::Ping { zxid, touched } => {
            let zxid =
                Zxid::from_wire(*zxid).map_or(format!("{zxid:#x}"), |zxid| format!("{zxid:?}"));
            let sessions =
                touched.clone().map_or(String::new(), |it| format!(" sessions{}", sessions(it)));
            format!("{name} {zxid}{sessions}")
        }
        Packet::Revalidate { data } if data.len() == 12 => {
            format!("{name}{}", sessions(data.clone()))
        }
        Packet::Revalidate { data } => {
            let mut data = data.clone();
            let session = data.get_i64();
            assert_eq!(data.len(), 1);
            format!("{name} {session:#x} {}", if data[0] == 1 { "valid" } else { "invalid" })
        }
        Packet::Request(asked) => format!("{name} {}", request::text(asked)),
        Packet::SessionMoved { session } => format!("{name} {session}"),
    }
}
