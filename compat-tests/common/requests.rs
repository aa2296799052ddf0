//! A single random request of any type.

use super::choices::Chooser;
use super::rng::Choose;
use super::script::{Op, Seen, WatchLists};
use oxkeeper::client::op as code;

type Choice = fn(&mut Chooser) -> Op;

const STAGE_1: [(usize, Choice); 11] = [
    (26, Chooser::create),
    (10, Chooser::delete),
    (9, Chooser::exists),
    (9, Chooser::get_data),
    (5, Chooser::get_children),
    (7, Chooser::get_children2),
    (13, Chooser::set_data),
    (3, Chooser::sync),
    (1, Chooser::ping),
    (1, Chooser::malformed),
    (1, Chooser::trailing_bytes),
];

const STAGE_2: [(usize, Choice); 17] = [
    (5, Chooser::quota_node),
    (3, Chooser::get_acl),
    (5, Chooser::set_acl),
    (12, Chooser::multi),
    (3, Chooser::multi_read),
    (3, Chooser::create_container),
    (3, Chooser::create_ttl),
    (2, Chooser::delete_container),
    (6, Chooser::add_watch),
    (4, Chooser::remove_watches),
    (3, Chooser::check_watches),
    (3, Chooser::set_watches),
    (2, Chooser::get_ephemerals),
    (2, Chooser::get_all_children_number),
    (1, Chooser::who_am_i),
    (2, Chooser::auth),
    (1, Chooser::reconfig),
];

impl Chooser {
    /// One request on an open connection.
    pub fn request(&mut self) -> Op {
        const TRIES: usize = 10_000;
        let only = self.limits.only;
        (0..TRIES)
            .map(|_| self.any_request())
            .find(|op| {
                // A raw request, but `only` can select it by this name.
                let is_reconfig = matches!(op, Op::Raw { code: code::RECONFIG, .. });
                let verb = if is_reconfig { "reconfig" } else { op.verb() };
                only.is_empty() || only.iter().any(|wanted| wanted == verb)
            })
            .unwrap_or_else(|| panic!("no request of this stage is one of {only:?}"))
    }

    fn any_request(&mut self) -> Op {
        if self.limits.stage > 1 && self.rng.chance(40) {
            return self.rng.weighted(&STAGE_2)(self);
        }
        self.rng.weighted(&STAGE_1)(self)
    }

    // rows: P-36 P-37 P-69 P-70 G-01 G-04
    fn create(&mut self) -> Op {
        let code = *self.rng.choose(&[code::CREATE, code::CREATE2]);
        let mut flags = *self.rng.weighted(&[
            (50, 0),
            (16, 1),
            (15, 2),
            (10, 3),
            (1, 4),
            (1, 5),
            (1, 6),
            (1, 7),
            (1, -1),
        ]);
        if flags == 4 && self.limits.sound_digests {
            flags = 0;
        }
        let mut path = self.new_path();
        if let (2 | 3, Some(path), true) = (flags, &mut path, self.rng.chance(60)) {
            // The name before the sequence number: `q`, or none at all.
            path.extend_from_slice(if self.rng.chance(70) { b"/q" } else { b"/" });
        }
        let (data, acl) = (self.data(), self.acl_of(&path));
        Op::Create { code, path, data, acl, flags }
    }

    /// A create of an ephemeral that is likely to succeed, and to exist still when its session ends.
    pub fn ephemeral(&mut self) -> Op {
        let (path, data, acl) = (Some(self.fresh_path().into()), self.data(), self.open_acl());
        let flags = if self.rng.chance(50) { 1 } else { 3 };
        Op::Create { code: code::CREATE, path, data, acl, flags }
    }

    // rows: P-40 P-34
    fn delete(&mut self) -> Op {
        Op::Versioned { code: code::DELETE, path: self.path(), version: self.version() }
    }

    // rows: P-42 P-30 P-72
    fn exists(&mut self) -> Op {
        Op::Read { code: code::EXISTS, path: self.path(), watch: self.watch() }
    }

    // rows: P-43 P-72
    fn get_data(&mut self) -> Op {
        Op::Read { code: code::GET_DATA, path: self.path(), watch: self.watch() }
    }

    // rows: P-47
    fn get_children(&mut self) -> Op {
        Op::Read { code: code::GET_CHILDREN, path: self.path(), watch: self.watch() }
    }

    // rows: P-48 P-72
    fn get_children2(&mut self) -> Op {
        Op::Read { code: code::GET_CHILDREN2, path: self.path(), watch: self.watch() }
    }

