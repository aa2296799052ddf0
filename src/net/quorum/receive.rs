//! Reads a connection's bytes and gives them to its state machine.

use super::handle::{ConnectionState, Ending, lock};
use super::learner_port::UnfinishedPlace;
use crate::member::quorum_connection::{QuorumConnection, QuorumError, QuorumEvent};
use crate::net::peer_stream::PeerReader;
use std::future::poll_fn;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::task::spawn_blocking;
use tokio::time::{timeout, timeout_at};

const READ_BYTES: usize = 64 * 1024;
/// Bytes of a tree read in one go.
const TREE_READ_BYTES: usize = 1 << 20;

/// Receives until the connection ends.
///
/// # Errors
/// The reason why it is closed, as text.
pub(super) async fn receive(
    mut stream: impl PeerReader,
    connection: QuorumConnection,
    place: Option<UnfinishedPlace>,
    ending: &Ending,
) -> Result<(), String> {
    let mut has_spoken = false;
    let port = place.as_ref().map(UnfinishedPlace::port);
    let ended = receive_all(&mut stream, connection, place, ending, &mut has_spoken).await;
    if let (Err(why), Ok(peer), false) = (&ended, stream.peer_addr(), has_spoken) {
        if port.is_none_or(|port| port.may_log(peer.ip(), why, ending.state.now_ms())) {
            tracing::warn!(target: crate::model::STRANGERS, %peer, reason = %why, "connection to the quorum port closed; if the peer is a member, compare its server.N lines, TLS and SASL settings with this server's");
        } else {
            tracing::debug!(%peer, reason = %why, "connection to the quorum port closed");
        }
    }
    ended
}

async fn receive_all(
    stream: &mut impl PeerReader,
    mut connection: QuorumConnection,
    mut place: Option<UnfinishedPlace>,
    ending: &Ending,
    has_spoken: &mut bool,
) -> Result<(), String> {
    let state = &*ending.state;
    let mut events = Vec::new();
    let mut scratch = vec![0; READ_BYTES];
    let mut is_ready = false;
    let mut received = connection.receive(&[], state.now_ms(), &mut events);
    loop {
        if !is_ready {
            is_ready = exchange_sasl(&mut connection, state);
        }
        *has_spoken |= connection.has_spoken();
        if let Some(place) = &mut place {
            let bytes = connection.unfinished_bytes();
            place.note(connection.learner(), bytes, !events.is_empty());
        }
        for event in events.drain(..) {
            state.report_received(event).await;
        }
        received.map_err(|error| error.to_string())?;
        if let Some(work) = connection.take_work() {
            spawn_blocking(move || work.run()).await.map_err(|error| error.to_string())?;
            received = connection.receive(&[], state.now_ms(), &mut events);
            continue;
        }
        if connection.is_in_tree() {
            (connection, received, events) = receive_tree(stream, connection, state).await?;
            continue;
        }
        state.may_read().await;
        let reading = stream.read(&mut scratch);
        let read = match connection.deadline_ms() {
            None => reading.await,
            Some(deadline_ms) => match timeout_at(state.at(deadline_ms), reading).await {
                Ok(read) => read,
                Err(_) => {
                    received = connection.check_deadline(state.now_ms());
                    continue;
                }
            },
        };
        match read.map_err(|error| error.to_string())? {
            0 => return connection.end().map_err(|error| error.to_string()),
            read => received = connection.receive(&scratch[..read], state.now_ms(), &mut events),
        }
    }
}

/// Puts the bytes of the SASL exchange into the outbox; returns whether the exchange is done.
fn exchange_sasl(connection: &mut QuorumConnection, state: &ConnectionState) -> bool {
    let (output, is_ready) = (connection.take_output(), connection.is_ready());
    let mut outbox = lock(&state.outbox);
    outbox.put_sasl(&output);
    if is_ready {
        outbox.release();
    }
    drop(outbox);
    state.wake.notify_one();
    is_ready
}

/// Reads the next bytes of a tree, and has a thread of their own process them: there may be gigabytes.
async fn receive_tree(
    stream: &mut impl PeerReader,
    mut connection: QuorumConnection,
    state: &ConnectionState,
) -> Result<(QuorumConnection, Result<(), QuorumError>, Vec<QuorumEvent>), String> {
    // Much at a time, because each turn changes threads.
    let mut bytes = Vec::with_capacity(TREE_READ_BYTES);
    loop {
        if stream.read_buf(&mut bytes).await.map_err(|error| error.to_string())? == 0 {
            let error = connection.end().err();
            return Err(error.map_or_else(String::new, |error| error.to_string()));
        }
        let more = timeout(Duration::ZERO, poll_fn(|cx| stream.poll_more(cx))).await;
        if TREE_READ_BYTES <= bytes.len() || more.is_err() {
            break;
        }
    }
    let now_ms = state.now_ms();
    let taking = spawn_blocking(move || {
        let mut events = Vec::new();
        let received = connection.receive(&bytes, now_ms, &mut events);
        (connection, received, events)
    });
    taking.await.map_err(|error| error.to_string())
}
