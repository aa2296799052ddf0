//! What clients ask, as bytes, and what they hear, as values.

use super::rng::Rng;
use crate::model::{Code, op};
use jute::data::{Acl, Id, Stat};
use jute::proto::{
    AddWatchRequest, CheckVersionRequest, Create2Response, CreateRequest, CreateResponse,
    DeleteRequest, ExistsRequest, ExistsResponse, GetChildren2Response, GetChildrenRequest,
    GetDataRequest, GetDataResponse, MultiHeader, ReconfigRequest, ReplyHeader, RequestHeader,
    SetDataRequest, SetDataResponse, SyncRequest,
};
use jute::{DecodeError, Encode, Reader, Ustring, Vector, put_frame};

/// Znodes that all clients know of.
pub const PATHS: [&str; 8] = ["/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/b/x/z", "/q"];
/// Set together, so that nobody may ever see them differ.
pub const PAIR: [&str; 2] = ["/pair1", "/pair2"];

/// Who is to belong to the ensemble, and as what.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    /// It comes in, or takes another role.
    Join {
        server: usize,
        votes: bool,
    },
    Leave {
        server: usize,
    },
    /// All at once.
    ///
    /// * `members`: two bits for each server, the first one's lowest: 0 it is left out, 1 it votes, 2 it observes.
    All {
        members: u32,
    },
}

impl Change {
    pub fn some(rng: &mut Rng, servers: usize) -> Self {
        let server = rng.pick(servers);
        match rng.below(5) {
            0 | 1 => Self::Join { server, votes: !rng.one_in(4) },
            2 | 3 => Self::Leave { server },
            _ => {
                let role = |rng: &mut Rng| [0, 1, 1, 2][rng.pick(4)] as u32;
                let roles = (0..servers).map(|server| role(rng) << (2 * server));
                Self::All { members: roles.sum() }
            }
        }
    }

    /// * `only_if`: it is the configuration in force; -1: whatever that is.
    pub fn request(self, only_if: i64) -> Request {
        let mut request = Request::Change { joining: None, leaving: None, members: None, only_if };
        let Request::Change { joining, leaving, members, .. } = &mut request else {
            return request;
        };
        match self {
            Self::Join { server, votes } => *joining = Some(member(server, votes)),
            Self::Leave { server } => *leaving = Some(server.to_string()),
            Self::All { members: roles } => {
                let role = |server: usize| roles >> (2 * server) & 3;
                let lines = (0..16).filter(|&server| role(server) != 0);
                let lines = lines.map(|server| member(server, role(server) == 1));
                *members = Some(lines.collect::<Vec<_>>().join(","));
            }
        }
        request
    }
}

/// A server's line in a configuration.
pub fn member(server: usize, votes: bool) -> String {
    let role = if votes { "participant" } else { "observer" };
    format!("server.{server}=host{server}:2888:3888:{role};2181")
}

/// What a client does without knowing how things stand: paths are places in [`PATHS`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ask {
    Get {
        path: usize,
        watch: bool,
    },
    Exists {
        path: usize,
        watch: bool,
    },
    Children {
        path: usize,
        watch: bool,
    },
    /// * `versioned`: only if it is still what the client saw last.
    Set {
        path: usize,
        versioned: bool,
        large: bool,
    },
    Create {
        path: usize,
        ephemeral: bool,
    },
    /// Below `/q`.
    Sequential {
        ephemeral: bool,
    },
    Delete {
        path: usize,
        versioned: bool,
    },
    /// One that was made in sequence.
    DeleteOwn,
    /// Both of [`PAIR`] get the same, or, `fails`, neither.
    Pair {
        fails: bool,
    },
    ReadPair,
    /// A sequential znode, and one of [`PATHS`] set, together.
    Trade {
        path: usize,
        ephemeral: bool,
        versioned: bool,
    },
    /// A watch that stays.
    ///
    /// * `deep`: for all below the path too.
    Follow {
        path: usize,
        deep: bool,
    },
    /// Another configuration.
    Change(Change),
    Sync {
        path: usize,
    },
    Close,
    /// Makes what the others need.
    Setup,
    /// A write that succeeds wherever a leader is: with it a world shows that it works.
    Last,
}

