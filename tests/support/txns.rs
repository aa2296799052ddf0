//! Transactions as logs and proposals have them.

use bytes::Bytes;
use jute::Encode;
use jute::txn::{SetDataTxn, TxnHeader};
use oxkeeper::model::{Zxid, op};

/// A transaction of a `kind` whose record is that of setData, as a reconfiguration's is.
pub fn set_data(zxid: Zxid, kind: i32, path: &str, data: &[u8]) -> Bytes {
    let mut entry = Vec::new();
    let zxid = zxid.to_wire();
    TxnHeader { client_id: 1, cxid: 0, zxid, time: 1, kind }.encode(&mut entry);
    SetDataTxn { path: Some(path.into()), data: Some(data), version: 0 }.encode(&mut entry);
    entry.into()
}

/// A reconfiguration.
pub fn reconfig(zxid: Zxid, view: &str) -> Bytes {
    set_data(zxid, op::RECONFIG, "/zookeeper/config", view.as_bytes())
}
