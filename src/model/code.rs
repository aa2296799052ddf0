//! Error codes and opcodes of the client protocol (P-35..P-60h, P-85, P-86).

use std::fmt;

/// A result code of the client protocol; 0 is success. Codes from a peer or a log may be any number.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Code(pub i32);

impl Code {
    pub const OK: Self = Self(0);
    pub const RUNTIME_INCONSISTENCY: Self = Self(-2);
    pub const MARSHALLING_ERROR: Self = Self(-5);
    pub const UNIMPLEMENTED: Self = Self(-6);
    pub const BAD_ARGUMENTS: Self = Self(-8);
    pub const NO_NODE: Self = Self(-101);
    pub const NO_AUTH: Self = Self(-102);
    pub const BAD_VERSION: Self = Self(-103);
    pub const NO_CHILDREN_FOR_EPHEMERALS: Self = Self(-108);
    pub const NODE_EXISTS: Self = Self(-110);
    pub const NOT_EMPTY: Self = Self(-111);
    pub const SESSION_EXPIRED: Self = Self(-112);
    pub const INVALID_ACL: Self = Self(-114);
    pub const AUTH_FAILED: Self = Self(-115);
    pub const SESSION_MOVED: Self = Self(-118);
    pub const NOT_READ_ONLY: Self = Self(-119);
    pub const EPHEMERAL_ON_LOCAL_SESSION: Self = Self(-120);
    pub const NO_WATCHER: Self = Self(-121);
    pub const NEW_CONFIG_NO_QUORUM: Self = Self(-13);
    pub const RECONFIG_IN_PROGRESS: Self = Self(-14);
    pub const RECONFIG_DISABLED: Self = Self(-123);
    /// Named after SASL; the answer to every client that has not authenticated with a required scheme.
    pub const SESSION_CLOSED_REQUIRE_AUTH: Self = Self(-124);
    pub const QUOTA_EXCEEDED: Self = Self(-125);
    pub const THROTTLED_OP: Self = Self(-127);

    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Numbers of operations, in request headers and in transaction headers alike.
pub mod op {
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const GET_ACL: i32 = 6;
    pub const SET_ACL: i32 = 7;
    pub const GET_CHILDREN: i32 = 8;
    pub const SYNC: i32 = 9;
    pub const PING: i32 = 11;
    pub const GET_CHILDREN2: i32 = 12;
    pub const CHECK: i32 = 13;
    pub const MULTI: i32 = 14;
    pub const CREATE2: i32 = 15;
    pub const RECONFIG: i32 = 16;
    pub const CHECK_WATCHES: i32 = 17;
    pub const REMOVE_WATCHES: i32 = 18;
    pub const CREATE_CONTAINER: i32 = 19;
    pub const DELETE_CONTAINER: i32 = 20;
    pub const CREATE_TTL: i32 = 21;
    pub const MULTI_READ: i32 = 22;
    pub const AUTH: i32 = 100;
    pub const SET_WATCHES: i32 = 101;
    pub const SASL: i32 = 102;
    pub const GET_EPHEMERALS: i32 = 103;
    pub const GET_ALL_CHILDREN_NUMBER: i32 = 104;
    pub const SET_WATCHES2: i32 = 105;
    pub const ADD_WATCH: i32 = 106;
    pub const WHO_AM_I: i32 = 107;
    pub const CREATE_SESSION: i32 = -10;
    pub const CLOSE_SESSION: i32 = -11;
    /// Only as a transaction: a write that was refused.
    pub const ERROR: i32 = -1;
}

/// The special xids, of requests that a client does not count from 1 up (P-27).
pub mod xid {
    pub const NOTIFICATION: i32 = -1;
    pub const PING: i32 = -2;
    pub const AUTH: i32 = -4;
    pub const SET_WATCHES: i32 = -8;
}

/// What a watch event says happened (P-30).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum EventKind {
    NodeCreated = 1,
    NodeDeleted = 2,
    NodeDataChanged = 3,
    NodeChildrenChanged = 4,
}

#[cfg(test)]
mod tests {
    use super::Code;

    // rows: P-85 P-86
    #[test]
    fn codes_are_those_of_keeper_exception() {
        let all = [
            (Code::OK, 0),
            (Code::RUNTIME_INCONSISTENCY, -2),
            (Code::MARSHALLING_ERROR, -5),
            (Code::UNIMPLEMENTED, -6),
            (Code::BAD_ARGUMENTS, -8),
            (Code::NO_NODE, -101),
            (Code::NO_AUTH, -102),
            (Code::BAD_VERSION, -103),
            (Code::NO_CHILDREN_FOR_EPHEMERALS, -108),
            (Code::NODE_EXISTS, -110),
            (Code::NOT_EMPTY, -111),
            (Code::SESSION_EXPIRED, -112),
            (Code::INVALID_ACL, -114),
            (Code::AUTH_FAILED, -115),
            (Code::SESSION_MOVED, -118),
            (Code::NO_WATCHER, -121),
            (Code::RECONFIG_DISABLED, -123),
            (Code::SESSION_CLOSED_REQUIRE_AUTH, -124),
            (Code::QUOTA_EXCEEDED, -125),
            (Code::THROTTLED_OP, -127),
        ];
        for (code, number) in all {
            assert_eq!((code.0, code.is_ok()), (number, number == 0));
        }
    }
}
