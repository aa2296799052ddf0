//! What clients ask, as bytes, and what they hear, as values.

use super::rng::Rng;
use crate::model::{Code, op};
use jute::data::{Acl, Id, Stat};
use jute::proto::{
    CheckVersionRequest, Create2Response, CreateRequest, CreateResponse, DeleteRequest,
    ExistsRequest, ExistsResponse, GetChildren2Response, GetChildrenRequest, GetDataRequest,
    GetDataResponse, MultiHeader, ReplyHeader, RequestHeader, SetDataRequest, SetDataResponse,
    SyncRequest,
};
use jute::{DecodeError, Encode, Reader, Ustring, Vector, put_frame};

/// Znodes that all clients know of.
pub const PATHS: [&str; 8] = ["/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/b/x/z", "/q"];
/// Set together, so that nobody may ever see them differ.
pub const PAIR: [&str; 2] = ["/pair1", "/pair2"];

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
        match rng.below(42) {
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
            Self::Pair { .. } => op::MULTI,
            Self::ReadPair => op::MULTI_READ,
            Self::Sync { .. } => op::SYNC,
            Self::Close => op::CLOSE_SESSION,
            Self::Ping => op::PING,
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
                let id = Id { scheme: text("world"), id: text("anyone") };
                let acl = Vector::Owned(vec![Acl { perms: 31, id }]);
                CreateRequest { path: text(path), data: Some(data), acl, flags }.encode(to);
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
            Self::Sync { path } => SyncRequest { path: text(path) }.encode(to),
            Self::Close | Self::Ping => {}
            Self::Watches { since, data, absent, children } => {
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
            Self::Pair { .. } => Body::Parts(multi_codes(&mut from)?),
            Self::ReadPair => Body::Pair(read_pair(&mut from)?),
            Self::Delete { .. }
            | Self::Sync { .. }
            | Self::Close
            | Self::Ping
            | Self::Watches { .. } => Body::Nothing,
        })
    }
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
