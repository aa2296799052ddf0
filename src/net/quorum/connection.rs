//! One learner connection, as long as its handle is kept.

use super::handle::{ConnectionState, Ending, PeerEvent, PeerHandle, REPORTS_MAX};
use super::learner_port::{LearnerPort, UnfinishedPlace};
use super::receive::receive;
use super::send::send;
use crate::member::quorum_connection::QuorumConnection;
use crate::net::peer_stream::{PeerReader, PeerStream, PeerWriter, TlsHalf};
use crate::net::{PeerSecurity, Sink};
use crate::zab::LearnerConnectionId;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

const CLOSED_HERE: &str = "closed by this server";
const SECURED_LATE: &str =
    "neither secured nor refused in time: look at name servers, and at the hosts of CRLs and OCSP";

/// Serves a connection until its handle is dropped or it ends; reports the end.
///
/// * `connecting`: dials, and shakes hands; bytes that are put meanwhile wait.
pub fn start(
    connecting: impl Future<Output = io::Result<PeerStream>> + Send + 'static,
    connection: QuorumConnection,
    events: Sink<PeerEvent>,
) -> PeerHandle {
    let (handle, ending) = begin(&connection, events);
    spawn(None, connecting, connection, ending, handle.stop.clone());
    handle
}

/// Serves a connection that a learner made. Its handle is reported before any other event of the connection.
///
/// * `id`: of the connection; `from`: the learner's address.
pub(super) fn start_accepted(
    port: Arc<LearnerPort>,
    id: LearnerConnectionId,
    stream: TcpStream,
    from: SocketAddr,
    security: PeerSecurity,
    connection: QuorumConnection,
    events: Sink<PeerEvent>,
) {
    let (handle, ending) = begin(&connection, events.clone());
    let stop = handle.stop.clone();
    let place = UnfinishedPlace::new(port, id, from, stop.clone());
    events.put(PeerEvent::Accepted { connection: id, handle, peer: from });
    let connecting = async move { security.accepted(stream).await };
    spawn(Some(place), connecting, connection, ending, stop);
}

fn begin(connection: &QuorumConnection, events: Sink<PeerEvent>) -> (PeerHandle, Ending) {
    let state = Arc::new(ConnectionState {
        peer: connection.peer(),
        outbox: Mutex::default(),
        wake: Notify::new(),
        answers_sent: Notify::new(),
        permits: Arc::new(Semaphore::new(REPORTS_MAX)),
        began: Instant::now(),
        events,
    });
    let stop = CancellationToken::new();
    let handle = PeerHandle { state: state.clone(), unsent: Vec::new(), stop };
    (handle, Ending { state, why: "its task failed".to_owned() })
}

