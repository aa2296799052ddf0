//! The names that `cons` gives the last operation of a connection.

use crate::model::op;

/// Java's four letters (six for one) for an operation; `NA` for one without, as a write that was refused.
///
/// Source: `FinalRequestProcessor.processRequest`, ZooKeeper 3.9.5.
pub fn operation_name(kind: i32) -> &'static str {
    match kind {
        op::PING => "PING",
        op::CREATE_SESSION => "SESS",
        op::CLOSE_SESSION => "CLOS",
        op::MULTI => "MULT",
        op::MULTI_READ => "MLTR",
        op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => "CREA",
        op::DELETE => "DELE",
        op::SET_DATA => "SETD",
        op::SET_ACL => "SETA",
        op::SYNC => "SYNC",
        op::EXISTS => "EXIS",
        op::GET_DATA => "GETD",
        op::GET_ACL => "GETA",
        op::GET_CHILDREN | op::GET_CHILDREN2 => "GETC",
        op::GET_ALL_CHILDREN_NUMBER => "GETACN",
        op::GET_EPHEMERALS => "GETE",
        op::SET_WATCHES => "SETW",
        op::SET_WATCHES2 => "STW2",
        op::ADD_WATCH => "ADDW",
        op::CHECK_WATCHES => "CHKW",
        op::REMOVE_WATCHES => "REMW",
        op::WHO_AM_I => "HOMI",
        _ => "NA",
    }
}