    // rows: P-44
    fn set_data(&mut self) -> Op {
        Op::SetData { path: self.path(), data: self.data(), version: self.version() }
    }

    // rows: P-49
    fn sync(&mut self) -> Op {
        Op::Path { code: code::SYNC, path: self.path() }
    }

    // rows: P-50
    fn ping(&mut self) -> Op {
        Op::Bare { code: code::PING }
    }

    // rows: P-09a P-06
    fn malformed(&mut self) -> Op {
        const KINDS: [i32; 8] = [
            code::CREATE,
            code::DELETE,
            code::GET_DATA,
            code::SET_DATA,
            code::GET_CHILDREN2,
            code::MULTI,
            code::MULTI_READ,
            code::CREATE_TTL,
        ];
        let kinds = if self.limits.stage > 1 { &KINDS[..] } else { &KINDS[..5] };
        let bodies: [&[u8]; 4] =
            [b"", b"\0\0", b"\0\0\0\x7f/short", b"\x7f\xff\xff\xff/unreasonable"];
        Op::Raw { code: *self.rng.choose(kinds), body: self.rng.choose(&bodies).to_vec() }
    }

    // rows: P-09
    fn trailing_bytes(&mut self) -> Op {
        let path = [self.base.as_bytes(), b"/a"].concat();
        let mut body = Vec::new();
        jute::put_buffer(&mut body, &path);
        body.extend_from_slice(b"\0more than a getData needs");
        Op::Raw { code: code::GET_DATA, body }
    }

    // rows: P-45
    fn get_acl(&mut self) -> Op {
        Op::Path { code: code::GET_ACL, path: self.path() }
    }

    // rows: P-46
    fn set_acl(&mut self) -> Op {
        if self.pipelined {
            // Java checks the writes after it against the old ACL or the new one, depending on timing (G-17).
            return self.get_acl();
        }
        let path = self.path();
        let acl = self.acl_of(&path);
        Op::SetAcl { path, acl, version: self.version() }
    }

    // rows: P-52 P-61 P-62 P-63 P-64 P-65 P-66 P-68
    fn multi(&mut self) -> Op {
        let len = *self.rng.weighted(&[(1, 0), (4, 1), (8, 2), (8, 3), (3, 6)]);
        const SUB: [(usize, Choice); 8] = [
            (30, Chooser::create),
            (15, Chooser::delete),
            (20, Chooser::set_data),
            (12, Chooser::check),
            (3, Chooser::create_container),
            (3, Chooser::create_ttl),
            (1, Chooser::get_data),
            (1, Chooser::sync),
        ];
        let ops = (0..len).map(|_| self.rng.weighted(&SUB)(self)).collect();
        Op::Multi { code: code::MULTI, ops }
    }

    // rows: P-53 P-67
    fn multi_read(&mut self) -> Op {
        const SUB: [(usize, Choice); 3] =
            [(10, Chooser::get_data), (10, Chooser::get_children), (1, Chooser::exists)];
        let len = self.rng.pick(5);
        let ops = (0..len).map(|_| self.rng.weighted(&SUB)(self)).collect();
        Op::Multi { code: code::MULTI_READ, ops }
    }

    // rows: P-51
    fn check(&mut self) -> Op {
        Op::Versioned { code: code::CHECK, path: self.path(), version: self.version() }
    }

    // rows: P-38
    fn create_container(&mut self) -> Op {
        let flags = if !self.limits.sound_digests && self.rng.chance(5) { 0 } else { 4 };
        let (path, data) = (self.new_path(), self.data());
        let acl = self.acl_of(&path);
        Op::Create { code: code::CREATE_CONTAINER, path, data, acl, flags }
    }

    // rows: P-39
    fn create_ttl(&mut self) -> Op {
        let flags = *self.rng.weighted(&[(10, 5), (5, 6), (1, 0), (1, 3), (1, 7)]);
        // A create mode without TTL together with a TTL of -1 would crash a Java server for good.
        let ttls: &[i64] = if flags < 5 { &[0, 1, 1000] } else { &[-1, 0, 1, 1000, 1 << 41] };
        let ttl = *self.rng.choose(ttls);
        let path = self.path();
        let acl = self.acl_of(&path);
        Op::CreateTtl { path, data: self.data(), acl, flags, ttl }
    }

    fn delete_container(&mut self) -> Op {
        if !self.limits.delete_container {
            return self.create_container();
        }
        Op::Path { code: code::DELETE_CONTAINER, path: self.plain_path() }
    }

