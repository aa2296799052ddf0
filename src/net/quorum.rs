//! The quorum port: packets between a leader and its learners.
//!
//! The same two tasks serve both ends of a connection: one reads packets and reports them, one writes what it is given.
//! SNAP is followed by bytes that are no packets: who expects them gives a [`TreeSink`].

use super::race::first_of;
use crate::request::foreign::Foreign;
use crate::zab::{LinkId, Packet, SIGNATURE};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;

const READ_BYTES: usize = 64 * 1024;
/// A member says who it is as soon as it has connected; who has not yet is kept this long, and so many at a time.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
const MUTE_MAX: usize = 256;
/// Bytes written in one go.
const WRITE_BYTES: usize = 256 * 1024;
/// One who takes nothing while so much is waiting is given up: it costs the leader this, and no more.
const QUEUED_BYTES_MAX: usize = 256 << 20;
/// Bytes of a tree read in one go.
const TREE_READ_BYTES: usize = 1 << 20;
const BACKLOG: u32 = 128;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A leader may not listen yet when its learners come.
const DIAL_PAUSE_MIN: Duration = Duration::from_millis(10);
const DIAL_PAUSE_MAX: Duration = Duration::from_millis(100);
/// After a failed bind or accept the next is tried this much later.
const RETRY: Duration = Duration::from_millis(500);

/// Whose connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    Learner(LinkId),
    /// The leader; connections to it are counted, so that what an older one said is known as such.
    Leader(u64),
}

/// What comes from a peer.
pub enum PeerEvent {
    Accepted {
        link: LinkId,
        handle: PeerHandle,
        peer: SocketAddr,
    },
    /// In order, at least one.
    Packets {
        source: Source,
        packets: Vec<Packet>,
    },
    /// SNAP and all of its tree.
    Tree {
        source: Source,
        packet: Packet,
        tree: Box<dyn std::any::Any + Send>,
    },
    /// A tree is on its way and gets on.
    Progress {
        source: Source,
    },
    Gone {
        source: Source,
        why: String,
    },
}

/// Takes the raw bytes behind SNAP.
pub trait TreeSink: Send {
    /// Takes whole items off the front; how many bytes, and whether that was the end.
    ///
    /// # Errors
    /// In words, what is wrong with the tree.
    fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), String>;
    /// What became of it.
    ///
    /// # Errors
    /// In words, what is wrong with the tree.
    fn finish(self: Box<Self>, packet: &Packet) -> Result<Box<dyn std::any::Any + Send>, String>;
}

/// Makes the one for the next SNAP.
pub type TreeSinks = dyn Fn() -> Box<dyn TreeSink> + Send + Sync;

/// Gives the next piece of a tree; `true`: that was the last; `None`: it can't be had any more.
pub type Pieces = Box<dyn FnMut(&mut Vec<u8>) -> Option<bool> + Send>;

enum Item {
    Bytes(Vec<Bytes>),
    /// SNAP, and what gives the tree.
    Tree(Bytes, Pieces),
}

/// A connection to a peer, as long as it is kept.
pub struct PeerHandle {
    items: UnboundedSender<Item>,
    unsent: Vec<Bytes>,
    unsent_len: usize,
    queued: Arc<AtomicUsize>,
    /// Whether a packet has come.
    spoke: Arc<AtomicBool>,
    stop: CancellationToken,
}

impl PeerHandle {
    /// Puts bytes behind all that was put before; [`Self::flush`] sends them.
    pub fn put(&mut self, bytes: Bytes) {
        self.unsent_len += bytes.len();
        self.unsent.push(bytes);
    }

    /// Sends what was put. `false`: so much is waiting that the connection was given up.
    pub fn flush(&mut self) -> bool {
        if self.unsent.is_empty() {
            return true;
        }
        let queued = self.queued.fetch_add(self.unsent_len, Ordering::Relaxed);
        self.unsent_len = 0;
        let _gone = self.items.send(Item::Bytes(std::mem::take(&mut self.unsent)));
        if QUEUED_BYTES_MAX < queued {
            self.stop.cancel();
        }
        queued <= QUEUED_BYTES_MAX
    }

    /// Sends a tree behind all that was put before.
    pub fn send_tree(&mut self, snap: Bytes, pieces: Pieces) {
        self.flush();
        let _gone = self.items.send(Item::Tree(snap, pieces));
    }
}

