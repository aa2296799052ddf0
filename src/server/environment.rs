//! Host, user, directories and memory of this process, for `envi`.

use crate::admin::{EnvironmentInfo, ProcessInfo};
use std::fs;

/// Asks the system. The memory figures are those of this moment.
pub fn look() -> EnvironmentInfo {
    let unknown = EnvironmentInfo::default();
    let system = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let (user_name, user_home) =
        user(rustix::process::getuid().as_raw()).unwrap_or((unknown.user_name, unknown.user_home));
    let current_dir = std::env::current_dir();
    let memory = Memory::look();
    EnvironmentInfo {
        host_name: text(system.nodename()),
        os_name: text(system.sysname()),
        // Java's name for it.
        os_arch: match std::env::consts::ARCH {
            "x86_64" => "amd64".to_owned(),
            other => other.to_owned(),
        },
        os_version: text(system.release()),
        user_name,
        user_home,
        user_dir: current_dir.map_or(unknown.user_dir, |dir| dir.display().to_string()),
        temp_dir: std::env::temp_dir().display().to_string(),
        memory_free_bytes: memory.free_bytes,
        memory_max_bytes: memory.max_bytes,
        memory_total_bytes: memory.own_bytes,
    }
}

/// What the system knows of this process; 0 where unknown.
pub fn process(open_files: Option<u64>, files_max: Option<u64>) -> ProcessInfo {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (stat, machine) = (read("/proc/self/stat"), read("/proc/stat"));
    let count = |count: Option<u64>| count.map_or(0.0, |count| count as f64);
    let known = ProcessInfo {
        open_files: count(open_files),
        files_max: files_max.map_or(f64::INFINITY, |max| max as f64),
        ..ProcessInfo::default()
    };
    process_of(&stat, &machine, known)
}

/// * `stat`, `machine`: `/proc/self/stat` and `/proc/stat`.
fn process_of(stat: &str, machine: &str, known: ProcessInfo) -> ProcessInfo {
    // The name of the program, in brackets, may have spaces in it.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or(stat).split(' ').collect();
    let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse().ok());
    let ticks = |number| field(number).unwrap_or(0.0) / CLOCK_TICKS;
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "));
    let booted: f64 = booted.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0.0);
    ProcessInfo {
        cpu_seconds: ticks(14) + ticks(15),
        start_seconds: booted + ticks(22),
        virtual_bytes: field(23).unwrap_or(0.0),
        resident_bytes: field(24).unwrap_or(0.0) * PAGE_BYTES,
        threads: field(20).unwrap_or(0.0),
        ..known
    }
}

/// Linux tells times of processes in these, on every machine.
const CLOCK_TICKS: f64 = 100.0;
const PAGE_BYTES: f64 = 4096.0;

/// Bytes of memory that this process may take at most; 0 if unknown.
pub fn memory_max() -> f64 {
    Memory::look().max_bytes as f64
}

/// The name of the user who has started the server.
pub fn user_name() -> String {
    let user = user(rustix::process::getuid().as_raw());
    user.map_or_else(|| EnvironmentInfo::default().user_name, |(name, _)| name)
}

/// Name and number of the user of this process, such as `zookeeper (1001)`, or the number alone.
pub fn user_with_id() -> String {
    let id = rustix::process::geteuid().as_raw();
    user(id).map_or_else(|| id.to_string(), |(name, _)| format!("{name} ({id})"))
}

/// Name and home of a user.
fn user(uid: u32) -> Option<(String, String)> {
    user_in(&fs::read_to_string("/etc/passwd").ok()?, uid)
}

/// * `passwd`: lines `name:password:uid:gid:comment:home:shell`.
fn user_in(passwd: &str, uid: u32) -> Option<(String, String)> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, id, _, _, home, ..] = fields[..] else { return None };
        (id.parse() == Ok(uid)).then(|| (name.to_owned(), home.to_owned()))
    })
}

/// Bytes of memory; 0 if unknown.
#[derive(Debug, Default, Eq, PartialEq)]
struct Memory {
    /// What this process could still take.
    free_bytes: u64,
    /// What this process may take at most.
    max_bytes: u64,
    /// What this process has taken.
    own_bytes: u64,
}

impl Memory {
    fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::of(
            &read("/proc/meminfo"),
            &read("/proc/self/status"),
            // The container's limit, if there is one.
            read("/sys/fs/cgroup/memory.max").trim().parse().ok(),
        )
    }

    fn of(machine: &str, process: &str, limit_bytes: Option<u64>) -> Self {
        let own_bytes = kilobytes(process, "VmRSS:");
        let (all, available) =
            (kilobytes(machine, "MemTotal:"), kilobytes(machine, "MemAvailable:"));
        let max_bytes = limit_bytes.map_or(all, |limit| limit.min(all));
        let free_bytes = available.min(max_bytes.saturating_sub(own_bytes));
        Self { free_bytes, max_bytes, own_bytes }
    }
}

/// The number in a line `<name>   <number> kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbroken\nzk:x:100:101::/var/zk:/bin/false\n";
        assert_eq!(user_in(passwd, 100), Some(("zk".to_owned(), "/var/zk".to_owned())));
        assert_eq!(user_in(passwd, 7), None);
    }

    #[test]
    fn memory_in_a_container_is_at_most_its_limit() {
        let machine = "MemTotal:       8000 kB\nMemFree: 10 kB\nMemAvailable:   6000 kB\n";
        let process = "VmPeak:\t 900 kB\nVmRSS:\t   500 kB\n";
        let memory = |free: u64, max: u64| Memory {
            free_bytes: free * 1024,
            max_bytes: max * 1024,
            own_bytes: 500 * 1024,
        };
        assert_eq!(Memory::of(machine, process, None), memory(6000, 8000));
        assert_eq!(Memory::of(machine, process, Some(2000 * 1024)), memory(1500, 2000));
        assert_eq!(Memory::of("", "", None), Memory::default());
    }

    // rows: M-47
    #[test]
    fn process_is_read_from_the_systems_files() {
        let stat = "22 (a) b) S 1 22 22 0 -1 4194560 5 0 0 0 150 50 0 0 20 0 9 0 1000 8192 3 18446";
        let found = process_of(stat, "cpu 1\nbtime 1700000000\n", ProcessInfo::default());
        assert_eq!((found.cpu_seconds, found.start_seconds), (2.0, 1_700_000_010.0));
        assert_eq!((found.virtual_bytes, found.resident_bytes), (8192.0, 12_288.0));
        assert_eq!(found.threads, 9.0);
        let own = process(Some(5), None);
        assert!(own.resident_bytes > 1e6 && own.start_seconds > 1e9 && own.open_files == 5.0);
    }

    // rows: W-15
    #[test]
    fn environment_of_this_process_is_found() {
        let found = look();
        let unknown = EnvironmentInfo::default();
        assert_ne!(found.host_name, unknown.host_name);
        assert_ne!(found.os_version, unknown.os_version);
        assert!(found.user_dir.starts_with('/'), "{found:?}");
        assert!(0 < found.memory_total_bytes && found.memory_total_bytes < found.memory_max_bytes);
    }
}
