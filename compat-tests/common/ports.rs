//! Ports for servers that tests start.
//!
//! A port that the system gives a test, and that the test gives back for its server, may be another process's before the server
//! listens, or while it is down. So the ports are below those of outgoing connections, and each process has blocks of its own.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Ports from 11,000 to 28,999. The Python suites share them (`compat-tests/server.py`).
const FIRST: u16 = 11_000;
const BLOCKS: u16 = 180;
const BLOCK_PORTS: u16 = 100;

/// The blocks of this process. Their first ports are bound while it lives, so that every other process takes other blocks.
struct Ports {
    held: Vec<TcpListener>,
    next: u16,
    end: u16,
}

static PORTS: Mutex<Ports> = Mutex::new(Ports { held: Vec::new(), next: 0, end: 0 });

/// A port of the loopback address that no other process of these tests uses, and that is free now.
pub fn free_port() -> u16 {
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if ports.next == ports.end {
            let (first, held) = claimed();
            ports.held.push(held);
            (ports.next, ports.end) = (first + 1, first + BLOCK_PORTS);
        }
        let port = ports.next;
        ports.next += 1;
        if listener(port).is_some() {
            return port;
        }
    }
}

/// Several of them.
pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

/// The first port of a block that no process held.
fn claimed() -> (u16, TcpListener) {
    // Processes that start together have ids next to each other: their first tries are far apart.
    let from = std::process::id() % u32::from(BLOCKS) * 67;
    let blocks = (0..u32::from(BLOCKS)).map(|at| ((from + at) % u32::from(BLOCKS)) as u16);
    let firsts = blocks.map(|block| FIRST + block * BLOCK_PORTS);
    let mut claims = firsts.filter_map(|first| Some((first, listener(first)?)));
    claims.next().expect("a block of ports that no other process holds")
}

fn listener(port: u16) -> Option<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()
}