impl Drop for PeerHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Where to listen for learners.
#[derive(Clone, Debug)]
pub struct Bind {
    /// `None`: every address.
    pub host: Option<String>,
    pub port: u16,
}

/// Listens for learners; never gives up.
///
/// * `links`: numbers of the connections that all such listeners have accepted.
pub async fn listen(bind: Bind, links: Arc<AtomicU64>, events: UnboundedSender<PeerEvent>) {
    let mut told = false;
    let mut mute = Mute::default();
    loop {
        let listener = match open(&bind).await {
            Ok(listener) => listener,
            Err(error) => {
                if !std::mem::replace(&mut told, true) {
                    let Bind { host, port } = &bind;
                    tracing::error!(?host, port, %error, "listen for learners; trying on");
                }
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let link = LinkId(links.fetch_add(1, Ordering::Relaxed));
                    let ready = std::future::ready(Ok(stream));
                    let handle = start(ready, Source::Learner(link), events.clone(), None);
                    mute.admit(peer, &handle);
                    if events.send(PeerEvent::Accepted { link, handle, peer }).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "accept learner");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

/// Connections that have said nothing yet, the oldest first.
#[derive(Default)]
struct Mute(VecDeque<(SocketAddr, Arc<AtomicBool>, CancellationToken)>);

impl Mute {
    /// Lets the oldest one go when there are too many: members speak at once.
    fn admit(&mut self, peer: SocketAddr, handle: &PeerHandle) {
        self.0.retain(|(_, spoke, stop)| !spoke.load(Ordering::Relaxed) && !stop.is_cancelled());
        if MUTE_MAX <= self.0.len()
            && let Some((oldest, _, stop)) = self.0.pop_front()
        {
            tracing::warn!(peer = %oldest, "connection to the quorum port closed: {MUTE_MAX} later ones say nothing either");
            stop.cancel();
        }
        self.0.push_back((peer, handle.spoke.clone(), handle.stop.clone()));
    }
}

async fn open(bind: &Bind) -> io::Result<TcpListener> {
    let address = match &bind.host {
        None => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), bind.port),
        Some(host) => tokio::net::lookup_host((host.as_str(), bind.port))
            .await?
            .next()
            .ok_or_else(|| io::Error::other(format!("{host} has no address")))?,
    };
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// How long to try to connect.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// With one that does not answer.
    pub silence: Duration,
    /// With one that refuses: it may not listen yet, or may be gone.
    pub refusals: Duration,
    /// With its other addresses, once one has refused for so long; `None`: as with one that does not answer.
    pub others: Option<Duration>,
}

/// Connects to whichever of `addresses` answers first, trying each again for as long as `patience` lasts.
///
/// # Errors
/// The last error met.
pub async fn dial(addresses: Vec<(String, u16)>, patience: Patience) -> io::Result<TcpStream> {
    let calls = addresses.into_iter().map(|(host, port)| call(host, port, patience));
    first_of(calls.collect(), patience.others).await
}

async fn call(host: String, port: u16, patience: Patience) -> io::Result<TcpStream> {
    let began = tokio::time::Instant::now();
    let mut pause = DIAL_PAUSE_MIN;
    loop {
        // Resolved each time: an address may have changed meanwhile.
        let connecting = TcpStream::connect((host.as_str(), port));
        let last =
            match tokio::time::timeout(CONNECT_TIMEOUT.min(patience.silence), connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => io::Error::new(error.kind(), format!("{host}:{port}: {error}")),
                Err(_) => io::Error::other(format!("{host}:{port}: no answer")),
            };
        let refuses = last.kind() == io::ErrorKind::ConnectionRefused;
        let limit = if refuses { patience.refusals } else { patience.silence };
        if limit < began.elapsed() + pause {
            return Err(last);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(DIAL_PAUSE_MAX);
    }
}

/// Serves a connection until its handle is dropped or it ends, which is reported.
///
/// * `connecting`: gives the connection; what is sent meanwhile waits.
/// * `trees`: where the trees of SNAP go; `None`: no SNAP is expected.
pub fn start(
    connecting: impl Future<Output = io::Result<TcpStream>> + Send + 'static,
    source: Source,
    events: UnboundedSender<PeerEvent>,
    trees: Option<Arc<TreeSinks>>,
) -> PeerHandle {
    let (items, from) = mpsc::unbounded_channel();
    let queued = Arc::new(AtomicUsize::new(0));
    let stop = CancellationToken::new();
    let handle = PeerHandle {
        items,
        unsent: Vec::new(),
        unsent_len: 0,
        queued: queued.clone(),
        spoke: Arc::default(),
        stop: stop.clone(),
    };
    let spoke = handle.spoke.clone();
    tokio::spawn(async move {
        let serve = async {
            let stream = connecting.await.map_err(|error| error.to_string())?;
            let _best_effort = stream.set_nodelay(true);
            let peer = stream.peer_addr();
            let (reading, writing) = stream.into_split();
            tokio::select! {
                ended = read(reading, source, &events, trees, &spoke) => {
                    if let (Err(why), Ok(peer), false) = (&ended, peer, spoke.load(Ordering::Relaxed)) {
                        tracing::warn!(%peer, why, "connection to the quorum port closed");
                    }
                    ended
                }
                ended = write(writing, source, from, &queued, &events) => ended,
            }
        };
        let ended = tokio::select! {
            ended = serve => ended,
            () = stop.cancelled() => Err("closed here".to_owned()),
        };
        let why = ended.err().unwrap_or_else(|| "closed by the other side".to_owned());
        let _nobody_waits = events.send(PeerEvent::Gone { source, why });
    });
    handle
}

async fn read(
    mut stream: OwnedReadHalf,
    source: Source,
    events: &UnboundedSender<PeerEvent>,
    trees: Option<Arc<TreeSinks>>,
    spoke: &AtomicBool,
) -> Result<(), String> {
    // What is kept of a packet keeps the buffer it was read into: so that is never larger than what came.
    let mut buffer = BytesMut::new();
    let mut scratch = vec![0; READ_BYTES];
    loop {
        let mut packets: Vec<Packet> = Vec::new();
        while let Some(packet) = Packet::decode(&mut buffer)
            .map_err(|error| foreign(&buffer).map_or(error.to_string(), str::to_owned))?
        {
            spoke.store(true, Ordering::Relaxed);
            if matches!(packet, Packet::Snap { .. }) {
                if !packets.is_empty() {
                    let packets = std::mem::take(&mut packets); // In order, also what came with it.
                    let _stopped = events.send(PeerEvent::Packets { source, packets });
                }
                let sink = trees.as_ref().ok_or("SNAP, which nobody expects")?();
                let tree =
                    read_tree(&mut stream, &mut buffer, sink, (source, events), &packet).await?;
                let _stopped = events.send(PeerEvent::Tree { source, packet, tree });
                continue;
            }
            packet.push_to(&mut packets);
        }
        if !packets.is_empty() && events.send(PeerEvent::Packets { source, packets }).is_err() {
            return Ok(());
        }
        let reading = stream.read(&mut scratch);
        let read = if spoke.load(Ordering::Relaxed) || matches!(source, Source::Leader(_)) {
            reading.await
        } else {
            let mute =
                || foreign(&buffer).unwrap_or("it said nothing that a member says").to_owned();
            tokio::time::timeout(HELLO_WITHIN, reading).await.map_err(|_| mute())?
        };
        match read.map_err(|error| error.to_string())? {
            0 => return Ok(()),
            read => buffer.extend_from_slice(&scratch[..read]),
        }
    }
}

/// What those speak who have the wrong port.
fn foreign(head: &[u8]) -> Option<&'static str> {
    let head = *head.first_chunk()?;
    // A hello of the election begins with a version below 0.
    let calls_elections = (head == [0xff; 4])
        .then_some("it calls an election port: are the ports in this server's line swapped?");
    Foreign::recognise(head).map(Foreign::reason).or(calls_elections)
}

/// Reads the bytes behind SNAP. They are taken on a thread of their own: there may be gigabytes of them.
async fn read_tree(
    stream: &mut OwnedReadHalf,
    buffer: &mut BytesMut,
    mut sink: Box<dyn TreeSink>,
    (source, events): (Source, &UnboundedSender<PeerEvent>),
    snap: &Packet,
) -> Result<Box<dyn std::any::Any + Send>, String> {
    let mut told = tokio::time::Instant::now();
    loop {
        let bytes = std::mem::take(buffer);
        let taken = tokio::task::spawn_blocking(move || {
            let mut bytes = bytes;
            loop {
                match sink.take(&bytes) {
                    Ok((0, false)) => break Ok((sink, bytes, false)),
                    Ok((taken, ended)) => {
                        let _taken = bytes.split_to(taken);
                        if ended {
                            break Ok((sink, bytes, true));
                        }
                    }
                    Err(error) => break Err(error),
                }
            }
        });
        let (back, rest, ended) = taken.await.map_err(|error| error.to_string())??;
        (sink, *buffer) = (back, rest);
        if ended {
            break;
        }
        if told.elapsed() > Duration::from_secs(1) {
            told = tokio::time::Instant::now();
            let _stopped = events.send(PeerEvent::Progress { source });
        }
        // Much at a time, for each turn changes threads.
        let wanted = buffer.len() + TREE_READ_BYTES;
        buffer.reserve(TREE_READ_BYTES);
        loop {
            if stream.read_buf(buffer).await.map_err(|error| error.to_string())? == 0 {
                return Err("the connection ended inside of a tree".to_owned());
            }
            let more = tokio::time::timeout(Duration::ZERO, stream.readable()).await;
            if wanted <= buffer.len() || more.is_err() {
                break;
            }
        }
    }
    let wanted = 4 + SIGNATURE.len();
    while buffer.len() < wanted {
        if stream.read_buf(buffer).await.map_err(|error| error.to_string())? == 0 {
            return Err("the connection ended before the signature of a tree".to_owned());
        }
    }
    let signature = buffer.split_to(wanted);
    if &signature[4..] != SIGNATURE {
        return Err("no signature behind the tree".to_owned());
    }
    let snap = snap.clone();
    let done = tokio::task::spawn_blocking(move || sink.finish(&snap));
    done.await.map_err(|error| error.to_string())?
}

async fn write(
    mut stream: OwnedWriteHalf,
    source: Source,
    mut items: UnboundedReceiver<Item>,
    queued: &AtomicUsize,
    events: &UnboundedSender<PeerEvent>,
) -> Result<(), String> {
    let mut buffer = Vec::with_capacity(WRITE_BYTES);
    let mut next = items.recv().await;
    while let Some(item) = next.take() {
        match item {
            Item::Bytes(pieces) => {
                for bytes in pieces {
                    queued.fetch_sub(bytes.len(), Ordering::Relaxed);
                    buffer.extend_from_slice(&bytes);
                }
            }
            Item::Tree(snap, pieces) => {
                buffer.extend_from_slice(&snap);
                write_tree(&mut stream, &mut buffer, pieces, (source, events)).await?;
            }
        }
        next = items.try_recv().ok();
        if next.is_none() || WRITE_BYTES <= buffer.len() {
            stream.write_all(&buffer).await.map_err(|error| error.to_string())?;
            buffer.clear();
            if buffer.capacity() > 4 * WRITE_BYTES {
                buffer = Vec::with_capacity(WRITE_BYTES);
            }
        }
        if next.is_none() {
            next = items.recv().await;
        }
    }
    // The handle is gone: everything sent before it was dropped is written.
    let _closed = stream.shutdown().await;
    Ok(())
}

async fn write_tree(
    stream: &mut OwnedWriteHalf,
    buffer: &mut Vec<u8>,
    mut pieces: Pieces,
    (source, events): (Source, &UnboundedSender<PeerEvent>),
) -> Result<(), String> {
    let mut told = tokio::time::Instant::now();
    loop {
        let ended = pieces(buffer).ok_or("the tree was replaced while it was sent")?;
        if ended {
            buffer.extend_from_slice(&(SIGNATURE.len() as u32).to_be_bytes());
            buffer.extend_from_slice(SIGNATURE);
        }
        stream.write_all(buffer).await.map_err(|error| error.to_string())?;
        buffer.clear();
        if ended {
            return Ok(());
        }
        if told.elapsed() > Duration::from_secs(1) {
            told = tokio::time::Instant::now();
            let _stopped = events.send(PeerEvent::Progress { source });
        }
        // Clients are served beside it.
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections to a listener, and what becomes of them.
    async fn called(count: usize) -> (Vec<TcpStream>, mpsc::UnboundedReceiver<PeerEvent>) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (sender, events) = mpsc::unbounded_channel();
        let bind = Bind { host: Some("127.0.0.1".to_owned()), port };
        tokio::spawn(listen(bind, Arc::default(), sender));
        let there = vec![("127.0.0.1".to_owned(), port)];
        let long = Duration::from_secs(60);
        let patience = Patience { silence: long, refusals: long, others: None };
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(dial(there.clone(), patience).await.unwrap());
        }
        (streams, events)
    }

    async fn gone(events: &mut mpsc::UnboundedReceiver<PeerEvent>) -> (Source, String) {
        let mut kept = Vec::new(); // Who drops a handle closes its connection.
        loop {
            match events.recv().await.unwrap() {
                PeerEvent::Gone { source, why } => return (source, why),
                event => kept.push(event),
            }
        }
    }

    #[tokio::test]
    async fn who_says_nothing_makes_room_for_who_does() {
        let (mut streams, mut events) = called(MUTE_MAX + 1).await;
        assert_eq!(gone(&mut events).await.0, Source::Learner(LinkId(0)));
        assert_eq!(streams[0].read(&mut [0; 1]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn who_speaks_something_else_is_told_apart() {
        let told: [(&[u8], &str); 3] = [
            (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03abcdefghi", "TLS"),
            (b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "HTTP"),
            (b"\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\x02\0\0\0\x09a:1:2:3:4", "swapped"),
        ];
        for (bytes, word) in told {
            let (mut streams, mut events) = called(1).await;
            streams[0].write_all(bytes).await.unwrap();
            let (_, why) = gone(&mut events).await;
            assert!(why.contains(word), "{why}");
        }
    }

    /// A transaction that is kept must not keep more than came with it.
    // rows: Q-53
    #[tokio::test]
    async fn what_is_kept_of_a_packet_keeps_little() {
        let (mut streams, mut events) = called(1).await;
        let entry = Bytes::from(vec![7; 36]);
        let packet = Packet::Proposal { zxid: crate::model::Zxid::ZERO, entry }.to_bytes();
        let (mut kept, mut handle) = (Vec::new(), None);
        while kept.len() < 100 {
            if handle.is_some() {
                streams[0].write_all(&packet).await.unwrap();
            }
            match events.recv().await.unwrap() {
                PeerEvent::Packets { packets, .. } => kept.extend(packets),
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

    // rows: Q-60 C-26
    #[tokio::test]
    async fn one_that_is_silent_is_called_for_as_long_as_it_may_be() {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let at = listener.local_addr().unwrap();
        let connect = || tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(at));
        // Whoever finds no room there is not answered.
        let mut kept = Vec::new();
        while let Ok(stream) = connect().await {
            kept.push(stream.unwrap());
        }
        let long = Duration::from_secs(60);
        let of = |silence_ms| Patience {
            silence: Duration::from_millis(silence_ms),
            refusals: long,
            others: None,
        };
        let there = || vec![(at.ip().to_string(), at.port())];
        let began = tokio::time::Instant::now();
        let error = dial(there(), of(150)).await.unwrap_err();
        assert!(error.to_string().ends_with("no answer"), "{error}");
        assert!(Duration::from_millis(150) <= began.elapsed() && began.elapsed() < long);
        let calling = tokio::spawn(dial(there(), of(60_000)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..=kept.len() {
            listener.accept().await.unwrap();
        }
        calling.await.unwrap().unwrap();
    }

    // rows: Q-60 C-180
    #[tokio::test]
    async fn one_that_refuses_is_called_again_for_a_while() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let there = || vec![("127.0.0.1".to_owned(), port)];
        let long = Duration::from_secs(60);
        let short = Patience { silence: long, refusals: Duration::from_millis(200), others: None };
        let began = tokio::time::Instant::now();
        let error = dial(there(), short).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(Duration::from_millis(100) <= began.elapsed() && began.elapsed() < long);
        // It comes late.
        let calling = tokio::spawn(dial(there(), Patience { refusals: long, ..short }));
        tokio::time::sleep(Duration::from_millis(50)).await;
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let (accepted, called) = tokio::join!(listener.accept(), calling);
        assert_eq!(accepted.unwrap().1, called.unwrap().unwrap().local_addr().unwrap());
    }
}
