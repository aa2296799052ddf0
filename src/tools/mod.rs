//! The operator's commands other than the server itself.

#![allow(clippy::disallowed_methods, reason = "a tool waits by the clock")]

pub mod bench;
pub mod config_check;
pub mod config_check_folders;
mod config_check_stores;
pub mod four_letter_word;
pub mod generate;
pub mod java_command;
mod problem_groups;
mod server_admin_client;
pub mod status;
pub mod tls_options;
pub mod toolkit_help;
pub mod toolkits;
