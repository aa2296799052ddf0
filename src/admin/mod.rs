//! What an operator asks a running server: the four-letter words.
//!
//! Everything here is a pure function of values collected elsewhere. Byte shapes are those of a
//! ZooKeeper 3.9.5 server, because Curator, `zkServer.sh` and a dozen exporters parse them.
//!
//! # Not here
//! Reading the four bytes and closing the connection (`net`), collecting a [`Status`] (`server`).

mod conf;
mod connections;
mod dump;
mod environment;
mod monitor;
mod operations;
mod serve;
mod status;
mod words;

pub use environment::EnvironmentInfo;
pub use operations::operation_name;
pub use status::{ConnectionInfo, Mode, SessionInfo, Status, WatchTotals};
pub use words::{Answer, Effect, Word, answer, refusal};

/// The release whose behaviour this is.
const COMPATIBLE_WITH: &str = "3.9.5";

/// When it was built, `YYYY-MM-DD hh:mm UTC`, if the build sets `OXKEEPER_BUILT_ON`. Otherwise the
/// epoch, as reproducible builds have it: parsers of the line want a date there.
const BUILT_ON: &str = match option_env!("OXKEEPER_BUILT_ON") {
    Some(date) => date,
    None => "1970-01-01 00:00 UTC",
};

/// The version in Java's shape, `3.9.5-<revision>, built on <date>`; our own stands as revision.
///
/// Source: `Version.getFullVersion`, ZooKeeper 3.9.5.
pub fn version() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!("{COMPATIBLE_WITH}-oxkeeper.{own}, built on {BUILT_ON}")
}
