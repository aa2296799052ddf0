//! What clients and strangers do to fill a server's buffers.

use super::server::{BIG, FRAME, LONG_NAME, MANY, OUTSTANDING, Server, connect, limited, slow};
use jute::proto::AddWatchRequest;
use oxkeeper::model::{Epoch, ServerId, SessionId, Zxid, op};
use oxkeeper::zab::{LearnerInfo, Packet, Request};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use support::requests::{look, request, set};

const MIB: usize = 1 << 20;
/// An entry: `jute.maxbuffer` and its extrasize.
const ENTRY: usize = 2 * FRAME;
/// Memory of an idle connection.
const IDLE: usize = 24 << 10;
/// Bytes of one read from a connection (used for clients too).
const READ: usize = 64 << 10;

pub struct Load {
    pub name: &'static str,
    /// The first words of the rows of docs/limits.md that bound this load.
    pub rows: &'static [&'static str],
    pub bound_bytes: usize,
    /// If the server keeps fewer bytes, the load has not filled its buffers.
    pub least_bytes: usize,
    /// Gives the connections, which stay open for as long as they are kept.
    pub apply: fn(&Server) -> Vec<TcpStream>,
}

const HALF_FRAMES: usize = 100;
const READERS: usize = 10;
const WATCHERS: usize = 10;
const WRITERS: usize = 20;
const WORDS: usize = 60;
const HALF_HELLOS: usize = 200;
const HALF_PACKETS: usize = 40;
const HALF_VOTES: usize = 40;
const SYNCERS: usize = 3;
const TREES: usize = 4;

pub const LOADS: &[Load] = &[
    Load {
        name: "clients send frames that do not end",
        rows: &["a client's frame", "bytes of a client that were read and not processed"],
        bound_bytes: HALF_FRAMES * (IDLE + FRAME + READ),
        least_bytes: HALF_FRAMES * FRAME / 2,
        apply: half_frames,
    },
    Load {
        name: "clients do not read answers",
        rows: &["unsent answers to a client", "reads of one connection under one hold"],
        bound_bytes: READERS * (IDLE + 2 * (MIB + (256 << 10)) + FRAME + READ),
        least_bytes: READERS * MIB / 2,
        apply: unread_answers,
    },
    Load {
        name: "clients do not read watch events",
        rows: &["watch events that a client does not take", "transactions kept for learners"],
        bound_bytes: WATCHERS * (IDLE + 2 * 4 * FRAME) + 10 * MIB,
        least_bytes: 0,
        apply: unread_events,
    },
    Load {
        name: "clients write without waiting",
        rows: &[
            "writes of clients that are not answered, in bytes",
            "proposals that are not committed",
        ],
        bound_bytes: 4 * OUTSTANDING + WRITERS * (IDLE + 2 * (FRAME + READ)) + 10 * MIB,
        least_bytes: OUTSTANDING / 2,
        apply: writes,
    },
    Load {
        name: "answers to words are not read",
        rows: &["answers to four-letter words with lists"],
        bound_bytes: WORDS * IDLE + 8 * 3 * (64 << 10),
        least_bytes: 0,
        apply: words,
    },
    Load {
        name: "hellos of learners do not end",
        rows: &["learner connections without a hello", "bytes before a learner's hello"],
        bound_bytes: HALF_HELLOS * (IDLE + READ + 2 * (64 << 10)),
        least_bytes: HALF_HELLOS * (16 << 10),
        apply: half_hellos,
    },
    Load {
        name: "packets of learners do not end",
        rows: &["unfinished packets of all learners, together", "a whole packet"],
        bound_bytes: HALF_PACKETS * (IDLE + READ + 8 * ENTRY),
        least_bytes: HALF_PACKETS * ENTRY / 2,
        apply: half_packets,
    },
    Load {
        name: "messages of voters do not end",
        rows: &["election connections of servers in no", "a message between voters"],
        bound_bytes: HALF_VOTES * (IDLE + 2 * (512 << 10)),
        least_bytes: HALF_VOTES * (128 << 10),
        apply: half_votes,
    },
    Load {
        name: "learners sync and do not read",
        rows: &[
            "answers to a learner's syncs",
            "bytes received on a learner connection and not processed",
        ],
        bound_bytes: SYNCERS * (IDLE + 2 * 16 * MIB + 8 * READ + 4 * ENTRY),
        least_bytes: SYNCERS * MIB,
        apply: syncs,
    },
    Load {
        name: "learners do not read trees that change",
        rows: &[
            "bytes saved for the tree of a server in no",
            "trees sent at a time to servers in no",
        ],
        bound_bytes: 2 * (2 * MANY * BIG + 4 * MIB) + TREES * (IDLE + MIB),
        least_bytes: MANY * BIG / 2,
        apply: trees,
    },
];

