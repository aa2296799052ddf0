//! The requests of clients, as values and as bytes, and their answers.

use super::climate::Climate;
use crate::model::Rng;
use crate::model::{Code, ServerId, View, op};
use jute::data::{Acl, Id, Stat};
use jute::proto::{
    AddWatchRequest, CheckVersionRequest, Create2Response, CreateRequest, CreateResponse,
    DeleteRequest, ExistsRequest, ExistsResponse, GetChildren2Response, GetChildrenRequest,
    GetDataRequest, GetDataResponse, MultiHeader, ReconfigRequest, ReplyHeader, RequestHeader,
    SetDataRequest, SetDataResponse, SetWatches, SyncRequest,
};
use jute::{DecodeError, Encode, Reader, Ustring, Vector, put_frame};
use std::collections::BTreeMap;

/// Znodes that all clients know of.
pub const PATHS: [&str; 8] = ["/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/b/x/z", "/q"];
/// Znodes that are set together, so that no client may ever see them differ.
pub const PAIR: [&str; 2] = ["/pair1", "/pair2"];
/// The version of a planned request that is to succeed only if the znode is still as its client saw it last.
pub const SEEN_VERSION: i32 = -2;
/// The client port of each server in its first configuration.
pub const CLIENT_PORT: u16 = 2181;
/// The version of a configuration that is never in force.
const UNKNOWN_CONFIG: i64 = 77;

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Op {
    /// getData
    Get { watch: bool },
    /// exists
    Exists { watch: bool },
    /// getChildren2
    Children { watch: bool },
    /// setData
    Set { large: bool },
    /// create or create2
    Create { ephemeral: bool, sequential: bool, with_stat: bool },
    /// delete
    Delete,
    /// multi: both of [`PAIR`] get the same data, or, `fails`, neither.
    SetPair { fails: bool },
    /// multiRead
    GetPair,
    /// multi: creates a sequential znode and sets another one, together.
    CreateAndSet { ephemeral: bool },
    /// addWatch: a persistent watch. * `recursive`: for all below the path too.
    AddWatch { recursive: bool },
    /// reconfig
    Reconfig {
        required: Required,
        joining: Option<String>,
        leaving: Option<String>,
        members: Option<String>,
    },
    /// sync
    Sync,
    /// closeSession
    Close,
    /// ping
    Ping,
    /// setWatches or setWatches2, after a change of connections.
    SetWatches(WatchLists),
}

/// The configuration that has to be in force for a reconfiguration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Required {
    Any,
    /// Planned: the configuration that this server has or had in force when the request is sent.
    Of(usize),
    Version(i64),
}

/// Watched paths. The persistent watches are recursive or not.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WatchLists {
    pub since: i64,
    pub data: Vec<String>,
    pub absent: Vec<String>,
    pub children: Vec<String>,
    pub persistent: Vec<(String, bool)>,
}

/// A request. A planned one leaves open what only its client knows: data, a version it saw, a znode it made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    pub op: Op,
    pub path: String,
    pub data: Vec<u8>,
    pub version: i32,
}

/// A watch that a reply sets, on the request's path.
pub enum Watch {
    Data,
    Children,
    Persistent { recursive: bool },
}

/// The body of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Nothing,
    Data(Option<Vec<u8>>, Stat),
    Stat(Stat),
    Children(Vec<String>, Stat),
    Path(String, Option<Stat>),
    /// Codes of the parts of a multi that failed.
    Parts(Vec<i32>),
    Pair([Option<Vec<u8>>; 2]),
}

/// A server's line in a configuration.
pub fn member(server: usize, votes: bool) -> String {
    let role = if votes { "participant" } else { "observer" };
    format!("server.{server}=host{server}:2888:3888:{role};{CLIENT_PORT}")
}

/// A port at which a reconfiguration may have clients served.
fn some_client_port(rng: &mut Rng) -> u16 {
    CLIENT_PORT + rng.below(4) as u16
}

