//! Random values for the fields of requests: paths, data, ACLs, versions.
//!
//! There are few paths, so that operations collide: most fail or succeed because of what an earlier one did.

use super::rng::Choose;
use super::script::Acl;
use super::text::Text;
use oxkeeper::model::Rng;

/// Which requests scripts may contain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// 1: sessions, create, delete, reads, watches, setData, sync. 2: everything a client can send.
    pub stage: u8,
    /// Leave out requests for which Java itself predicts a wrong tree digest: op 1/15 with flag 4, op 19 with flag 0 (P-36).
    pub sound_digests: bool,
    /// Let clients send deleteContainer, which Java lets any client do (P-41).
    pub delete_container: bool,
    /// Only requests with these verbs, as scripts write them; empty: all. Opening and closing connections is always included.
    pub only: &'static [String],
}

/// Chooses the next operation of one client, below one node.
pub struct Chooser {
    pub rng: Rng,
    pub limits: Limits,
    /// The node all paths begin with.
    pub base: String,
    /// Requests are sent without waiting, so requests whose result depends on when the server applied another one are left out.
    pub pipelined: bool,
    /// Paths of recent creates, successful or not: most operations use one of them.
    pub recent: Vec<String>,
    /// Also use nodes below `/zookeeper/quota`: quotas are checked when a write is applied, so only in lockstep.
    pub quota: bool,
    /// Other clients write at the same time, so use no node outside `base`.
    pub alone: bool,
}

const NAMES: [(usize, &str); 5] =
    [(30, "a"), (25, "b"), (20, "c"), (8, "q0000000000"), (12, OPEN_NAME)];

/// Znodes of this name are readable by all clients, so setWatches may name them. For znodes that the client may not read
/// Java sends events too, so they are not compared.
const OPEN_NAME: &str = "open";

impl Chooser {
    // rows: P-69 P-69a P-71 P-81
    pub(super) fn path(&mut self) -> Text {
        if self.rng.chance(7) {
            return self.odd_path();
        }
        if !self.alone && self.rng.chance(4) {
            const SPECIAL: [&str; 6] = [
                "/",
                "/zookeeper",
                "/zookeeper/quota",
                "/zookeeper/config",
                "/zookeeper/x",
                "/zookeeper/quota/x",
            ];
            return Some((*self.rng.choose(&SPECIAL)).into());
        }
        self.plain_path()
    }

    pub(super) fn plain_path(&mut self) -> Text {
        if !self.recent.is_empty() && self.rng.chance(80) {
            return Some(self.rng.choose(&self.recent).clone().into());
        }
        Some(self.fresh_path().into())
    }

    pub(super) fn fresh_path(&mut self) -> String {
        // A client that runs at the same time as others doesn't use its base itself: deleting it would show in the shared parent.
        let depth =
            *self.rng.weighted(&[(if self.alone { 0 } else { 2 }, 0), (50, 1), (33, 2), (15, 3)]);
        let mut path = self.base.clone();
        for _ in 0..depth {
            path.push('/');
            let &name = self.rng.weighted(&NAMES);
            path.push_str(name);
        }
        path
    }

    /// A path for a create: half of the time below a node that is likely to exist.
    pub(super) fn new_path(&mut self) -> Text {
        const KEPT: usize = 4;
        if self.rng.chance(15) {
            return self.path();
        }
        let mut path = self.base.clone();
        if !self.recent.is_empty() && self.rng.chance(45) {
            path = self.rng.choose(&self.recent).clone();
        }
        if path.matches('/').count() < 5 {
            let &name = self.rng.weighted(&NAMES);
            path = format!("{path}/{name}");
        }
        if self.recent.len() == KEPT {
            let oldest = self.rng.pick(KEPT);
            self.recent.swap_remove(oldest);
        }
        self.recent.push(path.clone());
        Some(path.into())
    }

