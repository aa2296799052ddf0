//! Bytes that a server keeps while clients and strangers fill its buffers: each kind of load by itself, then all at once. Every
//! load has a bound, which is made of the rows of docs/limits.md that it names; the allocator counts what all of the process keeps.
#![allow(clippy::disallowed_methods, reason = "it waits for a server in real time")]

mod bytes {
    pub mod loads;
    pub mod server;
}

use bytes::loads::{LOADS, Load};
use bytes::server::Server;
use cap::Cap;
use std::alloc::System;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

#[global_allocator]
static BYTES: Cap<System> = Cap::new(System, usize::MAX);

/// How long a load is watched after it was applied. What is to come comes within a fraction of that.
const WATCHED: Duration = Duration::from_secs(1);
/// Not a measure of anything: when to give up.
const PATIENCE: Duration = Duration::from_secs(240);
/// What a server may keep when a load is gone: tables that grew, and the runtime's own.
const KEPT_MAX: usize = 8 << 20;

/// The most bytes that were kept during `work` and for some time after.
fn peak_during<T>(work: impl FnOnce() -> T + Send) -> (T, usize)
where
    T: Send,
{
    std::thread::scope(|scope| {
        let (done, is_done) = std::sync::mpsc::channel();
        let watching = scope.spawn(move || {
            let (mut peak, mut until) = (0, None);
            while until.is_none_or(|until| Instant::now() < until) {
                peak = peak.max(BYTES.allocated());
                std::thread::sleep(Duration::from_micros(200));
                // Without a sender the work has panicked.
                if until.is_none() && is_done.try_recv() != Err(TryRecvError::Empty) {
                    until = Some(Instant::now() + WATCHED);
                }
            }
            peak
        });
        let result = work();
        done.send(()).expect("somebody watches");
        (result, watching.join().expect("the watching thread only looks"))
    })
}

/// Waits until no more than `most` bytes are kept; what is kept then, or at last.
fn kept_after(most: usize) -> usize {
    let began = Instant::now();
    while most < BYTES.allocated() && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    BYTES.allocated()
}

/// Applies loads together; returns by how many bytes at most the memory that the server keeps has grown.
fn apply(server: &Server, loads: &[&Load]) -> usize {
    server.fill_window();
    let before = BYTES.allocated();
    let (held, peak) = peak_during(|| {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                loads.iter().map(|load| scope.spawn(|| (load.apply)(server))).collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("a load"));
            joined.flatten().collect::<Vec<_>>()
        })
    });
    server.assert_it_serves();
    drop(held);
    server.fill_window();
    let kept = kept_after(before + KEPT_MAX).saturating_sub(before);
    let names: Vec<&str> = loads.iter().map(|load| load.name).collect();
    assert!(kept <= KEPT_MAX, "{kept} bytes are kept after {names:?}");
    peak - before.min(peak)
}

#[test]
fn bytes_under_every_load_stay_below_the_bounds_of_the_page() {
    let server = Server::start();
    for load in LOADS {
        let kept = apply(&server, &[load]);
        eprintln!("{:<50} {:>8} KiB of {:>8}", load.name, kept >> 10, load.bound_bytes >> 10);
        assert!(kept <= load.bound_bytes, "{}: {kept} of {}", load.name, load.bound_bytes);
        assert!(load.least_bytes <= kept, "{} keeps {kept} bytes only: no load", load.name);
    }
    let all: Vec<&Load> = LOADS.iter().collect();
    let kept = apply(&server, &all);
    let bound: usize = LOADS.iter().map(|load| load.bound_bytes).sum();
    eprintln!("{:<50} {:>8} KiB of {:>8}", "all at once", kept >> 10, bound >> 10);
    assert!(kept <= bound, "all at once: {kept} of {bound}");
}

/// The rows that bounds are made of are in docs/limits.md.
#[test]
fn loads_name_rows_of_the_page() {
    let page = include_str!("../docs/limits.md");
    for load in LOADS {
        for row in load.rows {
            let is_row = |line: &str| line.starts_with(&format!("| {row}"));
            assert_eq!(page.lines().filter(|line| is_row(line)).count(), 1, "{row}");
        }
    }
}
