//! Listens for learners and accepts their connections.

use super::connection::start_accepted;
use super::handle::PeerEvent;
use super::learner_port::LearnerPort;
use crate::member::listening::{ListenAddress, Listening, Port};
use crate::member::quorum_connection::QuorumConnection;
use crate::member::sasl_exchange::{ConnectionKind, SaslExchanges};
use crate::net::bind::bind_in_task;
use crate::net::listening_socket::{ListeningEvent, ListeningSocket};
use crate::net::{PeerSecurity, Sink};
use std::sync::Arc;

const BACKLOG: i32 = 128;

/// Listens for learners; tries for ever to bind the address.
///
/// * `port`: the state that the connections of all such listeners share.
pub async fn listen(
    address: ListenAddress,
    port: Arc<LearnerPort>,
    exchanges: Arc<dyn SaslExchanges>,
    security: PeerSecurity,
    events: Sink<PeerEvent>,
) {
    let (mut machine, mut socket) = (Listening::new(Port::Learners), ListeningSocket::new(None));
    let open = || bind_in_task(address.clone(), port.set_by(&address), BACKLOG);
    loop {
        match socket.next(&mut machine, open).await {
            ListeningEvent::Bound(_) => port.note_attempt(&address, None),
            ListeningEvent::BindFailed { error, failures } => {
                port.note_attempt(&address, Some(&error));
                if failures == 1 {
                    tracing::error!(
                        %address, %error,
                        "can't listen for learners, tried again: do what the error says, or correct dataDir/myid if it has another server's number"
                    );
                }
            }
            ListeningEvent::Accepted(stream, from) => {
                let id = port.next_connection();
                let exchange = exchanges.accepted(ConnectionKind::Learner, &from.to_string());
                let connection = port.limited(QuorumConnection::accepted(id, exchange, 0));
                let (port, events) = (port.clone(), events.clone());
                start_accepted(port, id, stream, from, security.clone(), connection, events);
            }
            ListeningEvent::AcceptFailed(error) => {
                tracing::warn!(target: crate::model::STRANGERS, %error, "learner not accepted: if the error is about open files, raise ulimit -n")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::quorum_connection::{QuorumEvent, QuorumPeer};
    use crate::member::sasl_exchange::NoSasl;
    use crate::net::quorum::{DialTimeouts, dial};
    use crate::zab::Packet;
    use bytes::Bytes;
    use std::net::IpAddr;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;
    use tokio::sync::mpsc;

    /// Connections to a listener, and their events.
    async fn dialed(count: usize) -> (Vec<TcpStream>, mpsc::UnboundedReceiver<PeerEvent>) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (sender, events) = mpsc::unbounded_channel();
        let address = ListenAddress { host: Some("127.0.0.1".to_owned()), port };
        let (exchanges, plain) = (Arc::new(NoSasl), PeerSecurity::default());
        tokio::spawn(listen(address, Arc::default(), exchanges, plain, sender.into()));
        let there = vec![("127.0.0.1".to_owned(), port)];
        let long = Duration::from_secs(60);
        let patience = DialTimeouts { silence: long, refusals: long, others: None };
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(dial(there.clone(), patience).await.unwrap().socket);
        }
        (streams, events)
    }

    async fn gone(events: &mut mpsc::UnboundedReceiver<PeerEvent>) -> (QuorumPeer, String) {
        let mut kept = Vec::new(); // A handle that is dropped closes its connection.
        loop {
            match events.recv().await.unwrap() {
                PeerEvent::Gone { from, why } => return (from, why),
                event => kept.push(event),
            }
        }
    }

    #[tokio::test]
    async fn connection_of_another_protocol_is_closed_with_its_name() {
        let cases: [(&[u8], &str); 3] = [
            (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03abcdefghi", "TLS"),
            (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "HTTP"),
            (
                b"\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\x02\0\0\0\x09a:1:2:3:4",
                "dials this quorum port for an election",
            ),
        ];
        for (bytes, word) in cases {
            let (mut streams, mut events) = dialed(1).await;
            streams[0].write_all(bytes).await.unwrap();
            let (_, why) = gone(&mut events).await;
            assert!(why.contains(word), "{why}");
        }
    }

    /// If the task ran before, the learner's first packet would be of an unknown connection, and discarded.
    #[tokio::test]
    async fn connection_is_reported_before_its_task_begins() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = ListenAddress { host: Some("127.0.0.1".to_owned()), port };
        let (sender, mut tasks) = mpsc::unbounded_channel();
        let events = Sink::new(move |event| {
            if let PeerEvent::Accepted { handle, .. } = event {
                let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
                let _test_over = sender.send((alive, handle));
            }
        });
        let (exchanges, plain) = (Arc::new(NoSasl), PeerSecurity::default());
        tokio::spawn(listen(address, Arc::default(), exchanges, plain, events));
        // Not with `dial`, which has tasks of its own.
        let _stream = loop {
            match TcpStream::connect(("127.0.0.1".parse::<IpAddr>().unwrap(), port)).await {
                Ok(stream) => break stream,
                Err(_not_bound) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        let (at_report, _handle) = tasks.recv().await.unwrap();
        let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(alive, at_report + 1, "the connection's task");
    }

    /// A transaction that is kept must not keep the bytes that came with it.
    // rows: Q-53
    #[tokio::test]
    async fn packet_that_is_kept_keeps_little_more_memory_than_its_own_size() {
        let (mut streams, mut events) = dialed(1).await;
        let entry = Bytes::from(vec![7; 36]);
        let packet = Packet::Proposal { zxid: crate::model::Zxid::ZERO, entry }.to_bytes();
        let (mut kept, mut handle) = (Vec::new(), None);
        while kept.len() < 100 {
            if handle.is_some() {
                streams[0].write_all(&packet).await.unwrap();
            }
            match events.recv().await.unwrap() {
                PeerEvent::Received { event: QuorumEvent::Packets(packets), .. } => {
                    kept.extend(packets);
                }
                PeerEvent::Accepted { handle: accepted, .. } => handle = Some(accepted),
                _ => panic!("it ended"),
            }
        }
        let sizes = kept.into_iter().filter_map(|packet| {
            let Packet::Proposal { entry, .. } = packet else { panic!("{packet:?}") };
            entry.try_into_mut().ok().map(|whole| whole.capacity())
        });
        let sizes: Vec<usize> = sizes.collect();
        assert!(50 < sizes.len() && sizes.iter().all(|&size| size < 4096), "{sizes:?}");
    }
}
