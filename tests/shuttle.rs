//! The real locks under random schedules: threads of shuttle drive client connections' machines, the replica and the log.
//!
//! Each property is checked in many schedules, and each has a planted fault: the same steps, done by the test without the lock or in the
//! wrong order. A property whose fault is not found would prove nothing.
//!
//! Seeds are fixed, so a run can be repeated. `OXKEEPER_LONG=1` tries twenty times as many schedules.
//!
//! Runs with `cargo test --features shuttle --test shuttle`; without the feature there is nothing to build.

mod shuttle {
    pub mod properties;
    pub mod world;
}
