//! One learner connection, as long as its handle is kept.

use super::handle::{ConnectionState, Ending, PeerEvent, PeerHandle};
use super::receive::receive;
use super::send::send;
use crate::member::quorum_connection::QuorumConnection;
use crate::net::Sink;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Serves a connection until its handle is dropped or it ends, which is reported.
///
/// * `connecting`: gives the connection; what is sent meanwhile waits.
pub fn start(
    connecting: impl Future<Output = io::Result<TcpStream>> + Send + 'static,
    connection: QuorumConnection,
    events: Sink<PeerEvent>,
) -> PeerHandle {
    let stop = CancellationToken::new();
    let state = Arc::new(ConnectionState {
        peer: connection.peer(),
        outbox: Mutex::default(),
        wake: Notify::new(),
        began: Instant::now(),
        events,
    });
    let handle = PeerHandle { state: state.clone(), unsent: Vec::new(), stop: stop.clone() };
    let mut ending = Ending { state, why: "its task failed".to_owned() };
    tokio::spawn(async move {
        let transfer = transfer(connecting, connection, &ending);
        let ended = tokio::select! {
            biased;
            // What was put before the handle was dropped is sent if the socket takes it.
            ended = transfer => ended,
            () = stop.cancelled() => Err("closed here".to_owned()),
        };
        ending.because(ended);
    });
    handle
}

async fn transfer(
    connecting: impl Future<Output = io::Result<TcpStream>>,
    connection: QuorumConnection,
    ending: &Ending,
) -> Result<(), String> {
    let stream = connecting.await.map_err(|error| error.to_string())?;
    let _best_effort = stream.set_nodelay(true);
    let (reading, writing) = stream.into_split();
    tokio::select! {
        ended = receive(reading, connection, ending) => ended,
        ended = send(writing, &ending.state) => ended,
    }
}
