//! The answers of the HTTP ports: AdminServer's commands, probes, and metrics for Prometheus.
//!
//! An answer is a function of the request and of values collected elsewhere. Byte shapes are those of a ZooKeeper 3.9.5 server
//! (Jetty 9.4, Jackson 2.15), because probes and exporters match them as text: `grep error | grep null` finds a healthy server.
//!
//! # Not here
//! Sockets and heads of requests (`net`), collecting a `Status`, filling lists and what commands change (`server`).

mod addresses;
mod answer;
mod commands;
mod figures;
mod guard;
#[cfg(test)]
mod guard_tests;
mod json;
mod json_list;
mod own_metrics;
mod probes;
mod prometheus;
mod requests;
mod scrape;
mod target;

pub use answer::{AdminRequest, Answer, Call, Piece, Probe};
pub use commands::AdminCommand;
pub use guard::{
    Credentials, Limiters, Task, authorize, failed, failed_because, restored, snapshot_taken, task,
};
pub use json::Json;
pub use json_list::JsonList;
pub use probes::{live, ready};
pub use prometheus::Metrics;
pub use requests::{not_serving, read, run};
pub use scrape::{Scrape, read_scrape, scraped};