    // rows: P-57 P-76
    fn add_watch(&mut self) -> Op {
        let kind = *self.rng.weighted(&[(10, 0), (10, 1), (1, 2), (1, -1)]);
        Op::Watch { code: code::ADD_WATCH, path: self.path(), kind }
    }

    // rows: P-56
    fn remove_watches(&mut self) -> Op {
        let kind = *self.rng.weighted(&[(5, 1), (5, 2), (5, 3), (3, 4), (3, 5), (1, 0), (1, 9)]);
        Op::Watch { code: code::REMOVE_WATCHES, path: self.path(), kind }
    }

    // rows: P-55
    fn check_watches(&mut self) -> Op {
        let kind = *self.rng.weighted(&[(5, 1), (5, 2), (5, 3), (3, 4), (3, 5), (1, 0), (1, 9)]);
        Op::Watch { code: code::CHECK_WATCHES, path: self.path(), kind }
    }

    // rows: P-58 P-59 P-75
    fn set_watches(&mut self) -> Op {
        let code = *self.rng.choose(&[code::SET_WATCHES, code::SET_WATCHES2]);
        let zxid = *self.rng.choose(&[Seen::Last, Seen::Zxid(0), Seen::Zxid(i64::MAX)]);
        let mut lists = WatchLists::default();
        let used = if code == code::SET_WATCHES { 3 } else { 5 };
        for list in &mut lists[..used] {
            *list = (0..self.rng.pick(3)).map(|_| self.open_path()).collect();
        }
        Op::SetWatches { code, zxid, lists }
    }

    // rows: P-60b
    fn get_ephemerals(&mut self) -> Op {
        let path = if self.rng.chance(20) { None } else { self.path() };
        Op::Path { code: code::GET_EPHEMERALS, path }
    }

    // rows: P-60c
    fn get_all_children_number(&mut self) -> Op {
        Op::Path { code: code::GET_ALL_CHILDREN_NUMBER, path: self.path() }
    }

    // rows: P-60d
    fn who_am_i(&mut self) -> Op {
        Op::Bare { code: code::WHO_AM_I }
    }

    // rows: P-60 P-28
    fn auth(&mut self) -> Op {
        if self.pipelined {
            return self.who_am_i();
        }
        let scheme = *self.rng.weighted(&[(8, "digest"), (1, "nonsense"), (1, "ip")]);
        let auth = *self.rng.choose(&["u:p", "v:q", "x"]);
        Op::Auth { scheme: Some(scheme.into()), auth: Some(auth.into()) }
    }

    // rows: P-82
    fn quota_node(&mut self) -> Op {
        if !self.quota {
            return self.set_data();
        }
        let end = *self.rng.weighted(&[(2, ""), (4, "/zookeeper_limits"), (3, "/zookeeper_stats")]);
        let path = Some(format!("/zookeeper/quota{}{end}", self.base).into_bytes());
        // Only data that parses: otherwise the next change below the node crashes a Java server, and truncates its
        // answer to mntr.
        const LIMITS: [&str; 4] = [
            "count=3,bytes=50",
            "count=-1,bytes=-1;byteHardLimit=60;countHardLimit=6",
            "count=-1,bytes=-1;byteHardLimit=-1;countHardLimit=3",
            "count=0,bytes=0",
        ];
        let data = Some((*self.rng.choose(&LIMITS)).into());
        match self.rng.pick(10) {
            0..5 => Op::Create { code: code::CREATE, path, data, acl: self.open_acl(), flags: 0 },
            5..7 => Op::SetData { path, data, version: -1 },
            7..9 => Op::Read { code: code::GET_DATA, path, watch: self.watch() },
            _ => Op::Versioned { code: code::DELETE, path, version: -1 },
        }
    }

    /// A quota that is soon exceeded. Without the zookeeper_stats node, Java counts nothing.
    pub fn quota_nodes(&self) -> Vec<Op> {
        let node = |end: &str, data: &str| {
            let path = Some(format!("/zookeeper/quota{}{end}", self.base).into_bytes());
            let (data, acl) = (Some(data.into()), self.open_acl());
            Op::Create { code: code::CREATE, path, data, acl, flags: 0 }
        };
        vec![
            node("", ""),
            node("/zookeeper_limits", "count=2,bytes=20;byteHardLimit=60;countHardLimit=5"),
            node("/zookeeper_stats", "count=1,bytes=0"),
        ]
    }

    // rows: P-54
    fn reconfig(&mut self) -> Op {
        // Three null strings, then the expected version of the configuration.
        let body = [[0xFF; 4]; 5].concat();
        Op::Raw { code: code::RECONFIG, body }
    }
}
