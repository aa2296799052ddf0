//! Records shared by clients, peers and files. Module `org.apache.zookeeper.data` of zookeeper.jute.

use crate::{Ustring, record};

record! {
    pub struct Id<'a> {
        scheme: Ustring<'a>,
        id: Ustring<'a>,
    }
}

record! {
    pub struct Acl<'a> {
        perms: i32,
        id: Id<'a>,
    }
}

record! {
    pub struct Stat {
        czxid: i64,
        mzxid: i64,
        ctime: i64,
        mtime: i64,
        version: i32,
        cversion: i32,
        aversion: i32,
        ephemeral_owner: i64,
        data_length: i32,
        num_children: i32,
        pzxid: i64,
    }
}

record! {
    pub struct StatPersisted {
        czxid: i64,
        mzxid: i64,
        ctime: i64,
        mtime: i64,
        version: i32,
        cversion: i32,
        aversion: i32,
        ephemeral_owner: i64,
        pzxid: i64,
    }
}

record! {
    pub struct ClientInfo<'a> {
        auth_scheme: Ustring<'a>,
        user: Ustring<'a>,
    }
}
