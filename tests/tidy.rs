//! The house rules that a machine can check. Each complaint says what to do, and each rule has a test that it can fail.
//!
//! * rooms: which room may use which. The table is below; `ARCHITECTURE.md` gives the reasons.
//! * purity: the rooms that decide touch no clock, file, socket, thread or chance.
//! * size: files, functions and the files that perform actions stay small enough to read.
//! * circles: files of one room use each other in one direction; `map` prints rooms, arrows and circles.
//! * wording: comments, pages, strings, names of tests and log lines keep to plain words.
//! * messages: docs/messages.md has every WARN and ERROR, and each says what to do.
//! * reasons: docs/reasons.md has every text that reaches a log line as a value.
//! * links: those of pages lead to files and headings.
//! * names: tests that pages name are in the files that they name.
//! * layout: the map matches the disk, dependencies have reasons, scripts stay thin, nothing is half-built.

mod tidy {
    pub mod arrows;
    pub mod circles;
    pub mod layout;
    pub mod links;
    pub mod messages;
    pub mod names;
    pub mod prose;
    pub mod purity;
    pub mod reasons;
    pub mod rooms;
    pub mod size;
    pub mod source;
    pub mod version;
    pub mod wording;
}

/// Each room and the rooms it may use. Arrows point one way: nothing may use `server`.
///
/// A line appears here before its room does. A room on disk without a line fails.
pub const ROOMS: &[(&str, &[&str])] = &[
    ("jute", &[]),
    ("metrics", &[]),
    ("model", &["jute"]),
    ("auth", &["model"]),
    ("config", &["model", "auth"]), // The rules of names are parsed while settings are checked.
    ("tree", &["model", "jute"]),
    ("zab", &["model", "jute"]),
    ("store", &["model", "jute"]),
    ("request", &["model", "auth", "tree", "jute"]),
    ("replica", &["model", "zab", "request", "tree", "jute"]),
    ("member", &["model", "config", "auth", "store", "zab", "request", "replica", "tree", "jute"]),
    ("net", &["model", "jute", "auth", "config", "metrics", "request", "zab", "member"]),
    ("admin", &["model", "config", "metrics", "auth"]),
    ("client", &["model", "jute"]),
    // `auth` and `net` for certificates: config check shows stores as the server reads them, and bench speaks TLS.
    ("tools", &["client", "config", "store", "tree", "model", "jute", "metrics", "auth", "net"]),
    (
        "sim",
        &[
            "jute", "model", "auth", "config", "tree", "zab", "request", "replica", "member",
            "store",
        ],
    ),
    ("server", EVERYTHING),
    ("main", EVERYTHING),
];

/// Rooms that decide: same input, same output, on every machine and in every simulated world.
pub const PURE: &[&str] = &["jute", "model", "auth", "tree", "zab", "request", "replica", "member"];

/// Crates that a pure room may use: they do no IO, start nothing and read no clock.
///
/// A new one needs a reason here, not just in `Cargo.toml`.
pub const PURE_CRATES: &[&str] = &[
    "jute",
    "bytes",     // Shared payloads.
    "hashbrown", // Hash tables that are given their hasher.
    "foldhash",  // With a seed that is an argument; `RandomState` is refused below.
    "crc32fast", // The tree digest.
    "thiserror", // Typed errors.
    "sha1",      // Passwords of scheme digest.
    "sha2",      // The same, for SHA-256 and SHA-512.
    "sha3",      // The same, for SHA3.
    "md5",       // The same, for MD5; the crate is md-5.
    "base64",    // The same, as text.
    "subtle",    // Comparison in constant time.
    "zeroize",   // Passwords are overwritten when dropped.
    "regex",     // Rules of Kerberos names; its time is linear in the text.
    "tracing",   // Logs are no decision; the subscriber is main's.
    "shuttle",   // Its locks instead of std's, only in tests with the feature of that name.
];

pub const EVERYTHING: &[&str] = &["*"];

/// One broken rule: where, and what to do about it.
pub type Complaints = Vec<String>;

/// Fails with all complaints at once, so that one run shows all there is to fix.
#[track_caller]
pub fn none(complaints: Complaints) {
    assert!(complaints.is_empty(), "{} found:\n{}", complaints.len(), complaints.join("\n"));
}

/// For self-tests: exactly one complaint, which contains `about`.
#[track_caller]
pub fn one(complaints: Complaints, about: &str) {
    assert!(
        complaints.len() == 1 && complaints[0].contains(about),
        "expected one complaint about {about:?}, got {complaints:?}"
    );
}