fn spawn(
    place: Option<UnfinishedPlace>,
    connecting: impl Future<Output = io::Result<PeerStream>> + Send + 'static,
    connection: QuorumConnection,
    mut ending: Ending,
    stop: CancellationToken,
) {
    tokio::spawn(async move {
        let deadline = connection.deadline_ms().map(|deadline_ms| ending.state.at(deadline_ms));
        let late = async move {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let connected = tokio::select! {
            biased;
            connected = connecting => connected.map_err(|error| error.to_string()),
            () = stop.cancelled() => Err(CLOSED_HERE.to_owned()),
            () = late => Err(SECURED_LATE.to_owned()),
        };
        let ended = match connected {
            Ok(stream) => {
                let _best_effort = stream.socket().set_nodelay(true);
                match stream {
                    PeerStream::Plain(socket) => {
                        transfer(socket.into_split(), connection, place, &ending, &stop).await
                    }
                    PeerStream::Tls { stream, is_dialed } => {
                        transfer(
                            TlsHalf::pair(stream, is_dialed),
                            connection,
                            place,
                            &ending,
                            &stop,
                        )
                        .await
                    }
                }
            }
            Err(error) => Err(error),
        };
        ending.because(ended);
    });
}

/// Moves bytes both ways until the connection ends or `stop` closes it.
async fn transfer<R: PeerReader, W: PeerWriter>(
    (reading, writing): (R, W),
    connection: QuorumConnection,
    place: Option<UnfinishedPlace>,
    ending: &Ending,
    stop: &CancellationToken,
) -> Result<(), String> {
    let mut sending = pin!(send(writing, &ending.state));
    let both = async {
        tokio::select! {
            ended = receive(reading, connection, place, ending) => ended,
            ended = &mut sending => ended,
        }
    };
    tokio::select! {
        biased;
        ended = both => return ended,
        () = stop.cancelled() => {}
    }
    // Bytes that were put before the handle was dropped are sent if the socket takes them. `both` may have been polled before
    // they were put, or have used up what tokio lets a task do in one turn.
    tokio::select! {
        biased;
        ended = unconstrained(sending) => ended,
        () = std::future::ready(()) => Err(CLOSED_HERE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::ListenAddress;
    use crate::member::quorum_connection::{QuorumEvent, QuorumPeer};
    use crate::member::sasl_exchange::{ConnectionKind, NoSasl, SaslExchanges as _};
    use crate::member::sim_exchange::SimExchanges;
    use crate::model::{Epoch, Zxid};
    use crate::net::quorum::handle::lock;
    use crate::net::quorum::{DialTimeouts, dial, listen};
    use crate::zab::{LearnerConnectionId, Packet};
    use bytes::Bytes;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    fn proposal(counter: u32) -> Packet {
        Packet::Proposal { zxid: Zxid::new(Epoch(1), counter), entry: Bytes::from(vec![7; 36]) }
    }

    /// A served connection that a learner made, and the learner's socket.
    async fn served(listener: &TcpListener) -> (PeerHandle, TcpStream) {
        let learner = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let machine = QuorumConnection::accepted(LearnerConnectionId(1), Box::new(NoSasl), 0);
        let events = Sink::new(drop);
        (start(std::future::ready(Ok(accepted.into())), machine, events), learner)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn packets_put_before_the_handle_is_dropped_arrive_before_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for round in 0..300 {
            let (mut handle, mut learner) = served(&listener).await;
            // In some rounds the learner sends too: its packets wake the task while the handle is dropped.
            if round % 3 == 1 {
                learner.write_all(&proposal(9).to_bytes()).await.unwrap();
            }
            if round % 2 == 1 {
                tokio::task::yield_now().await;
            }
            let packets = [proposal(round).to_bytes(), proposal(round + 1).to_bytes()];
            handle.put(packets[0].clone());
            handle.flush();
            handle.put(packets[1].clone());
            drop(handle);
            let mut heard = Vec::new();
            // If bytes were unread the connection ends with a reset, after the bytes that were sent.
            let _reset = learner.read_to_end(&mut heard).await;
            assert_eq!(heard, packets.concat(), "round {round}");
        }
    }

    /// The packets of one connection, until there are `count`.
    async fn heard(events: &mut UnboundedReceiver<PeerEvent>, count: usize) -> Vec<Packet> {
        let mut heard = Vec::new();
        while heard.len() < count {
            match events.recv().await.unwrap() {
                PeerEvent::Received { event: QuorumEvent::Packets(packets), .. } => {
                    heard.extend(packets);
                }
                PeerEvent::Gone { why, .. } => panic!("it ended: {why}"),
                _ => {}
            }
        }
        heard
    }

    #[tokio::test]
    async fn packets_put_before_the_exchange_is_over_are_sent_after_it_in_their_order() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let there = vec![("127.0.0.1".to_owned(), port)];
        let (sender, mut at_leader) = unbounded_channel();
        let address = ListenAddress { host: Some("127.0.0.1".to_owned()), port };
        let (exchanges, plain) = (Arc::new(SimExchanges), PeerSecurity::default());
        tokio::spawn(listen(address, Arc::default(), exchanges, plain, sender.into()));
        let long = Duration::from_secs(60);
        let patience = DialTimeouts { silence: long, refusals: long, others: None };
        let (sender, mut at_learner) = unbounded_channel();
        let exchange = SimExchanges.dialed(ConnectionKind::Learner, &there);
        let machine = QuorumConnection::dialed(1, exchange, Default::default());
        let dialing = dial(there.clone(), patience);
        let connecting = async { dialing.await.map(|dialed| dialed.socket.into()) };
        let mut learner = start(connecting, machine, sender.into());
        let said = |from: u32| (from..from + 20).map(proposal).collect::<Vec<Packet>>();
        let say = |handle: &mut PeerHandle, from| {
            for packet in said(from) {
                handle.put(packet.to_bytes());
                handle.flush();
            }
        };
        say(&mut learner, 100);
        let Some(PeerEvent::Accepted { handle: mut leader, .. }) = at_leader.recv().await else {
            panic!("no connection")
        };
        say(&mut leader, 200);
        assert_eq!(heard(&mut at_leader, 20).await, said(100));
        assert_eq!(heard(&mut at_learner, 20).await, said(200));
        // A learner without the SASL exchange, and a server that dials the wrong port.
        for bytes in [&proposal(1).to_bytes()[..], b"hello?election"] {
            let mut stranger = dial(there.clone(), patience).await.unwrap().socket;
            stranger.write_all(bytes).await.unwrap();
            let mut kept = Vec::new(); // A handle that is dropped closes its connection.
            let (from, why) = loop {
                match at_leader.recv().await.unwrap() {
                    PeerEvent::Gone { from, why } => break (from, why),
                    event => kept.push(event),
                }
            };
            assert!(matches!(from, QuorumPeer::Learner(_)), "{from:?}");
            assert!(why.starts_with("the SASL exchange expects the word"), "{why}");
        }
    }

    /// A served connection with its events, and the learner's socket, which reads nothing.
    async fn served_with_events() -> (PeerHandle, TcpStream, UnboundedReceiver<PeerEvent>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let learner = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let machine = QuorumConnection::accepted(LearnerConnectionId(1), Box::new(NoSasl), 0);
        let (sender, events) = unbounded_channel();
        let handle = start(std::future::ready(Ok(accepted.into())), machine, sender.into());
        (handle, learner, events)
    }

    #[tokio::test]
    async fn connection_is_read_no_more_while_eight_of_its_events_wait_for_the_driver() {
        let (_handle, mut learner, mut events) = served_with_events().await;
        let count = 200_000;
        let sending = tokio::spawn(async move {
            let bytes: Vec<u8> = (1..=count).flat_map(|at| proposal(at).to_bytes()).collect();
            learner.write_all(&bytes).await.unwrap();
            learner
        });
        let (mut packets, mut waiting) = (0, Vec::new());
        while packets < count as usize {
            // The driver takes no event for a while, then all that wait.
            tokio::time::sleep(Duration::from_millis(5)).await;
            while let Ok(event) = events.try_recv() {
                waiting.push(event);
            }
            assert!(waiting.len() <= REPORTS_MAX, "{} wait", waiting.len());
            for event in waiting.drain(..) {
                match event {
                    PeerEvent::Received { event: QuorumEvent::Packets(more), .. } => {
                        packets += more.len();
                    }
                    PeerEvent::Gone { why, .. } => panic!("it ended: {why}"),
                    _ => {}
                }
            }
        }
        let _learner = sending.await.unwrap();
    }

    #[tokio::test]
    async fn learner_that_reads_no_answers_is_not_read_until_it_does() {
        let (mut handle, mut learner, mut events) = served_with_events().await;
        // A learner that has sent nothing would be disconnected after a while.
        learner.write_all(&proposal(1).to_bytes()).await.unwrap();
        assert_eq!(heard(&mut events, 1).await, [proposal(1)]);
        // The socket takes many answers first.
        let answer = Packet::Revalidate { data: Bytes::from(vec![7; 1 << 16]) }.to_bytes();
        let mut answers = 0;
        while !lock(&handle.state.outbox).has_many_answers() {
            handle.put(answer.clone());
            assert!(handle.flush() && answers < 10_000);
            answers += 1;
            tokio::task::yield_now().await;
        }
        // A read that had begun brings one more packet.
        for counter in 2..=3 {
            learner.write_all(&proposal(counter).to_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let mut brought = Vec::new();
        while let Ok(event) = events.try_recv() {
            brought.push(event);
        }
        assert!(brought.len() <= 1, "{} events", brought.len());
        let mut read = vec![0; answers * answer.len()];
        learner.read_exact(&mut read).await.unwrap();
        assert!(!heard(&mut events, 1).await.is_empty(), "the rest is read now");
    }
}
