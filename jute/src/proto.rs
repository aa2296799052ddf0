//! Requests and replies of the client protocol. Module `org.apache.zookeeper.proto` of zookeeper.jute.

use crate::{Buffer, Ustring, Vector, record};

record! {
    pub struct ConnectRequest<'a> {
        protocol_version: i32,
        last_zxid_seen: i64,
        timeout_ms: i32,
        session_id: i64,
        password: Buffer<'a>,
        read_only: bool,
    }
}

record! {
    pub struct ConnectResponse<'a> {
        protocol_version: i32,
        timeout_ms: i32,
        session_id: i64,
        password: Buffer<'a>,
        read_only: bool,
    }
}

record! {
    pub struct SetWatches<'a> {
        relative_zxid: i64,
        data_watches: Vector<'a, Ustring<'a>>,
        exist_watches: Vector<'a, Ustring<'a>>,
        child_watches: Vector<'a, Ustring<'a>>,
    }
}

record! {
    pub struct SetWatches2<'a> {
        relative_zxid: i64,
        data_watches: Vector<'a, Ustring<'a>>,
        exist_watches: Vector<'a, Ustring<'a>>,
        child_watches: Vector<'a, Ustring<'a>>,
        persistent_watches: Vector<'a, Ustring<'a>>,
        persistent_recursive_watches: Vector<'a, Ustring<'a>>,
    }
}

record! {
    pub struct RequestHeader {
        xid: i32,
        kind: i32,
    }
}

record! {
    pub struct MultiHeader {
        kind: i32,
        done: bool,
        err: i32,
    }
}

record! {
    pub struct AuthPacket<'a> {
        kind: i32,
        scheme: Ustring<'a>,
        auth: Buffer<'a>,
    }
}

record! {
    pub struct ReplyHeader {
        xid: i32,
        zxid: i64,
        err: i32,
    }
}

record! {
    pub struct GetDataRequest<'a> {
        path: Ustring<'a>,
        watch: bool,
    }
}

record! {
    pub struct SetDataRequest<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        version: i32,
    }
}

record! {
    pub struct ReconfigRequest<'a> {
        joining_servers: Ustring<'a>,
        leaving_servers: Ustring<'a>,
        new_members: Ustring<'a>,
        cur_config_id: i64,
    }
}

record! {
    pub struct SetDataResponse {
        stat: crate::data::Stat,
    }
}

record! {
    pub struct GetSaslRequest<'a> {
        token: Buffer<'a>,
    }
}

record! {
    pub struct SetSaslRequest<'a> {
        token: Buffer<'a>,
    }
}

record! {
    pub struct SetSaslResponse<'a> {
        token: Buffer<'a>,
    }
}

record! {
    pub struct CreateRequest<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        flags: i32,
    }
}

record! {
    pub struct CreateTtlRequest<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        flags: i32,
        ttl: i64,
    }
}

record! {
    pub struct DeleteRequest<'a> {
        path: Ustring<'a>,
        version: i32,
    }
}

record! {
    pub struct GetChildrenRequest<'a> {
        path: Ustring<'a>,
        watch: bool,
    }
}

record! {
    pub struct GetAllChildrenNumberRequest<'a> {
        path: Ustring<'a>,
    }
}

record! {
    pub struct GetChildren2Request<'a> {
        path: Ustring<'a>,
        watch: bool,
    }
}

record! {
    pub struct CheckVersionRequest<'a> {
        path: Ustring<'a>,
        version: i32,
    }
}

record! {
    pub struct GetMaxChildrenRequest<'a> {
        path: Ustring<'a>,
    }
}

record! {
    pub struct GetMaxChildrenResponse {
        max: i32,
    }
}

record! {
    pub struct SetMaxChildrenRequest<'a> {
        path: Ustring<'a>,
        max: i32,
    }
}

record! {
    pub struct SyncRequest<'a> {
        path: Ustring<'a>,
    }
}

record! {
    pub struct SyncResponse<'a> {
        path: Ustring<'a>,
    }
}

record! {
    pub struct GetAclRequest<'a> {
        path: Ustring<'a>,
    }
}

record! {
    pub struct SetAclRequest<'a> {
        path: Ustring<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        version: i32,
    }
}

record! {
    pub struct SetAclResponse {
        stat: crate::data::Stat,
    }
}

record! {
    pub struct AddWatchRequest<'a> {
        path: Ustring<'a>,
        mode: i32,
    }
}

record! {
    pub struct WatcherEvent<'a> {
        kind: i32,
        state: i32,
        path: Ustring<'a>,
    }
}

record! {
    pub struct ErrorResponse {
        err: i32,
    }
}

record! {
    pub struct CreateResponse<'a> {
        path: Ustring<'a>,
    }
}

record! {
    pub struct Create2Response<'a> {
        path: Ustring<'a>,
        stat: crate::data::Stat,
    }
}

record! {
    pub struct ExistsRequest<'a> {
        path: Ustring<'a>,
        watch: bool,
    }
}

record! {
    pub struct ExistsResponse {
        stat: crate::data::Stat,
    }
}

record! {
    pub struct GetDataResponse<'a> {
        data: Buffer<'a>,
        stat: crate::data::Stat,
    }
}

record! {
    pub struct GetChildrenResponse<'a> {
        children: Vector<'a, Ustring<'a>>,
    }
}

record! {
    pub struct GetAllChildrenNumberResponse {
        total_number: i32,
    }
}

record! {
    pub struct GetChildren2Response<'a> {
        children: Vector<'a, Ustring<'a>>,
        stat: crate::data::Stat,
    }
}

record! {
    pub struct GetAclResponse<'a> {
        acl: Vector<'a, crate::data::Acl<'a>>,
        stat: crate::data::Stat,
    }
}

record! {
    pub struct CheckWatchesRequest<'a> {
        path: Ustring<'a>,
        kind: i32,
    }
}

record! {
    pub struct RemoveWatchesRequest<'a> {
        path: Ustring<'a>,
        kind: i32,
    }
}

record! {
    pub struct GetEphemeralsRequest<'a> {
        prefix_path: Ustring<'a>,
    }
}

record! {
    pub struct GetEphemeralsResponse<'a> {
        ephemerals: Vector<'a, Ustring<'a>>,
    }
}

record! {
    pub struct WhoAmIResponse<'a> {
        client_info: Vector<'a, crate::data::ClientInfo<'a>>,
    }
}
