//! `SnapshotFormatter`: prints a snapshot as text, or as JSON for ncdu.

use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::dates::Dates;
use super::outline::Outline;
use super::snapshot_file::{self, Overview, Part};
use super::{Failed, INVALID_INVOCATION, Outcome, Streams};
use crate::tree::digest::StatPart;
use crate::tree::load::Seen;

const USAGE: &str = "\
USAGE: SnapshotFormatter [-d|-json] snapshot_file
       -d dump the data for each znode
       -json dump znode info in json format
";

/// Runs the tool.
///
/// Znodes are printed in file order; Java prints children in the order of its hash tables. A file that is not depth first, as
/// ours are, needs memory for its paths if it is printed for ncdu; all else takes constant memory.
///
/// # Errors
/// [`Failed`]: a file that can't be read or is no snapshot.
///
/// Source: `SnapshotFormatter`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (is_json, arguments) = super::take_json(arguments);
    let is_option = |arg: &&String| ["-d", "-json"].contains(&arg.as_str());
    let options: Vec<&String> = arguments.iter().take_while(is_option).collect();
    let [name] = &arguments[options.len()..] else {
        streams.err.write_all(USAGE.as_bytes())?;
        return Ok(INVALID_INVOCATION);
    };
    let (has_data, is_ncdu) =
        (options.iter().any(|o| *o == "-d"), options.iter().any(|o| *o == "-json"));
    let refusal = refusal(name).or_else(|| {
        let both = "Cannot specify both data dump (-d) and json mode (-json) in same call";
        (has_data && is_ncdu).then(|| both.to_owned())
    });
    if let Some(refusal) = refusal {
        writeln!(streams.err, "{refusal}")?;
        return Ok(INVALID_INVOCATION);
    }
    let path = Path::new(name);
    let overview = snapshot_file::overview(path)?;
    snapshot_file::warn(path, overview.damage.as_ref(), streams.err)?;
    let outline = if overview.is_depth_first { None } else { Some(Outline::read(path)?.0) };
    if is_json {
        lines(path, &overview, has_data, streams.out)?;
    } else if is_ncdu {
        for_ncdu(path, outline, streams.out)?;
    } else {
        text(path, &overview, has_data, streams.out)?;
    }
    Ok(0)
}