impl Ask {
    pub fn some(rng: &mut Rng) -> Self {
        let (path, watch) = (rng.pick(PATHS.len()), rng.one_in(2));
        match rng.below(46) {
            0..5 => Self::Get { path, watch },
            5..8 => Self::Exists { path, watch },
            8..11 => Self::Children { path, watch },
            11..17 => Self::Set { path, versioned: false, large: rng.one_in(12) },
            17..21 => Self::Set { path, versioned: true, large: false },
            21..29 => Self::Create { path, ephemeral: rng.one_in(5) },
            29..32 => Self::Sequential { ephemeral: rng.one_in(2) },
            32 | 33 => Self::Delete { path, versioned: rng.one_in(2) },
            34 => Self::DeleteOwn,
            35 | 36 => Self::Pair { fails: rng.one_in(4) },
            37 | 38 => Self::ReadPair,
            39 | 40 => Self::Sync { path },
            41 | 42 => Self::Trade { path, ephemeral: rng.one_in(2), versioned: rng.one_in(2) },
            43 => Self::Follow { path, deep: rng.one_in(2) },
            _ if rng.one_in(5) => Self::Close,
            _ => Self::Get { path, watch: false },
        }
    }
}

/// A request with everything in it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    Get {
        path: String,
        watch: bool,
    },
    Exists {
        path: String,
        watch: bool,
    },
    Children {
        path: String,
        watch: bool,
    },
    Set {
        path: String,
        data: Vec<u8>,
        version: i32,
    },
    Create {
        path: String,
        data: Vec<u8>,
        ephemeral: bool,
        sequential: bool,
        with_stat: bool,
    },
    Delete {
        path: String,
        version: i32,
    },
    Pair {
        data: Vec<u8>,
        fails: bool,
    },
    ReadPair,
    Trade {
        path: String,
        data: Vec<u8>,
        version: i32,
        ephemeral: bool,
    },
    Follow {
        path: String,
        deep: bool,
    },
    /// As `reconfig`.
    Change {
        joining: Option<String>,
        leaving: Option<String>,
        members: Option<String>,
        only_if: i64,
    },
    Sync {
        path: String,
    },
    Close,
    Ping,
    /// After a change of connections: what is still waited for.
    Watches {
        since: i64,
        data: Vec<String>,
        absent: Vec<String>,
        children: Vec<String>,
        /// That stay, and whether for all below.
        lasting: Vec<(String, bool)>,
    },
}

/// What was answered, where there is anything to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Nothing,
    Data(Option<Vec<u8>>, Stat),
    Stat(Stat),
    Children(Vec<String>, Stat),
    Path(String, Option<Stat>),
    /// Of a multi: its parts' codes, where one failed.
    Parts(Vec<i32>),
    Pair([Option<Vec<u8>>; 2]),
}

fn text(path: &str) -> Ustring<'_> {
    Some(path.into())
}

impl Request {
    pub const fn kind(&self) -> i32 {
        match self {
            Self::Get { .. } => op::GET_DATA,
            Self::Exists { .. } => op::EXISTS,
            Self::Children { .. } => op::GET_CHILDREN2,
            Self::Set { .. } => op::SET_DATA,
            Self::Create { with_stat: true, .. } => op::CREATE2,
            Self::Create { .. } => op::CREATE,
            Self::Delete { .. } => op::DELETE,
            Self::Pair { .. } | Self::Trade { .. } => op::MULTI,
            Self::Follow { .. } => op::ADD_WATCH,
            Self::Change { .. } => op::RECONFIG,
            Self::ReadPair => op::MULTI_READ,
            Self::Sync { .. } => op::SYNC,
            Self::Close => op::CLOSE_SESSION,
            Self::Ping => op::PING,
            Self::Watches { lasting, .. } if !lasting.is_empty() => op::SET_WATCHES2,
            Self::Watches { .. } => op::SET_WATCHES,
        }
    }