/// Groups and weights of voters, as lines of a configuration. None if there would be no quorum without the voter `spared`.
///
/// * `lightest`: the lowest weight. A voter with weight 0 is not elected, and votes for no server whose history is shorter than its own,
///   so that there may be no leader if a configuration that is proposed needs its vote, here and in ZooKeeper.
pub fn quorum_system(
    rng: &mut Rng,
    voters: &[usize],
    lightest: u64,
    spared: Option<usize>,
) -> Vec<String> {
    let count = rng.range(1, 3);
    let mut groups = BTreeMap::<u64, Vec<String>>::new();
    for voter in voters {
        groups.entry(rng.range(1, count)).or_default().push(voter.to_string());
    }
    let mut lines: Vec<String> =
        groups.iter().map(|(id, ids)| format!("group.{id}={}", ids.join(":"))).collect();
    for (at, voter) in voters.iter().enumerate() {
        if rng.one_in(3) {
            let lightest = if at == 0 { 1 } else { lightest };
            lines.push(format!("weight.{voter}={}", rng.range(lightest, 3)));
        }
    }
    let others = voters.iter().filter(|&&voter| Some(voter) != spared);
    let others = others.map(|&voter| ServerId(voter as i64)).collect();
    let members = voters.iter().map(|&voter| member(voter, true)).chain(lines.iter().cloned());
    let view = View::parse(&members.collect::<Vec<_>>().join("\n"));
    if view.is_ok_and(|view| view.has_quorum(&others)) { lines } else { Vec::new() }
}

/// Creates the znodes that other requests need.
pub fn setup() -> Vec<Request> {
    let op = Op::Create { ephemeral: false, sequential: false, with_stat: true };
    let create = |path| Request { data: b"0".to_vec(), ..Request::new(op.clone(), path) };
    PAIR.into_iter().chain(["/q"]).map(create).collect()
}

impl Request {
    pub fn new(op: Op, path: &str) -> Self {
        Self { op, path: path.to_owned(), data: Vec::new(), version: -1 }
    }

    /// A create that succeeds if there is a leader: it shows at the end of a world that writes work.
    pub fn create_end() -> Self {
        Self::new(Op::Create { ephemeral: false, sequential: true, with_stat: false }, "/end")
    }

    pub fn some(rng: &mut Rng) -> Self {
        let (path, watch) = (PATHS[rng.pick(PATHS.len())], rng.one_in(2));
        let (with_stat, is_rare) = (rng.one_in(2), rng.one_in(5));
        let of_two = [-1, SEEN_VERSION][rng.pick(2)];
        let (op, path, version) = match rng.below(46) {
            0..5 => (Op::Get { watch }, path, -1),
            5..8 => (Op::Exists { watch }, path, -1),
            8..11 => (Op::Children { watch }, path, -1),
            11..17 => (Op::Set { large: rng.one_in(12) }, path, -1),
            17..21 => (Op::Set { large: false }, path, SEEN_VERSION),
            21..29 => (Op::Create { ephemeral: is_rare, sequential: false, with_stat }, path, -1),
            29..32 => (Op::Create { ephemeral: watch, sequential: true, with_stat }, "/q/n", -1),
            32 | 33 => (Op::Delete, path, of_two),
            // A sequential znode that the client made.
            34 => (Op::Delete, "", -1),
            35 | 36 => (Op::SetPair { fails: rng.one_in(4) }, "", -1),
            37 | 38 => (Op::GetPair, "", -1),
            39 | 40 => (Op::Sync, path, -1),
            41 | 42 => (Op::CreateAndSet { ephemeral: watch }, path, of_two),
            43 => (Op::AddWatch { recursive: watch }, path, -1),
            _ if is_rare => (Op::Close, "", -1),
            _ => (Op::Get { watch: false }, path, -1),
        };
        Self { version, ..Self::new(op, path) }
    }

