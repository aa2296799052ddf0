//! File headers. Module `org.apache.zookeeper.server.persistence` of zookeeper.jute.

use crate::record;

record! {
    pub struct FileHeader {
        magic: i32,
        version: i32,
        db_id: i64,
    }
}
