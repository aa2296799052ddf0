//! Keeps file descriptors free for log, snapshots and other servers when connections are accepted.

use crate::member::listening::Port;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::os::fd::AsRawFd;
use tokio::net::TcpStream;

/// Returns the accepted connection, unless it leaves too few descriptors free.
///
/// # Errors
/// A text with the limit to raise.
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