    pub fn some_reconfig(rng: &mut Rng, climate: &Climate) -> Self {
        let server = rng.pick(climate.servers());
        // With groups only a non-incremental reconfiguration is possible; with an oracle most of them give two voters again.
        let is_whole = (climate.groups || climate.oracle) && !rng.one_in(4);
        let is_spared = climate.damaged.is_some();
        let (mut joining, mut leaving, mut members) = (None, None, None);
        match rng.below(5) {
            _ if climate.only_grows() => joining = Some(member(server, true)),
            0 | 1 if !is_whole => joining = Some(member(server, is_spared || !rng.one_in(4))),
            2 | 3 if !is_whole && !is_spared => leaving = Some(server.to_string()),
            _ if climate.oracle && !rng.one_in(3) => members = Some(some_pair(rng, climate)),
            _ => members = Some(some_members(rng, climate)),
        }
        let required = match rng.below(12) {
            0 => Required::Version(UNKNOWN_CONFIG),
            1..7 if climate.conditional => Required::Of(rng.pick(climate.servers())),
            _ => Required::Any,
        };
        Self::new(Op::Reconfig { required, joining, leaving, members }, "")
    }

    /// Gives the members that a reconfiguration names other client ports.
    pub fn give_other_ports(&mut self, rng: &mut Rng) {
        let Op::Reconfig { joining, members, .. } = &mut self.op else { return };
        let old = format!(";{CLIENT_PORT}");
        for text in joining.iter_mut().chain(members) {
            let mut parts = text.split(&old);
            let first = parts.next().unwrap_or_default().to_owned();
            *text = parts.fold(first, |new, part| format!("{new};{}{part}", some_client_port(rng)));
        }
    }

    /// Whether it becomes a transaction.
    pub const fn is_write(&self) -> bool {
        matches!(
            self.op,
            Op::Set { .. }
                | Op::Create { .. }
                | Op::Delete
                | Op::SetPair { .. }
                | Op::CreateAndSet { .. }
                | Op::Reconfig { .. }
                | Op::Close
        )
    }

    /// Whether it only reads.
    pub const fn is_read(&self) -> bool {
        matches!(self.op, Op::Get { .. } | Op::Exists { .. } | Op::Children { .. } | Op::GetPair)
    }

    /// The watch that a reply with this code sets.
    pub fn watch_left(&self, code: Code) -> Option<Watch> {
        match self.op {
            Op::Exists { watch: true } if code == Code::NO_NODE => Some(Watch::Data),
            _ if !code.is_ok() => None,
            Op::Get { watch: true } | Op::Exists { watch: true } => Some(Watch::Data),
            Op::Children { watch: true } => Some(Watch::Children),
            Op::AddWatch { recursive } => Some(Watch::Persistent { recursive }),
            _ => None,
        }
    }

    const fn kind(&self) -> i32 {
        match &self.op {
            Op::Get { .. } => op::GET_DATA,
            Op::Exists { .. } => op::EXISTS,
            Op::Children { .. } => op::GET_CHILDREN2,
            Op::Set { .. } => op::SET_DATA,
            Op::Create { with_stat: true, .. } => op::CREATE2,
            Op::Create { .. } => op::CREATE,
            Op::Delete => op::DELETE,
            Op::SetPair { .. } | Op::CreateAndSet { .. } => op::MULTI,
            Op::AddWatch { .. } => op::ADD_WATCH,
            Op::Reconfig { .. } => op::RECONFIG,
            Op::GetPair => op::MULTI_READ,
            Op::Sync => op::SYNC,
            Op::Close => op::CLOSE_SESSION,
            Op::Ping => op::PING,
            Op::SetWatches(lists) if !lists.persistent.is_empty() => op::SET_WATCHES2,
            Op::SetWatches(_) => op::SET_WATCHES,
        }
    }

    /// Appends the request as a frame.
    pub fn put(&self, xid: i32, to: &mut Vec<u8>) {
        put_frame(to, |to| {
            RequestHeader { xid, kind: self.kind() }.encode(to);
            self.put_body(to);
        });
    }

