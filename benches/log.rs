//! What an append and a flush cost on this machine's disk, compared with the bare system calls.
//!
//! `cargo bench --bench log [folder]`; the folder should lie on the disk that a server would use.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout)] // A bench's numbers are its output.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oxkeeper::model::Zxid;
use oxkeeper::store::disk::Reading;
use oxkeeper::store::scan::scan;
use oxkeeper::store::{
    Disk, Log, LogOptions, Packing, Progress, RealDisk, SnapshotReader, SnapshotWriter, Trailers,
};

const ENTRY: [u8; 150] = [7; 150]; // A setData of 100 bytes.

fn main() {
    let folder = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let dir = tempfile::tempdir_in(folder.unwrap_or_else(std::env::temp_dir))
        .expect("a folder for the bench");
    let dir = dir.path();
    appends(dir);
    reading(dir);
    for round in 0..3 {
        println!("round {round}");
        bare(dir, "pwrite + fdatasync, blocks written before", 3000, 163, true);
        flushes(dir, "1 record, zeros ahead", 3000, 1, true);
        flushes(dir, "1 record, no zeros ahead", 3000, 1, false);
        bare(
            dir,
            "pwrite + fdatasync of 400 records' bytes, written before",
            1000,
            400 * 163,
            true,
        );
        bare(dir, "pwrite + fdatasync of 400 records' bytes, new blocks", 1000, 400 * 163, false);
        flushes(dir, "400 records, zeros ahead", 1000, 400, true);
        flushes(dir, "400 records, no zeros ahead", 1000, 400, false);
    }
}

fn appends(dir: &Path) {
    let mut log = Log::new(RealDisk, dir, LogOptions::default(), None);
    let count = 20_000;
    let begun = Instant::now();
    (1..=count).for_each(|raw| log.append(zxid(raw), &ENTRY));
    println!("append: {} ns each", begun.elapsed().as_nanos() as i64 / count);
}

/// Reading a million records back, from the page cache.
fn reading(dir: &Path) {
    let dir = tempfile::tempdir_in(dir).expect("a folder for the log");
    let mut log = Log::new(RealDisk, dir.path(), LogOptions::default(), None);
    for raw in 1..=1_000_000 {
        log.append(zxid(raw), &ENTRY);
        if raw % 20_000 == 0 {
            log.flush().expect("the disk works");
        }
    }
    let begun = Instant::now();
    let scanned =
        scan(&RealDisk, dir.path(), None, |_, _, _| Ok::<_, Infallible>(ControlFlow::Continue(())));
    let scanned = scanned.expect("the log reads back");
    println!("scan: {} ns per record", begun.elapsed().as_nanos() as u64 / scanned.records);

    let mut writer = SnapshotWriter::create(&RealDisk, dir.path(), zxid(1), Packing::Plain)
        .expect("the disk works");
    let begun = Instant::now();
    (0..3200).for_each(|_| writer.body(&[7; 64 << 10]).expect("the disk works"));
    writer.finish(Trailers::default()).expect("the disk works");
    println!("snapshot of 200 MiB: written durably in {} ms", begun.elapsed().as_millis());
    let begun = Instant::now();
    let file = Reading::open(&RealDisk, &dir.path().join("snapshot.1")).expect("it is there");
    let mut left = 200 << 20;
    let read = SnapshotReader::new(file).read(|bytes| {
        let consumed = bytes.len().min(left);
        left -= consumed;
        Ok::<_, Infallible>(Progress { consumed, finished: left == 0 })
    });
    read.expect("the snapshot reads back");
    println!("snapshot of 200 MiB: read in {} ms", begun.elapsed().as_millis());
}

fn flushes(dir: &Path, what: &str, count: i64, records: i64, ahead: bool) {
    let dir = tempfile::tempdir_in(dir).expect("a folder for the log");
    let mut log = Log::new(RealDisk, dir.path(), LogOptions::default(), None);
    let (mut took, mut filling) = (Vec::new(), Duration::ZERO);
    let mut raw = 0;
    for _ in 0..count {
        let begun = Instant::now();
        for _ in 0..records {
            raw += 1;
            log.append(zxid(raw), &ENTRY);
        }
        log.flush().expect("the disk works");
        took.push(begun.elapsed());
        if ahead {
            let begun = Instant::now();
            log.prepare_ahead().expect("the disk works");
            filling += begun.elapsed();
        }
    }
    print(what, took, filling);
}

/// What the system calls alone cost.
fn bare(dir: &Path, what: &str, count: u64, len: usize, written: bool) {
    let dir = tempfile::tempdir_in(dir).expect("a folder for the file");
    let disk = RealDisk;
    let file = disk.create(&dir.path().join("bare")).expect("the disk works");
    if written {
        disk.write_at(&file, 0, &vec![0; count as usize * len + 4096]).expect("the disk works");
    } else {
        disk.set_len(&file, 1 << 30).expect("the disk works");
    }
    disk.sync_data(&file).expect("the disk works");
    let bytes = vec![7; len];
    let mut took = Vec::new();
    for index in 0..count {
        let begun = Instant::now();
        disk.write_at(&file, index * len as u64, &bytes).expect("the disk works");
        disk.sync_data(&file).expect("the disk works");
        took.push(begun.elapsed());
    }
    print(what, took, Duration::ZERO);
}

fn print(what: &str, mut took: Vec<Duration>, filling: Duration) {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_micros();
    let mean = took.iter().sum::<Duration>().as_micros() / took.len() as u128;
    let filling = filling.as_micros() / took.len() as u128;
    println!(
        "{what}: p50 {} p99 {} mean {mean} us; filling {filling} us per flush",
        at(0.5),
        at(0.99)
    );
}

fn zxid(raw: i64) -> Zxid {
    Zxid::from_wire(raw).expect("positive")
}
