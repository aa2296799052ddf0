//! The tokio shell: boot, drive, shut down. Moves values between the rooms and decides nothing.
#![allow(clippy::disallowed_methods, reason = "threads and clocks are what the shell is for")]

mod boot;
mod claim;
mod clock;
mod config_files;
mod driver;
#[cfg(test)]
mod driver_tests;
mod environment;
mod limits;
pub mod logging;
mod member;
mod membership;
mod oracle;
mod peers;
mod pipeline;
mod ready;
mod report;
mod rescue;
mod restore;
mod roles;
mod snapshots;
mod stop;
mod trace;

pub use boot::{ServerError, run};
pub use config_files::ConfigFiles;
pub use driver::chain;
pub use ready::Ready;
pub use restore::{RestoreError, Restored, Restorer};