    fn put_body(&self, to: &mut Vec<u8>) {
        let path = || text(&self.path);
        match &self.op {
            &Op::Get { watch } => GetDataRequest { path: path(), watch }.encode(to),
            &Op::Exists { watch } => ExistsRequest { path: path(), watch }.encode(to),
            &Op::Children { watch } => GetChildrenRequest { path: path(), watch }.encode(to),
            Op::Set { .. } => self.put_set(&self.path, to),
            &Op::Create { ephemeral, sequential, .. } => {
                self.put_create(&self.path, ephemeral, sequential, to);
            }
            Op::Delete => DeleteRequest { path: path(), version: self.version }.encode(to),
            Op::SetPair { fails } => {
                for path in PAIR {
                    put_part(op::SET_DATA, to);
                    self.put_set(path, to);
                }
                if *fails {
                    put_part(op::CHECK, to);
                    CheckVersionRequest { path: text("/nowhere"), version: 0 }.encode(to);
                }
                put_part(-1, to);
            }
            Op::GetPair => {
                for path in PAIR {
                    put_part(op::GET_DATA, to);
                    GetDataRequest { path: text(path), watch: false }.encode(to);
                }
                put_part(-1, to);
            }
            &Op::CreateAndSet { ephemeral } => {
                put_part(op::CREATE, to);
                self.put_create("/q/t", ephemeral, true, to);
                put_part(op::SET_DATA, to);
                self.put_set(&self.path, to);
                put_part(-1, to);
            }
            &Op::AddWatch { recursive } => {
                AddWatchRequest { path: path(), mode: i32::from(recursive) }.encode(to);
            }
            Op::Reconfig { required, joining, leaving, members } => ReconfigRequest {
                joining_servers: joining.as_deref().map(Into::into),
                leaving_servers: leaving.as_deref().map(Into::into),
                new_members: members.as_deref().map(Into::into),
                cur_config_id: match required {
                    Required::Version(version) => *version,
                    Required::Any | Required::Of(_) => -1,
                },
            }
            .encode(to),
            Op::Sync => SyncRequest { path: path() }.encode(to),
            Op::Close | Op::Ping => {}
            Op::SetWatches(WatchLists { since, data, absent, children, persistent }) => {
                SetWatches {
                    relative_zxid: *since,
                    data_watches: list(data),
                    exist_watches: list(absent),
                    child_watches: list(children),
                }
                .encode(to);
                for is_recursive in [false, true].into_iter().filter(|_| !persistent.is_empty()) {
                    let paths =
                        persistent.iter().filter(|(_, recursive)| *recursive == is_recursive);
                    list(paths.map(|(path, _)| path)).encode(to);
                }
            }
        }
    }

    fn put_create(&self, path: &str, ephemeral: bool, sequential: bool, to: &mut Vec<u8>) {
        let id = Id { scheme: text("world"), id: text("anyone") };
        let acl = Vector::Owned(vec![Acl { perms: 31, id }]);
        let flags = i32::from(ephemeral) + 2 * i32::from(sequential);
        CreateRequest { path: text(path), data: Some(&self.data), acl, flags }.encode(to);
    }

    fn put_set(&self, path: &str, to: &mut Vec<u8>) {
        let (path, data) = (text(path), Some(&self.data[..]));
        SetDataRequest { path, data, version: self.version }.encode(to);
    }

