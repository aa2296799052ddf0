//! What is fuzzed: functions that take any bytes, and panic if what must hold does not. `fuzz/README.md` has a table of them.
//!
//! `fuzz/main.rs` calls them from libFuzzer; the program `mutate` plays [`mutation`]s of their seed corpus, and needs no build of its own.

mod certificates;
mod config;
mod detection;
mod digest_md5;
mod frames;
mod hello;
mod http;
mod jaas;
mod jute;
mod kerberos;
mod log;
mod logback;
mod memory;
pub mod mutation;
mod peers;
mod snapshot;
mod starts;
mod stores;
mod toolkits;
mod words;

use std::hint::black_box;

/// A target.
pub type Target = fn(&[u8]);

/// All targets by their names.
pub const TARGETS: [(&str, Target); 17] = [
    ("jute", jute::target),
    ("frames", frames::target),
    ("log", log::target),
    ("snapshot", snapshot::target),
    ("toolkits", toolkits::target),
    ("config", config::target),
    ("jaas", jaas::target),
    ("logback", logback::target),
    ("words", words::target),
    ("http", http::target),
    ("peers", peers::target),
    ("hello", hello::target),
    ("certificates", certificates::target),
    ("stores", stores::target),
    ("digest_md5", digest_md5::target),
    ("kerberos", kerberos::target),
    ("detection", detection::target),
];

/// Targets that fail on some inputs, so that a test sees what becomes of such inputs.
const PLANTED: [(&str, Target); 2] = [
    ("planted_panic", |input| assert!(!input.contains(&PLANTED_BYTE), "a planted panic")),
    ("planted_memory", |input| {
        let len = if input.contains(&PLANTED_BYTE) { 64 << 20 } else { 1 };
        memory::within_memory(|| drop(black_box(vec![1_u8; len])));
    }),
];

/// The byte on which planted targets fail.
pub const PLANTED_BYTE: u8 = 0xa7;

/// The target of this name.
///
/// # Panics
/// when there is none.
pub fn named(name: &str) -> Target {
    let found = TARGETS.iter().chain(&PLANTED).find(|(known, _)| *known == name);
    found
        .unwrap_or_else(|| {
            panic!("no target {name}; there are {:?}", TARGETS.map(|(known, _)| known))
        })
        .1
}
