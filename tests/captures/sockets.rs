//! The same captures through the socket code, which splits them into packets and loads the tree after SNAP.

use super::packets::{self, Captured, Said};
use super::tape::{self, Piece};
use super::tree;
use crate::ALL;
use oxkeeper::member::quorum_connection::{QuorumConnection, QuorumEvent};
use oxkeeper::member::sasl_exchange::NoSasl;
use oxkeeper::net::quorum::{PeerEvent, start};
use oxkeeper::zab::Packet;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// What the socket code reports for one end of a capture: its packets, and the number of znodes in each tree.
async fn heard(pieces: &[Piece], is_dialer: bool) -> (Vec<Packet>, Vec<usize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut writer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (events, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let connection = QuorumConnection::dialed(1, Box::new(NoSasl), tree::OPTIONS);
    let _handle = start(std::future::ready(Ok(stream.into())), connection, events.into());
    for piece in pieces.iter().filter(|piece| piece.is_dialer == is_dialer) {
        writer.write_all(&piece.bytes).await.unwrap();
    }
    drop(writer);
    let (mut packets, mut trees) = (Vec::new(), Vec::new());
    while let Some(event) = reported.recv().await {
        match event {
            PeerEvent::Received { event: QuorumEvent::Packets(more), .. } => {
                more.into_iter().for_each(|packet| packet.push_to(&mut packets));
            }
            PeerEvent::Received { event: QuorumEvent::Tree { zxid, tree }, .. } => {
                packets.push(Packet::Snap { zxid });
                trees.push(tree.node_count());
            }
            PeerEvent::Gone { why, .. } => {
                assert_eq!(why, "closed by the peer");
                break;
            }
            PeerEvent::Received { event: QuorumEvent::Progress, .. }
            | PeerEvent::Accepted { .. }
            | PeerEvent::Sent { .. } => {}
        }
    }
    (packets, trees)
}

#[tokio::test]
async fn sockets_give_the_packets_and_trees_of_each_capture() {
    for name in ALL {
        let pieces = tape::read("quorum", name);
        for side in [false, true] {
            let (mut wanted, mut trees) = (Vec::new(), Vec::new());
            for captured in packets::of(&pieces) {
                let Captured { is_dialer, said, .. } = captured;
                match said {
                    Said::Packet(packet) if is_dialer == side => packet.push_to(&mut wanted),
                    Said::Tree { body } if is_dialer == side => trees.push(tree::count(&body)),
                    _ => {}
                }
            }
            let (packets, znodes) = heard(&pieces, side).await;
            assert_eq!(znodes, trees, "{name}");
            for (heard, said) in packets.iter().zip(&wanted) {
                assert_eq!(heard, said, "{name}");
            }
            assert_eq!(packets.len(), wanted.len(), "{name}");
        }
    }
}
