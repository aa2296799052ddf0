//! Which bug is put back: `src/sabotage.rs` of the copy that `tests/sabotage.rs` makes. `OXKEEPER_BUG` names one for a process.

#![allow(clippy::disallowed_methods, reason = "a test names the bug in an environment variable")]

use std::cell::Cell;
use std::sync::LazyLock;

/// The names of all bugs: `tests/sabotage.rs` writes them here when it makes the copy.
const KNOWN: &[&str] = &[];

static NAMED: LazyLock<Option<&'static str>> = LazyLock::new(|| {
    let name = std::env::var("OXKEEPER_BUG").ok()?;
    let known = KNOWN.iter().copied().find(|known| *known == name);
    Some(known.unwrap_or_else(|| panic!("OXKEEPER_BUG={name}: no such bug; there are {KNOWN:?}")))
});

thread_local! {
    static ON: Cell<Option<&'static str>> = Cell::new(*NAMED);
}

/// Whether this bug is put back in this thread.
pub fn has(bug: &str) -> bool {
    ON.get() == Some(bug)
}

/// Whether any bug is put back.
///
/// # Panics
/// when the environment names an unknown bug, as all functions here do.
pub fn is_on() -> bool {
    ON.get().is_some()
}

/// Puts a bug back, or takes it out.
pub fn set(bug: Option<&'static str>) {
    ON.set(bug);
}

/// Does something while a bug is put back.
pub fn with<T>(bug: &'static str, work: impl FnOnce() -> T) -> T {
    struct Back(Option<&'static str>);
    impl Drop for Back {
        fn drop(&mut self) {
            set(self.0);
        }
    }
    let _back = Back(ON.replace(Some(bug)));
    work()
}

/// A switch for the bug that the environment names, if it names one.
pub fn named() -> Option<Box<dyn Fn(bool)>> {
    (*NAMED).map(|bug| Box::new(move |on: bool| set(on.then_some(bug))) as Box<dyn Fn(bool)>)
}
