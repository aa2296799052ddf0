//! The jars of the real server: taken from Maven once, kept in a cache.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

pub const VERSION: &str = "3.9.5";

/// Group, artifact and version of all that the server needs and its own pom leaves to whoever runs it.
const DEPENDENCIES: [[&str; 3]; 4] = [
    ["org.apache.zookeeper", "zookeeper", VERSION],
    ["io.dropwizard.metrics", "metrics-core", "4.1.12.1"],
    ["org.xerial.snappy", "snappy-java", "1.1.10.5"],
    // Logs to standard error, where the runner finds them.
    ["org.slf4j", "slf4j-simple", "2.0.13"],
];

/// The folder of the jars, filled first if need be.
///
/// `OXKEEPER_JARS` names another one than `~/.cache/oxkeeper/zookeeper-3.9.5`.
///
/// # Errors
/// When the cache cannot be written, or `mvn` is missing or fails.
pub fn jars() -> io::Result<PathBuf> {
    let dir = match env::var_os("OXKEEPER_JARS") {
        Some(dir) => PathBuf::from(dir),
        None => {
            let home = env::var_os("HOME").ok_or_else(|| io::Error::other("HOME is not set"))?;
            Path::new(&home).join(".cache/oxkeeper").join(format!("zookeeper-{VERSION}"))
        }
    };
    // A jar of ours alone proves nothing: a download may have been cut short before the last one.
    let done = dir.join(".complete");
    if !done.exists() {
        download(&dir)?;
        fs::write(done, "")?;
    }
    Ok(dir)
}

fn download(to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let project = tempfile::tempdir()?;
    let mut pom = String::from(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>jars</groupId><artifactId>jars</artifactId><version>1</version><dependencies>",
    );
    for [group, artifact, version] in DEPENDENCIES {
        pom.push_str(&format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
             <version>{version}</version></dependency>"
        ));
    }
    pom.push_str("</dependencies></project>");
    fs::write(project.path().join("pom.xml"), pom)?;
    let status = Command::new("mvn")
        .args(["-q", "-B", "dependency:copy-dependencies"])
        .arg(format!("-DoutputDirectory={}", to.display()))
        .current_dir(project.path())
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("mvn could not fetch the jars ({status})")));
    }
    // Two bindings of slf4j would quarrel over who logs.
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("logback-")) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
