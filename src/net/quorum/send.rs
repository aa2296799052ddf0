//! Writes the bytes of a connection's outbox.

use super::handle::{ConnectionState, lock};
use crate::member::quorum_outbox::{Next, PIECE_CAPACITY};
use crate::net::peer_stream::PeerWriter;
use tokio::io::AsyncWriteExt;

/// Bytes written in one go.
const WRITE_BYTES: usize = 256 * 1024;

/// Sends until the connection fails.
///
/// # Errors
/// The reason why it is closed, as text.
pub(super) async fn send(
    mut stream: impl PeerWriter,
    state: &ConnectionState,
) -> Result<(), String> {
    // Empty until something is sent: hundreds of strangers may be connected without a hello, and they are sent nothing.
    let mut buffer = Vec::new();
    loop {
        let next = state.next_to_send();
        let is_piece = matches!(next, Next::Piece(_));
        match next {
            Next::Nothing if buffer.is_empty() => {
                state.wake.notified().await;
                continue;
            }
            Next::Nothing => {}
            Next::Bytes(all) => {
                all.iter().for_each(|bytes| buffer.extend_from_slice(bytes));
                if buffer.len() < WRITE_BYTES {
                    continue;
                }
            }
            Next::Piece(tree) => {
                let (before, mut events) = (buffer.len(), Vec::new());
                let piece = tree.piece(&mut buffer);
                let len = buffer.len() - before;
                let now_ms = state.now_ms();
                let taken =
                    lock(&state.outbox).take_piece(piece, len, &mut buffer, now_ms, &mut events);
                state.report_sent(events);
                taken.map_err(|error| error.to_string())?;
            }
        }
        stream.write_all(&buffer).await.map_err(|error| error.to_string())?;
        buffer.clear();
        if is_piece {
            buffer.shrink_to(PIECE_CAPACITY);
            // Other tasks run meanwhile, and clients are served.
            tokio::task::yield_now().await;
        } else if buffer.capacity() > 4 * WRITE_BYTES {
            buffer = Vec::with_capacity(WRITE_BYTES);
        }
    }
}
