//! Why the bytes of a proposal are not logged.

/// Why the bytes that a leader proposed are not a transaction of its history.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EntryError {
    #[error("{0}")]
    Unreadable(String),
    #[error("its transaction has zxid {0:#x}")]
    OtherZxid(i64),
}
