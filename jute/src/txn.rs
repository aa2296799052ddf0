//! Transactions, as they are logged and proposed. Module `org.apache.zookeeper.txn` of zookeeper.jute.

use crate::{Buffer, Ustring, Vector, record};

record! {
    pub struct TxnDigest {
        version: i32,
        tree_digest: i64,
    }
}

record! {
    pub struct TxnHeader {
        client_id: i64,
        cxid: i32,
        zxid: i64,
        time: i64,
        kind: i32,
    }
}

record! {
    pub struct CreateTxnV0<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        ephemeral: bool,
    }
}

record! {
    pub struct CreateTxn<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        ephemeral: bool,
        parent_cversion: i32,
    }
}

record! {
    pub struct CreateTtlTxn<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        parent_cversion: i32,
        ttl: i64,
    }
}

record! {
    pub struct CreateContainerTxn<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        parent_cversion: i32,
    }
}

record! {
    pub struct DeleteTxn<'a> {
        path: Ustring<'a>,
    }
}

record! {
    pub struct SetDataTxn<'a> {
        path: Ustring<'a>,
        data: Buffer<'a>,
        version: i32,
    }
}

record! {
    pub struct CheckVersionTxn<'a> {
        path: Ustring<'a>,
        version: i32,
    }
}

record! {
    pub struct SetAclTxn<'a> {
        path: Ustring<'a>,
        acl: Vector<'a, crate::data::Acl<'a>>,
        version: i32,
    }
}

record! {
    pub struct SetMaxChildrenTxn<'a> {
        path: Ustring<'a>,
        max: i32,
    }
}

record! {
    pub struct CreateSessionTxn {
        timeout_ms: i32,
    }
}

record! {
    pub struct CloseSessionTxn<'a> {
        paths: Vector<'a, Ustring<'a>>,
    }
}

record! {
    pub struct ErrorTxn {
        err: i32,
    }
}

record! {
    pub struct Txn<'a> {
        kind: i32,
        data: Buffer<'a>,
    }
}

record! {
    pub struct MultiTxn<'a> {
        txns: Vector<'a, Txn<'a>>,
    }
}
