//! Where the jars of Java ZooKeeper are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{env, io};

static JARS: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The folder of the jars; `compat-tests/jars` fetches them first if need be, and runs once for each process.
///
/// # Errors
/// When the jars cannot be fetched; the reason is on standard error.
pub fn jars() -> io::Result<PathBuf> {
    let mut known = JARS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(dir) = &*known {
        return Ok(dir.clone());
    }
    // Read at run time: worktrees that share a target folder may share the built test as well.
    let root =
        env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| io::Error::other("run it with cargo"))?;
    let script = Path::new(&root).join("compat-tests/jars");
    let done = Command::new(&script).stderr(Stdio::inherit()).output()?;
    if !done.status.success() {
        return Err(io::Error::other(format!("{} ended with {}", script.display(), done.status)));
    }
    let dir = PathBuf::from(String::from_utf8_lossy(&done.stdout).trim_end());
    *known = Some(dir.clone());
    Ok(dir)
}
