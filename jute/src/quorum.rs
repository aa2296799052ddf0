//! Packets between servers. Module `org.apache.zookeeper.server.quorum` of zookeeper.jute.

use crate::{Buffer, Vector, record};

record! {
    pub struct LearnerInfo {
        server_id: i64,
        protocol_version: i32,
        config_version: i64,
    }
}

record! {
    pub struct QuorumPacket<'a> {
        kind: i32,
        zxid: i64,
        data: Buffer<'a>,
        auth_info: Vector<'a, crate::data::Id<'a>>,
    }
}

record! {
    pub struct QuorumAuthPacket<'a> {
        magic: i64,
        status: i32,
        token: Buffer<'a>,
    }
}