    pub(super) fn odd_path(&mut self) -> Text {
        const INSIDE: [&[u8]; 16] = [
            b"/a/",
            b"/a//b",
            b"/a/./b",
            b"/../a",
            b"/",
            b"/\0",
            b"/a\x01b",
            b"/\x7f",
            b"/\xff\xfe",
            b"/\xc3\xa9",
            b"/\xc2\x85",
            b"/\xed\xa0\x80",
            b"/\xee\x80\x80",
            b"/\xf0\x9f\x98\x80",
            b"/\xef\xbf\xbd",
            b"/missing/child",
        ];
        const OUTSIDE: [Option<&[u8]>; 4] = [None, Some(b""), Some(b"foo"), Some(b"//")];
        if !self.alone && self.rng.chance(25) {
            return self.rng.choose(&OUTSIDE).map(<[u8]>::to_vec);
        }
        let inside = *self.rng.choose(&INSIDE);
        Some([self.base.as_bytes(), inside].concat())
    }

    // rows: G-11
    pub(super) fn data(&mut self) -> Text {
        let len = *self.rng.weighted(&[(10, 0), (60, 3), (15, 40), (3, 3000)]);
        if self.rng.chance(12) {
            return None;
        }
        let byte = self.rng.next() as u8;
        Some(vec![byte; len])
    }

    /// An ACL for the znode at `path`.
    pub(super) fn acl_of(&mut self, path: &Text) -> Option<Vec<Acl>> {
        let acl = self.acl();
        if path.as_ref().is_some_and(|path| is_open(path)) { self.open_acl() } else { acl }
    }

    pub(super) fn open_acl(&self) -> Option<Vec<Acl>> {
        Some(vec![Acl { perms: 31, scheme: Some(b"world".into()), id: Some(b"anyone".into()) }])
    }

    /// A path for setWatches: if the znode exists, all clients may read it.
    pub(super) fn open_path(&mut self) -> Text {
        let mut path = self.fresh_path();
        if path == self.base || !is_open(path.as_bytes()) {
            path.push('/');
            path.push_str(OPEN_NAME);
        }
        Some(path.into())
    }

    fn acl(&mut self) -> Option<Vec<Acl>> {
        let acl = |perms, scheme: &str, id: &str| Acl {
            perms,
            scheme: Some(scheme.into()),
            id: Some(id.into()),
        };
        let anyone = |perms| acl(perms, "world", "anyone");
        let authenticates = self.limits.stage > 1;
        match self.rng.pick(100) {
            0..5 => Some(vec![anyone(1)]),
            5 => None,
            6 => Some(Vec::new()),
            7 => Some(vec![acl(31, "nonsense", "x")]),
            8 => Some(vec![anyone(1), anyone(1), anyone(30)]),
            9 => Some(vec![anyone(0)]),
            10 if authenticates => Some(vec![acl(31, "auth", "")]),
            11 if authenticates => Some(vec![acl(31, "digest", "u:Zm9v"), anyone(1)]),
            12 if authenticates => {
                Some(vec![acl(31, "ip", "127.0.0.1"), acl(1, "ip", "10.0.0.0/8")])
            }
            // One permission alone, and all but one: each operation needs a different one.
            13..18 => Some(vec![anyone(1 << self.rng.pick(5))]),
            18..23 => Some(vec![anyone(31 ^ 1 << self.rng.pick(5))]),
            _ => Some(vec![anyone(31)]),
        }
    }

    pub(super) fn version(&mut self) -> i32 {
        *self.rng.weighted(&[(60, -1), (15, 0), (10, 1), (5, 2), (3, 3), (1, -2), (1, i32::MAX)])
    }

    pub(super) fn watch(&mut self) -> bool {
        self.rng.chance(60)
    }
}

/// Sequential znodes have digits after the name, and some paths end with a slash.
fn is_open(path: &[u8]) -> bool {
    let name = path.trim_ascii_end().rsplit(|&byte| byte == b'/').find(|name| !name.is_empty());
    name.is_some_and(|name| name.starts_with(OPEN_NAME.as_bytes()))
}
