//! Host, user, directories and memory of this process, for `envi`.

use crate::admin::EnvironmentInfo;
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

/// The name of the user who has started the server.
pub fn user_name() -> String {
    let user = user(rustix::process::getuid().as_raw());
    user.map_or_else(|| EnvironmentInfo::default().user_name, |(name, _)| name)
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