/// Why a file can't be one, in Java's words.
fn refusal(name: &str) -> Option<String> {
    let file = super::absolute(name);
    match std::fs::metadata(name) {
        Err(_) => Some(format!("File '{file}' does not exist.")),
        Ok(_) if std::fs::File::open(name).is_err() => {
            Some(format!("Read permission is denied on the file '{file}'"))
        }
        Ok(found) if found.is_dir() => Some(format!("'{file}' is a directory. it must be a file.")),
        Ok(_) => None,
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn text(
    path: &Path,
    overview: &Overview,
    has_data: bool,
    out: &mut dyn Write,
) -> Result<(), Failed> {
    let dates = Dates::of_machine();
    // Java's table of znodes has the root twice, as "" and as "/".
    writeln!(out, "ZNode Details (count={}):", overview.znodes + 1)?;
    snapshot_file::each(path, |part| match part {
        Part::Sessions(_) => Ok(()),
        Part::Znode(seen) => Ok(znode(&seen, has_data, &dates, out)?),
    })?;
    writeln!(out, "----\nSession Details (sid, timeout, ephemeralCount):")?;
    for (id, timeout_ms, ephemerals) in &overview.sessions {
        writeln!(out, "{}, {timeout_ms}, {ephemerals}", hex(*id))?;
    }
    writeln!(out, "----\nLast zxid: 0x{:x}", overview.zxid.max(zxid_in_name(path)))?;
    Ok(())
}

/// Sixteen characters, `0x` among them, as `%#016x` gives.
fn hex(value: i64) -> String {
    format!("{value:#016x}")
}

fn znode(seen: &Seen<'_>, has_data: bool, dates: &Dates, out: &mut dyn Write) -> io::Result<()> {
    let StatPart { czxid, mzxid, pzxid, ctime, mtime, .. } = seen.stat;
    let StatPart { version, cversion, aversion, ephemeral_owner, .. } = seen.stat;
    writeln!(out, "----\n{}", shown(&seen.path))?;
    writeln!(out, "  cZxid = {}\n  ctime = {}", hex(*czxid), dates.long(*ctime))?;
    writeln!(out, "  mZxid = {}\n  mtime = {}", hex(*mzxid), dates.long(*mtime))?;
    writeln!(out, "  pZxid = {}\n  cversion = {cversion}\n  dataVersion = {version}", hex(*pzxid))?;
    writeln!(out, "  aclVersion = {aversion}\n  ephemeralOwner = {}", hex(*ephemeral_owner))?;
    let data = seen.data.unwrap_or_default();
    match has_data {
        true => writeln!(out, "  data = {}", STANDARD.encode(data)),
        false => writeln!(out, "  dataLength = {}", data.len()),
    }
}

/// The zxid in the file's name; -1 if it is not the name of a snapshot.
fn zxid_in_name(path: &Path) -> i64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut parts = name.split('.');
    let zxid = (parts.next() == Some("snapshot")).then(|| parts.next()).flatten();
    zxid.and_then(|zxid| i64::from_str_radix(zxid, 16).ok()).unwrap_or(-1)
}

/// One object a line: znodes, sessions, and what the whole file says.
fn lines(
    path: &Path,
    overview: &Overview,
    has_data: bool,
    out: &mut dyn Write,
) -> Result<(), Failed> {
    snapshot_file::each(path, |part| {
        let Part::Znode(seen) = part else { return Ok(()) };
        let mut object = json!({
            "path": shown(&seen.path),
            "czxid": format!("0x{:x}", seen.stat.czxid),
            "mzxid": format!("0x{:x}", seen.stat.mzxid),
            "pzxid": format!("0x{:x}", seen.stat.pzxid),
            "ctime_ms": seen.stat.ctime,
            "mtime_ms": seen.stat.mtime,
            "cversion": seen.stat.cversion,
            "version": seen.stat.version,
            "aversion": seen.stat.aversion,
            "ephemeral_owner": format!("0x{:x}", seen.stat.ephemeral_owner),
            "data_length": seen.data.map_or(0, <[u8]>::len),
        });
        if let (true, Some(object)) = (has_data, object.as_object_mut()) {
            object.insert("data".to_owned(), json!(seen.data.map(|data| STANDARD.encode(data))));
        }
        Ok(writeln!(out, "{object}")?)
    })?;
    for (id, timeout_ms, ephemerals) in &overview.sessions {
        let object = json!({ "session": format!("0x{id:x}"), "timeout_ms": timeout_ms, "ephemerals": ephemerals });
        writeln!(out, "{object}")?;
    }
    let zxid = overview.zxid.max(zxid_in_name(path));
    let object = json!({ "znodes": overview.znodes, "last_zxid": format!("0x{zxid:x}"), "damage": overview.damage });
    Ok(writeln!(out, "{object}")?)
}

/// Nested lists, as ncdu reads them.
fn for_ncdu(path: &Path, outline: Option<Outline>, out: &mut dyn Write) -> Result<(), Failed> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    write!(
        out,
        r#"[1,0,{{"progname":"SnapshotFormatter.java","progver":"0.01","timestamp":{now}}}"#
    )?;
    let mut nesting = Nesting { out, before: None, number: FIRST_INODE };
    match outline {
        Some(outline) => {
            outline.depth_first(0).try_for_each(|node| nesting.add(&node.path, node.size))?
        }
        None => {
            snapshot_file::each(path, |part| match part {
                Part::Sessions(_) => Ok(()),
                Part::Znode(seen) => {
                    Ok(nesting.add(&seen.path, seen.data.map_or(0, <[u8]>::len) as u64)?)
                }
            })?;
        }
    }
    nesting.end()?;
    Ok(out.write_all(b"]")?)
}

/// Numbers of znodes begin after this one.
const FIRST_INODE: u64 = 1000;

/// Writes the brackets around depth-first znodes: each znode waits until the next shows whether it has children.
struct Nesting<'o> {
    out: &'o mut dyn Write,
    /// Depth and text of the znode before.
    before: Option<(usize, String)>,
    number: u64,
}

impl Nesting<'_> {
    fn add(&mut self, path: &str, size: u64) -> io::Result<()> {
        let depth = path.matches('/').count();
        self.flush(depth)?;
        self.number += 1;
        let name = if path.is_empty() { "/" } else { path.rsplit('/').next().unwrap_or_default() };
        let (name, number) = (quoted(name), self.number);
        let text =
            format!(r#"{{"name":"{name}","asize":{size},"dsize":{size},"dev":0,"ino":{number}}}"#);
        self.before = Some((depth, text));
        Ok(())
    }

    /// Writes the znode before; the next one is at `depth`.
    fn flush(&mut self, depth: usize) -> io::Result<()> {
        let Some((before, text)) = self.before.take() else { return Ok(()) };
        if before < depth {
            return write!(self.out, ",[{text}");
        }
        write!(self.out, ",{text}")?;
        (depth..before).try_for_each(|_| self.out.write_all(b"]"))
    }

    fn end(&mut self) -> io::Result<()> {
        self.flush(0)
    }
}

/// A JSON string without its quotes, as Jackson writes it.
fn quoted(text: &str) -> String {
    let mut to = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => to.extend(['\\', c]),
            '\u{8}' => to.push_str("\\b"),
            '\t' => to.push_str("\\t"),
            '\n' => to.push_str("\\n"),
            '\u{c}' => to.push_str("\\f"),
            '\r' => to.push_str("\\r"),
            c if c < ' ' => to.push_str(&format!("\\u{:04X}", c as u32)),
            c => to.push(c),
        }
    }
    to
}