    /// Whether it takes the way of writes.
    pub const fn is_write(&self) -> bool {
        matches!(
            self,
            Self::Set { .. }
                | Self::Create { .. }
                | Self::Delete { .. }
                | Self::Pair { .. }
                | Self::Trade { .. }
                | Self::Change { .. }
                | Self::Close
        )
    }

    /// Appends it as a frame.
    pub fn put(&self, xid: i32, to: &mut Vec<u8>) {
        put_frame(to, |to| {
            RequestHeader { xid, kind: self.kind() }.encode(to);
            self.put_body(to);
        });
    }

    fn put_body(&self, to: &mut Vec<u8>) {
        match self {
            Self::Get { path, watch } => {
                GetDataRequest { path: text(path), watch: *watch }.encode(to);
            }
            Self::Exists { path, watch } => {
                ExistsRequest { path: text(path), watch: *watch }.encode(to);
            }
            Self::Children { path, watch } => {
                GetChildrenRequest { path: text(path), watch: *watch }.encode(to);
            }
            Self::Set { path, data, version } => {
                SetDataRequest { path: text(path), data: Some(data), version: *version }.encode(to);
            }
            Self::Create { path, data, ephemeral, sequential, .. } => {
                let flags = i32::from(*ephemeral) + 2 * i32::from(*sequential);
                put_create(path, data, flags, to);
            }
            Self::Delete { path, version } => {
                DeleteRequest { path: text(path), version: *version }.encode(to);
            }
            Self::Pair { data, fails } => put_pair(data, *fails, to),
            Self::ReadPair => {
                for path in PAIR {
                    MultiHeader { kind: op::GET_DATA, done: false, err: -1 }.encode(to);
                    GetDataRequest { path: text(path), watch: false }.encode(to);
                }
                MultiHeader { kind: -1, done: true, err: -1 }.encode(to);
            }
            Self::Trade { path, data, version, ephemeral } => {
                MultiHeader { kind: op::CREATE, done: false, err: -1 }.encode(to);
                put_create("/q/t", data, i32::from(*ephemeral) + 2, to);
                MultiHeader { kind: op::SET_DATA, done: false, err: -1 }.encode(to);
                let set = SetDataRequest { path: text(path), data: Some(data), version: *version };
                set.encode(to);
                MultiHeader { kind: -1, done: true, err: -1 }.encode(to);
            }
            Self::Follow { path, deep } => {
                AddWatchRequest { path: text(path), mode: i32::from(*deep) }.encode(to);
            }
            Self::Change { joining, leaving, members, only_if } => ReconfigRequest {
                joining_servers: joining.as_deref().map(Into::into),
                leaving_servers: leaving.as_deref().map(Into::into),
                new_members: members.as_deref().map(Into::into),
                cur_config_id: *only_if,
            }
            .encode(to),
            Self::Sync { path } => SyncRequest { path: text(path) }.encode(to),
            Self::Close | Self::Ping => {}
            Self::Watches { since, data, absent, children, lasting } => {
                fn list(paths: &[String]) -> Vector<'_, Ustring<'_>> {
                    Vector::Owned(paths.iter().map(|path| text(path)).collect())
                }
                jute::proto::SetWatches {
                    relative_zxid: *since,
                    data_watches: list(data),
                    exist_watches: list(absent),
                    child_watches: list(children),
                }
                .encode(to);
                if !lasting.is_empty() {
                    for wanted in [false, true] {
                        let paths = lasting.iter().filter(|(_, deep)| *deep == wanted);
                        let paths: Vec<String> = paths.map(|(path, _)| path.clone()).collect();
                        list(&paths).encode(to);
                    }
                }
            }
        }
    }

