//! The tokio shell: boot, drive, shut down. Moves values between the rooms and decides nothing but what
//! ARCHITECTURE.md lists under "Rules that only the server's IO has".
#![allow(clippy::disallowed_methods, reason = "threads and clocks are what the shell is for")]

mod absence;
mod admin_server;
mod audit_log;
mod boot;
#[cfg(test)]
mod boot_tests;
mod client_log;
mod client_ports;
#[cfg(test)]
mod client_sasl_tests;
mod client_schemes;
#[cfg(test)]
mod client_tls_tests;
mod clock;
mod data_dir_lock;
mod dated_files;
mod driver;
#[cfg(test)]
mod driver_tests;
mod environment;
mod error;
mod guarded_commands;
mod http_commands;
mod inbox;
mod java_line;
mod learner_figures;
mod limits;
mod listing;
mod load_tree;
mod local_time;
mod log_file;
mod log_pace;
pub mod logging;
mod member;
mod metrics_port;
mod operator_requests;
mod oracle;
mod own_figures;
mod pattern_line;
mod pause_monitor;
#[cfg(test)]
mod peer_tls_tests;
mod peers;
mod pipeline;
mod publish;
mod purging;
mod quorum_sasl;
mod ready;
mod replica_report;
mod report;
mod restore_body;
#[cfg(test)]
mod restore_tests;
mod role_log;
mod rolling_file;
mod service_manager;
mod shared_driver;
mod snapshots;
mod stop;
#[cfg(test)]
mod test_log;
mod tls;

pub use audit_log::AuditLog;
pub use boot::run;
pub use error::ServerError;
pub use load_tree::{RestoreError, Restored, Restorer};
pub use quorum_sasl::check_logins;
pub use ready::Ready;
pub use service_manager::ServiceManager;
