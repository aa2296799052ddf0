//! One target under libFuzzer, which follows the branches that inputs reach and works on stable Rust. `OXKEEPER_TARGET` names it.

#![no_main]
#![allow(clippy::disallowed_methods, reason = "a fuzzer has no command line of its own")]

use fuzz_targets::{Target, named};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("OXKEEPER_TARGET").expect("OXKEEPER_TARGET names a target");
    named(&name)
});

fuzz_target!(|input: &[u8]| TARGET(input));
