//! The tokio shell: boot, drive, shut down. Moves values between the rooms and decides nothing.
#![allow(clippy::disallowed_methods, reason = "threads and clocks are what the shell is for")]

mod boot;
mod clock;
mod driver;
mod limits;
mod report;
mod restore;
mod snapshots;

pub use boot::{ServerError, run};
pub use driver::chain;
pub use restore::{RestoreError, Restored, Restorer};
