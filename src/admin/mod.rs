//! The four-letter words and HTTP commands, by which operators query a running server, and the lines of the audit log.
//!
//! Everything here is a pure function of values collected elsewhere. Byte shapes are those of a
//! ZooKeeper 3.9.5 server, because Curator, `zkServer.sh` and a dozen exporters parse them.
//!
//! # Not here
//! Reading the four bytes and closing the connection (`net`), collecting a [`Status`] and filling a [`List`] (`server`).

mod audit;
mod conf;
mod connections;
mod dump;
mod effect;
mod environment;
mod gauges;
pub mod http;
mod list;
mod monitor;
mod numbers;
mod operations;
mod own_figures;
mod serve;
mod status;
mod words;

use std::sync::LazyLock;

pub use audit::{is_audit_error, put_audit_prefix, put_audit_text};
pub use dump::{watches_by_path, watches_by_session};
pub use effect::Effect;
pub use environment::EnvironmentInfo;
pub use list::{Expiries, Line, List};
pub use operations::operation_name;
pub use own_figures::{OwnFigures, PeerFigures};
pub use status::{
    ConnectionInfo, DumpCounts, LeaderInfo, MemberInfo, Mode, ObserverInfo, ProcessInfo,
    SessionInfo, SetCounts, Status, WatchTotals,
};
pub use words::{Answer, Word, answer, refusal};

/// The ZooKeeper release whose behaviour this server has.
const COMPATIBLE_WITH: &str = "3.9.5";

/// The build date, `YYYY-MM-DD hh:mm UTC`: from `build.rs` for a release build out of the repository, from the variable for
/// any build; otherwise the date when this version was begun. Parsers of the line expect a date there.
const BUILT_ON: &str = match option_env!("OXKEEPER_BUILT_ON") {
    Some(date) => date,
    None => "2026-11-01 00:00 UTC",
};

/// The version in Java's shape, `3.9.5-<revision>, built on <date>`; the revision is oxkeeper's own version.
///
/// Clients decide by the leading numbers what a server can do, so they are those of the ZooKeeper release whose
/// behaviour this server has.
///
/// Source: `Version.getFullVersion`, ZooKeeper 3.9.5.
pub fn version() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!("{COMPATIBLE_WITH}-oxkeeper.{own}, built on {BUILT_ON}")
}

/// What `oxkeeper version` prints: oxkeeper's own version first; with the commit in a release build out of the repository.
pub fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let own = env!("CARGO_PKG_VERSION");
        let commit = option_env!("OXKEEPER_COMMIT")
            .map_or_else(String::new, |commit| format!("commit {commit}, "));
        format!("{own} (as ZooKeeper {COMPATIBLE_WITH}; {commit}built on {BUILT_ON})")
    });
    &TEXT
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn version_has_the_shape_that_clients_parse() {
        let text = version();
        let (number, rest) = text.split_once('-').expect("kazoo and exporters read up to the dash");
        let numbers: Vec<u32> = number.split('.').map(|part| part.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 3, "{number}");
        let (revision, date) = rest.split_once(", built on ").expect("what Java's toString gives");
        // Telegraf takes the text after zk_version: letters, digits, dots and dashes.
        assert!(
            revision.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c)),
            "{revision}"
        );
        let shape: String =
            date.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00 00:00 UTC");
    }
}
