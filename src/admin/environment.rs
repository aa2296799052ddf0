//! `envi`: host, user and memory of the process.

use std::fmt::Write;

/// Facts about this process and its host; `<NA>` or 0 where unknown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EnvironmentInfo {
    pub host_name: String,
    pub os_name: String,
    pub os_arch: String,
    pub os_version: String,
    pub user_name: String,
    pub user_home: String,
    /// Working directory; relative directories of the configuration start here.
    pub user_dir: String,
    pub temp_dir: String,
    /// Memory that this process could still take.
    pub memory_free_bytes: u64,
    /// Memory that this process may take at most.
    pub memory_max_bytes: u64,
    /// Memory that this process has taken.
    pub memory_total_bytes: u64,
}

const NOT_AVAILABLE: &str = "<NA>";

impl Default for EnvironmentInfo {
    fn default() -> Self {
        let unknown = || NOT_AVAILABLE.to_owned();
        Self {
            host_name: unknown(),
            os_name: unknown(),
            os_arch: unknown(),
            os_version: unknown(),
            user_name: unknown(),
            user_home: unknown(),
            user_dir: String::new(), // Put before paths, so it must not be `<NA>`.
            temp_dir: unknown(),
            memory_free_bytes: 0,
            memory_max_bytes: 0,
            memory_total_bytes: 0,
        }
    }
}

/// Lines `key=value` under a heading. There is no JVM, so its keys have Java's own value for "unknown".
///
/// Source: `EnvCommand` and `Environment.list`, ZooKeeper 3.9.5.
pub(super) fn render(info: &EnvironmentInfo) -> String {
    facts(info).iter().fold("Environment:\n".to_owned(), |mut text, (key, value)| {
        _ = writeln!(text, "{key}={value}"); // Writing to a string can't fail.
        text
    })
}

/// Keys and values, in Java's order.
pub(super) fn facts(info: &EnvironmentInfo) -> [(&'static str, String); 18] {
    let megabytes = |bytes: u64| format!("{}MB", bytes >> 20);
    [
        ("zookeeper.version", super::version()),
        ("host.name", info.host_name.clone()),
        ("java.version", NOT_AVAILABLE.to_owned()),
        ("java.vendor", NOT_AVAILABLE.to_owned()),
        ("java.home", NOT_AVAILABLE.to_owned()),
        ("java.class.path", NOT_AVAILABLE.to_owned()),
        ("java.library.path", NOT_AVAILABLE.to_owned()),
        ("java.io.tmpdir", info.temp_dir.clone()),
        ("java.compiler", NOT_AVAILABLE.to_owned()),
        ("os.name", info.os_name.clone()),
        ("os.arch", info.os_arch.clone()),
        ("os.version", info.os_version.clone()),
        ("user.name", info.user_name.clone()),
        ("user.home", info.user_home.clone()),
        ("user.dir", info.user_dir.clone()),
        ("os.memory.free", megabytes(info.memory_free_bytes)),
        ("os.memory.max", megabytes(info.memory_max_bytes)),
        ("os.memory.total", megabytes(info.memory_total_bytes)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: W-15
    #[test]
    fn envi_has_its_keys_in_javas_order() {
        let info = EnvironmentInfo { memory_max_bytes: 6028 << 20, ..Default::default() };
        let text = render(&info);
        let keys: Vec<&str> =
            text.lines().skip(1).map(|line| line.split_once('=').unwrap().0).collect();
        let java = "zookeeper.version host.name java.version java.vendor java.home \
            java.class.path java.library.path java.io.tmpdir java.compiler os.name os.arch \
            os.version user.name user.home user.dir os.memory.free os.memory.max os.memory.total";
        assert_eq!(keys, java.split_whitespace().collect::<Vec<_>>());
        assert!(text.starts_with("Environment:\n") && text.contains("os.memory.max=6028MB\n"));
    }
}
