//! The same captures through the socket code: cut into packets there, with the tree behind SNAP on its own way.

use crate::tape::{self, Piece};
use crate::words::{self, Said, Word};
use crate::{ALL, tree};
use oxkeeper::net::quorum::{PeerEvent, Source, TreeSink, start};
use oxkeeper::tree::load::Loader;
use oxkeeper::zab::Packet;
use std::any::Any;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

struct Sink(Loader);

impl TreeSink for Sink {
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), String> {
        let taken = self.0.take(bytes).map_err(|error| error.to_string())?;
        Ok((taken.bytes, taken.ended))
    }

    fn finish(self: Box<Self>, packet: &Packet) -> Result<Box<dyn Any + Send>, String> {
        let Packet::Snap { zxid } = packet else { return Err("no SNAP".to_owned()) };
        let tree = self.0.finish(*zxid).map_err(|error| error.to_string())?;
        Ok(Box::new(tree.node_count()))
    }
}

/// What is reported of one side of a capture: packets, and the number of znodes of trees.
async fn heard(pieces: &[Piece], is_dialer: bool) -> (Vec<Packet>, Vec<usize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let mut writer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (events, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let trees: Arc<oxkeeper::net::quorum::TreeSinks> =
        Arc::new(|| Box::new(Sink(Loader::new(tree::OPTIONS))));
    let _handle = start(std::future::ready(Ok(stream)), Source::Leader(1), events, Some(trees));
    for piece in pieces.iter().filter(|piece| piece.is_dialer == is_dialer) {
        writer.write_all(&piece.bytes).await.unwrap();
    }
    drop(writer);
    let (mut packets, mut trees) = (Vec::new(), Vec::new());
    while let Some(event) = reported.recv().await {
        match event {
            PeerEvent::Packets { packets: more, .. } => {
                more.into_iter().for_each(|packet| packet.push_to(&mut packets));
            }
            PeerEvent::Tree { packet, tree, .. } => {
                packets.push(packet);
                trees.push(*tree.downcast().expect("a number"));
            }
            PeerEvent::Gone { why, .. } => {
                assert_eq!(why, "closed by the other side");
                break;
            }
            PeerEvent::Progress { .. } | PeerEvent::Accepted { .. } => {}
        }
    }
    (packets, trees)
}

#[tokio::test]
async fn sockets_give_what_was_said() {
    for name in ALL {
        let pieces = tape::read("quorum", name);
        for side in [false, true] {
            let (mut wanted, mut trees) = (Vec::new(), Vec::new());
            for word in words::of(&pieces) {
                let Word { is_dialer, said, .. } = word;
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
