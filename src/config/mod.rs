//! From `zoo.cfg`, JVM flags and the command line to one checked [`Config`].
//!
//! # Invariants
//! 1. A [`Config`] in hand has been checked: nothing downstream asks again whether it makes sense.
//! 2. All parsing is pure over text and a map of environment variables; only [`load`], [`load_from`] and
//!    [`LogSettings::of_server`] read files.
//! 3. Nothing fails open: a setting that guards something and that this server cannot honour is a
//!    [`Problem`], never a [`Warning`]. Every problem is reported, not only the first.
//!
//! # Not here
//! Resolving host names, creating directories, exit codes: `server` and `main`.

mod admin_server;
mod args;
mod audit;
mod auth_providers;
mod check_report;
mod checked_config;
mod checker;
mod cipher_suites;
mod clashes;
mod client_address;
mod client_sasl;
mod client_schemes;
mod client_tls;
pub mod dynamic;
mod ensemble;
#[cfg(test)]
mod ensemble_tests;
mod file_settings;
pub mod jaas;
pub mod keys;
mod log_output;
mod log_settings;
pub mod logback;
mod logback_loggers;
mod logback_pattern;
mod logback_rolling;
#[cfg(test)]
mod logback_tests;
mod logback_xml;
mod logins;
mod members;
mod metrics_provider;
#[cfg(test)]
mod page;
mod parse;
mod pause_monitor;
mod problem;
mod property_reader;
mod property_settings;
mod quorum_sasl;
mod quorum_tls;
mod risks;
pub mod sasl;
mod script_flags;
mod secrets;
mod system_properties;
mod throttle;
pub mod tls;
mod tls_settings;
mod unsupported;
mod unused;
mod whitelist;

pub use crate::model::properties::{Entries, Entry, PropertiesError, parse as parse_properties};

pub use admin_server::{AdminServer, ShownConfig};
pub use args::{Launch, ReadFile, Settings, load, load_from, parse_args};
pub use audit::Audit;
pub use auth_providers::Providers;
pub use check_report::{Check, Understood, check};
pub use checked_config::{Config, SnapshotCompression};
pub use ensemble::Ensemble;
pub use log_output::{Appender, Dates, LogFile, NamePart, Period, Rolling, Stream};
pub use log_settings::LogSettings;
pub use logback_pattern::{PatternField, PatternPart, Width};
pub use metrics_provider::{MetricsHttps, MetricsSettings, Prometheus, Provider};
pub use parse::{DEFAULT_CONFIG, Source, parse, parse_positional};
pub use pause_monitor::PauseMonitor;
pub use problem::{ConfigError, Problem, SettingPlace, Warning};
pub use risks::{FileRights, ROOT, exposed, risks, secret_files};
pub use system_properties::{Environment, flag_value};
pub use throttle::Throttle;
pub use whitelist::{WORDS, Whitelist};
