//! A script: what several clients do, step by step.
//!
//! As text, one operation a line, `c1 getData "/a" watch=true`. A line that begins with `|` is sent together with the
//! line before it, without waiting for a reply. `#` begins a comment. `script_text.rs` prints and parses scripts.

use super::text::Text;

/// Clients a script may use: `c0` to `c3`.
pub const SLOTS: usize = 4;

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Acl {
    pub perms: i32,
    pub scheme: Text,
    pub id: Text,
}

/// The five lists of setWatches2; setWatches sends the first three.
pub type WatchLists = [Vec<Text>; 5];

/// One thing a client does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Op {
    /// A new session. `flag`: the optional readOnly byte.
    Connect {
        timeout_ms: i32,
        zxid: Seen,
        flag: Option<bool>,
    },
    /// Reconnects with the same session on a new socket. The client closes the old socket first; with `takeover` it leaves
    /// that to the server, which must close it.
    Reconnect {
        timeout_ms: i32,
        zxid: Seen,
        flag: Option<bool>,
        right_password: bool,
        takeover: bool,
    },
    /// Closes the socket without closeSession.
    Drop,
    /// closeSession.
    Close,
    /// Closes the socket without closeSession; the next step waits until the session has expired.
    Expire,
    Create {
        code: i32,
        path: Text,
        data: Text,
        acl: Option<Vec<Acl>>,
        flags: i32,
    },
    CreateTtl {
        path: Text,
        data: Text,
        acl: Option<Vec<Acl>>,
        flags: i32,
        ttl: i64,
    },
    SetData {
        path: Text,
        data: Text,
        version: i32,
    },
    SetAcl {
        path: Text,
        acl: Option<Vec<Acl>>,
        version: i32,
    },
    /// delete, check.
    Versioned {
        code: i32,
        path: Text,
        version: i32,
    },
    /// exists, getData, getChildren, getChildren2.
    Read {
        code: i32,
        path: Text,
        watch: bool,
    },
    /// sync, getACL, deleteContainer, getEphemerals, getAllChildrenNumber.
    Path {
        code: i32,
        path: Text,
    },
    /// addWatch (mode), checkWatches and removeWatches (type).
    Watch {
        code: i32,
        path: Text,
        kind: i32,
    },
    SetWatches {
        code: i32,
        zxid: Seen,
        lists: WatchLists,
    },
    /// multi, multiRead.
    Multi {
        code: i32,
        ops: Vec<Op>,
    },
    Auth {
        scheme: Text,
        auth: Text,
    },
    /// ping, whoAmI: a header and nothing else.
    Bare {
        code: i32,
    },
    /// Any opcode with any body.
    Raw {
        code: i32,
        body: Vec<u8>,
    },
    /// A frame that is too short for a request.
    Frame {
        body: Vec<u8>,
    },
}

/// The zxid that a client says it has seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// The highest zxid that this client has seen.
    Last,
    Zxid(i64),
}

/// One line: which client does what.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Line {
    pub slot: usize,
    pub op: Op,
}

/// Lines that are sent together.
pub type Step = Vec<Line>;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Script {
    pub steps: Vec<Step>,
}

impl Script {
    pub fn lines(&self) -> usize {
        self.steps.iter().map(Vec::len).sum()
    }

    /// Whether several clients send at the same time in some step, so that the order of their writes is not determined.
    ///
    /// Zxids are then equal only up to renaming.
    pub fn is_racy(&self) -> bool {
        self.steps.iter().any(|step| step.iter().any(|line| line.slot != step[0].slot))
    }

    /// The script without the lines for whose running number `keep` returns false.
    pub fn filtered(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut number = 0..;
        let mut steps: Vec<Step> = Vec::new();
        for step in &self.steps {
            let kept = step.iter().filter(|_| number.next().is_some_and(&keep));
            steps.push(kept.cloned().collect());
        }
        steps.retain(|step| !step.is_empty());
        Self { steps }
    }
}