/// Sends for as long as the other side takes it. `false`: the server has stopped reading, which is the purpose of most loads.
fn send_while_taken(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

fn half_frames(server: &Server) -> Vec<TcpStream> {
    let sessions = (0..HALF_FRAMES).map(|_| {
        let mut stream = limited(server.session().into_stream());
        let bytes = [&(FRAME as i32 - 2).to_be_bytes()[..], &[7; FRAME - 3]].concat();
        stream.write_all(&bytes).expect("sent");
        stream
    });
    sessions.collect()
}

fn unread_answers(server: &Server) -> Vec<TcpStream> {
    // Names are copied into answers; the data of a large znode is not.
    let bytes = look(1, op::GET_CHILDREN, "/many", false).repeat(10_000);
    let sessions = (0..READERS).map(|_| {
        let mut stream = server.slow_session();
        send_while_taken(&mut stream, &bytes);
        stream
    });
    sessions.collect()
}

fn unread_events(server: &Server) -> Vec<TcpStream> {
    let path = format!("/{}", "c".repeat(LONG_NAME));
    let watch = AddWatchRequest { path: Some(path.as_str().into()), mode: 0 };
    let bytes = request(1, op::ADD_WATCH, &watch);
    let watchers: Vec<TcpStream> = (0..WATCHERS)
        .map(|_| {
            let mut stream = server.slow_session();
            send_while_taken(&mut stream, &bytes);
            stream
        })
        .collect();
    let mut writer = server.session();
    let sets = set(1, &path, "").repeat(100);
    for _ in 0..80 {
        writer.send(&sets).expect("sent");
        (0..100).for_each(|_| drop(writer.receive(super::super::PATIENCE).expect("set")));
    }
    watchers
}

fn writes(server: &Server) -> Vec<TcpStream> {
    let bytes = set(1, "/big", &"z".repeat(BIG)).repeat(64);
    let mut sessions: Vec<TcpStream> =
        (0..WRITERS).map(|_| limited(server.session().into_stream())).collect();
    std::thread::scope(|scope| {
        for stream in &mut sessions {
            scope.spawn(|| send_while_taken(stream, &bytes));
        }
    });
    sessions
}

fn words(server: &Server) -> Vec<TcpStream> {
    let asking = (0..WORDS).map(|n| {
        let mut stream = slow(server.clients);
        stream.write_all([b"wchp", b"cons", b"dump"][n % 3]).expect("sent");
        stream
    });
    asking.collect()
}

fn half_hellos(server: &Server) -> Vec<TcpStream> {
    let asking = (0..HALF_HELLOS).map(|_| {
        let mut stream = connect(server.quorum);
        // OBSERVERINFO with data of 60,000 bytes, of which the last is missing.
        let head = [&16_i32.to_be_bytes()[..], &0_i64.to_be_bytes(), &60_000_i32.to_be_bytes()];
        send_while_taken(&mut stream, &[&head.concat()[..], &[0; 59_999]].concat());
        stream
    });
    asking.collect()
}

/// An observer in no configuration.
///
/// * `id`: no other learner has it.
fn observer_info(id: i64) -> Vec<u8> {
    let info = LearnerInfo { id: ServerId(id), protocol_version: 0x10000, view_version: 0 };
    Packet::ObserverInfo { accepted: Epoch(0), info }.to_bytes().to_vec()
}

/// Joins an observer: receives LEADERINFO, sends ACKEPOCH with `last`.
fn joining(server: &Server, mut stream: TcpStream, id: i64, last: i64) -> TcpStream {
    stream.write_all(&observer_info(id)).expect("sent");
    let leader_info = Packet::LeaderInfo { epoch: Epoch(1) }.to_bytes().len();
    stream.read_exact(&mut vec![0; leader_info]).expect("LEADERINFO");
    let epoch = Epoch((server.last_zxid() >> 32) as u32);
    let packet = Packet::AckEpoch { current: Some(epoch), last: Zxid::from_wire(last) };
    stream.write_all(&packet.to_bytes()).expect("sent");
    stream
}

fn half_packets(server: &Server) -> Vec<TcpStream> {
    let asking = (0..HALF_PACKETS).map(|n| {
        let mut stream = connect(server.quorum);
        let len = ENTRY - 16;
        let head = [&1_i32.to_be_bytes()[..], &0_i64.to_be_bytes(), &(len as i32).to_be_bytes()];
        let packet = [&observer_info(100 + n as i64)[..], &head.concat(), &vec![0; len - 1]];
        send_while_taken(&mut stream, &packet.concat());
        stream
    });
    asking.collect()
}

fn half_votes(server: &Server) -> Vec<TcpStream> {
    let asking = (0..HALF_VOTES).map(|n| {
        let mut stream = connect(server.election);
        let (id, address) = (1000 + n as i64, "127.0.0.1:1");
        let len = (address.len() as i32).to_be_bytes();
        let hello = [&(-65536_i64).to_be_bytes()[..], &id.to_be_bytes(), &len, address.as_bytes()];
        let message = [&(500_000_i32).to_be_bytes()[..], &vec![0; 499_999]];
        send_while_taken(&mut stream, &[hello.concat(), message.concat()].concat());
        stream
    });
    asking.collect()
}

fn syncs(server: &Server) -> Vec<TcpStream> {
    let request = Request {
        session: SessionId(0),
        xid: 0,
        op: op::SYNC,
        body: bytes::Bytes::new(),
        identities: Vec::new(),
    };
    let some = Packet::Request(request).to_bytes().repeat(10_000);
    let asking = (0..SYNCERS).map(|n| {
        let last = server.last_zxid();
        let mut stream = joining(server, slow(server.quorum), 200 + n as i64, last);
        std::thread::sleep(std::time::Duration::from_millis(100));
        let epoch = Epoch((last >> 32) as u32);
        stream.write_all(&Packet::Ack { zxid: Zxid::new(epoch, 0) }.to_bytes()).expect("sent");
        // What follows a packet that was cut would be read as its end.
        (0..100).take_while(|_| send_while_taken(&mut stream, &some)).for_each(drop);
        stream
    });
    asking.collect()
}

fn trees(server: &Server) -> Vec<TcpStream> {
    let asking =
        (0..TREES).map(|n| joining(server, slow(server.quorum), 300 + n as i64, 0)).collect();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let (mut writer, data) = (server.session(), "w".repeat(BIG));
    (0..MANY).for_each(|n| Server::ask(&mut writer, &set(1, &format!("/many/{n}"), &data)));
    asking
}