    /// Reads the answer's body.
    ///
    /// # Errors
    /// [`DecodeError`] when it is none.
    pub fn answer(&self, header: ReplyHeader, body: &[u8]) -> Result<Body, DecodeError> {
        let mut from = Reader::new(body);
        if header.err != 0 {
            return Ok(Body::Nothing);
        }
        Ok(match self {
            Self::Get { .. } => {
                let read: GetDataResponse<'_> = from.read()?;
                Body::Data(read.data.map(<[u8]>::to_vec), read.stat)
            }
            Self::Exists { .. } => Body::Stat(from.read::<ExistsResponse>()?.stat),
            Self::Children { .. } => {
                let read: GetChildren2Response<'_> = from.read()?;
                let names = read.children.iter().flatten();
                Body::Children(names.map(|name| name.into_owned()).collect(), read.stat)
            }
            Self::Set { .. } => Body::Stat(from.read::<SetDataResponse>()?.stat),
            Self::Create { with_stat: true, .. } => {
                let read: Create2Response<'_> = from.read()?;
                Body::Path(read.path.unwrap_or_default().into_owned(), Some(read.stat))
            }
            Self::Create { .. } => {
                let read: CreateResponse<'_> = from.read()?;
                Body::Path(read.path.unwrap_or_default().into_owned(), None)
            }
            Self::Pair { .. } | Self::Trade { .. } => Body::Parts(multi_codes(&mut from)?),
            Self::ReadPair => Body::Pair(read_pair(&mut from)?),
            Self::Delete { .. }
            | Self::Follow { .. }
            | Self::Change { .. }
            | Self::Sync { .. }
            | Self::Close
            | Self::Ping
            | Self::Watches { .. } => Body::Nothing,
        })
    }
}

fn put_create(path: &str, data: &[u8], flags: i32, to: &mut Vec<u8>) {
    let id = Id { scheme: text("world"), id: text("anyone") };
    let acl = Vector::Owned(vec![Acl { perms: 31, id }]);
    CreateRequest { path: text(path), data: Some(data), acl, flags }.encode(to);
}

fn put_pair(data: &[u8], fails: bool, to: &mut Vec<u8>) {
    for path in PAIR {
        MultiHeader { kind: op::SET_DATA, done: false, err: -1 }.encode(to);
        SetDataRequest { path: text(path), data: Some(data), version: -1 }.encode(to);
    }
    if fails {
        MultiHeader { kind: op::CHECK, done: false, err: -1 }.encode(to);
        CheckVersionRequest { path: text("/nowhere"), version: 0 }.encode(to);
    }
    MultiHeader { kind: -1, done: true, err: -1 }.encode(to);
}

/// Code of each part of a write.
fn multi_codes(from: &mut Reader<'_>) -> Result<Vec<i32>, DecodeError> {
    let mut codes = Vec::new();
    loop {
        let header: MultiHeader = from.read()?;
        match header.kind {
            _ if header.done => return Ok(codes),
            op::ERROR => codes.push(from.read::<i32>()?),
            op::CREATE => {
                from.read::<CreateResponse<'_>>()?;
                codes.push(0);
            }
            op::SET_DATA => {
                from.read::<Stat>()?;
                codes.push(0);
            }
            _ => codes.push(header.err),
        }
    }
}

fn read_pair(from: &mut Reader<'_>) -> Result<[Option<Vec<u8>>; 2], DecodeError> {
    let mut pair = [None, None];
    for side in &mut pair {
        let header: MultiHeader = from.read()?;
        if header.kind == op::ERROR {
            from.read::<i32>()?;
            continue;
        }
        let read: GetDataResponse<'_> = from.read()?;
        *side = read.data.map(<[u8]>::to_vec);
    }
    Ok(pair)
}

/// Whether this answer says only that the session is no more, or elsewhere.
pub const fn is_of_session(code: Code) -> bool {
    matches!(code, Code::SESSION_EXPIRED | Code::SESSION_MOVED)
}
