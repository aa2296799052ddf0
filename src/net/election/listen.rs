//! Listens at a place and accepts connections there.

use super::socket::{Report, Reports};
use crate::member::ListenAddress;
use crate::member::election_connections::Input;
use crate::member::election_listeners::ListenerId;
use crate::member::listening::Port;
use crate::net::bind::bind_in_task;
use crate::net::descriptors::leaving_enough;
use std::io;
use std::time::Duration;
use tokio::net::TcpListener;

const BACKLOG: i32 = 50;
/// How long accepting pauses when too few descriptors are left.
const NO_DESCRIPTORS_PAUSE: Duration = Duration::from_millis(500);

/// One attempt to listen: until it cannot, or cannot accept any more. The name is looked up each time.
pub async fn listen(listener: ListenerId, place: ListenAddress, reports: Reports) {
    let error = match bind_in_task(place, BACKLOG).await {
        Ok(socket) => {
            reports.put_input(Input::Listening { listener });
            accept(&socket, &reports).await.to_string()
        }
        Err(error) => error,
    };
    reports.put_input(Input::ListenFailed { listener, error });
}

/// Returns when nothing can be accepted any more.
async fn accept(socket: &TcpListener, reports: &Reports) -> io::Error {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                let stream = match leaving_enough(Port::Elections, stream) {
                    Ok(stream) => stream,
                    Err(error) => {
                        tracing::warn!(target: crate::model::STRANGERS, %error, "accept an election connection");
                        tokio::time::sleep(NO_DESCRIPTORS_PAUSE).await;
                        continue;
                    }
                };
                let (peer, permit) = (peer.to_string(), reports.permit().await);
                reports.put(Report::Accepted { stream, peer, permit });
            }
            Err(error) => return error,
        }
    }
}