    /// Reads the reply's body.
    ///
    /// # Errors
    /// [`DecodeError`] if these bytes are not the body of a reply to this request.
    pub fn answer(&self, header: ReplyHeader, body: &[u8]) -> Result<Body, DecodeError> {
        let mut from = Reader::new(body);
        if header.err != 0 {
            return Ok(Body::Nothing);
        }
        Ok(match self.op {
            Op::Get { .. } => {
                let read: GetDataResponse<'_> = from.read()?;
                Body::Data(read.data.map(<[u8]>::to_vec), read.stat)
            }
            Op::Exists { .. } => Body::Stat(from.read::<ExistsResponse>()?.stat),
            Op::Children { .. } => {
                let read: GetChildren2Response<'_> = from.read()?;
                let names = read.children.iter().flatten();
                Body::Children(names.map(|name| name.into_owned()).collect(), read.stat)
            }
            Op::Set { .. } => Body::Stat(from.read::<SetDataResponse>()?.stat),
            Op::Create { with_stat: true, .. } => {
                let read: Create2Response<'_> = from.read()?;
                Body::Path(read.path.unwrap_or_default().into_owned(), Some(read.stat))
            }
            Op::Create { .. } => {
                let read: CreateResponse<'_> = from.read()?;
                Body::Path(read.path.unwrap_or_default().into_owned(), None)
            }
            Op::SetPair { .. } | Op::CreateAndSet { .. } => Body::Parts(multi_codes(&mut from)?),
            Op::GetPair => Body::Pair([read_one(&mut from)?, read_one(&mut from)?]),
            _ => Body::Nothing,
        })
    }
}

/// A configuration of two voters, for which an oracle may answer. Some of the others observe.
fn some_pair(rng: &mut Rng, climate: &Climate) -> String {
    let (one, off) = (rng.pick(climate.servers()), rng.range(1, climate.servers() as u64 - 1));
    let other = (one + off as usize) % climate.servers();
    let votes = |server: usize| server == one || server == other;
    let kept = (0..climate.servers()).filter(|&server| votes(server) || rng.one_in(2));
    kept.map(|server| member(server, votes(server))).collect::<Vec<_>>().join(",")
}

/// A whole configuration. Where a disk may be damaged at any time, the other servers are a quorum.
fn some_members(rng: &mut Rng, climate: &Climate) -> String {
    let (mut lines, mut voters) = (Vec::new(), Vec::new());
    for server in 0..climate.servers() {
        let role = match rng.below(4) {
            0 | 3 if climate.damaged.is_some() && server < 3 => 1,
            role => role,
        };
        if role > 0 {
            lines.push(member(server, role < 3));
        }
        if let 1 | 2 = role {
            voters.push(server);
        }
    }
    if climate.groups && !voters.is_empty() && !rng.one_in(4) {
        lines.extend(quorum_system(rng, &voters, 1, climate.damaged));
    }
    lines.join(",")
}

fn text(path: &str) -> Ustring<'_> {
    Some(path.into())
}

fn list<'a>(paths: impl IntoIterator<Item = &'a String>) -> Vector<'a, Ustring<'a>> {
    Vector::Owned(paths.into_iter().map(|path| text(path)).collect())
}

/// Begins a part of a multi, or ends the multi with -1.
fn put_part(kind: i32, to: &mut Vec<u8>) {
    MultiHeader { kind, done: kind == -1, err: -1 }.encode(to);
}

/// Code of each part of a write.
fn multi_codes(from: &mut Reader<'_>) -> Result<Vec<i32>, DecodeError> {
    let mut codes = Vec::new();
    loop {
        let header: MultiHeader = from.read()?;
        if header.done {
            return Ok(codes);
        }
        codes.push(match header.kind {
            op::ERROR => from.read::<i32>()?,
            op::CREATE => from.read::<CreateResponse<'_>>().map(|_| 0)?,
            op::SET_DATA => from.read::<Stat>().map(|_| 0)?,
            _ => header.err,
        });
    }
}

/// The data that one part of a multi of reads found.
fn read_one(from: &mut Reader<'_>) -> Result<Option<Vec<u8>>, DecodeError> {
    let header: MultiHeader = from.read()?;
    if header.kind == op::ERROR {
        return from.read::<i32>().map(|_| None);
    }
    Ok(from.read::<GetDataResponse<'_>>()?.data.map(<[u8]>::to_vec))
}

/// Whether this code says only that the session has expired or moved.
pub const fn is_of_session(code: Code) -> bool {
    matches!(code, Code::SESSION_EXPIRED | Code::SESSION_MOVED)
}
