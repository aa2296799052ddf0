//! File descriptors that accepted connections leave to log, snapshots and other servers.

use crate::member::listening::Port;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::os::fd::AsRawFd;
use tokio::net::TcpStream;

/// A connection that was accepted, unless too few descriptors would be left with it.
///
/// # Errors
/// In words, which limit to raise.
pub fn leaving_enough(port: Port, stream: TcpStream) -> io::Result<TcpStream> {
    // Asked each time: an operator can change the limit of a process that runs.
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(stream) };
    let descriptor = u64::try_from(stream.as_raw_fd()).unwrap_or(0);
    if port.may_keep(descriptor, limit) {
        return Ok(stream);
    }
    Err(io::Error::other(format!(
        "{descriptor} of {limit} open files are in use, and the rest is kept for log, snapshots and other servers; \
         raise the limit of open files (ulimit -n, LimitNOFILE of systemd)"
    )))
}
