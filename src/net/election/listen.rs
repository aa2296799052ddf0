//! Listens on an address of the election port and accepts connections.

use super::socket::{Report, Reports};
use crate::member::ListenAddress;
use crate::member::election_connections::Input;
use crate::member::election_listeners::ListenerId;
use crate::member::listening::{Listening, Port};
use crate::net::bind::{PortSetting, bind_in_task};
use crate::net::listening_socket::{ListeningEvent, ListeningSocket};

const BACKLOG: i32 = 50;

/// Tries once to bind the address, and if that succeeds, accepts connections for ever. The name is resolved each time.
pub async fn listen(listener: ListenerId, place: ListenAddress, reports: Reports) {
    let (mut machine, mut socket) = (Listening::new(Port::Elections), ListeningSocket::new(None));
    let bind = || bind_in_task(place.clone(), PortSetting::ServerLine, BACKLOG);
    loop {
        match socket.next(&mut machine, bind).await {
            ListeningEvent::Bound(_) => reports.put_input(Input::Listening { listener }),
            ListeningEvent::BindFailed { error, .. } => {
                return reports.put_input(Input::ListenFailed { listener, error });
            }
            ListeningEvent::Accepted(stream, peer) => {
                let (peer, permit) = (peer.to_string(), reports.permit().await);
                reports.put(Report::Accepted { stream, peer, permit });
            }
            ListeningEvent::AcceptFailed(error) => {
                tracing::warn!(
                    target: crate::model::STRANGERS, %error,
                    "election connection not accepted: if the error is about open files, raise ulimit -n"
                );
            }
        }
    }
}
