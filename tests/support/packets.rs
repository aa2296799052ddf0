//! Packets of learner connections, read from bytes.

use bytes::BytesMut;
use oxkeeper::zab::Packet;

/// The packets in `bytes`, which must be whole.
pub fn packets(bytes: &[u8]) -> Vec<Packet> {
    let mut bytes = BytesMut::from(bytes);
    let mut packets = Vec::new();
    while let Some(packet) = Packet::decode(&mut bytes).expect("peers send valid packets") {
        packets.push(packet);
    }
    assert!(bytes.is_empty(), "half a packet");
    packets
}
