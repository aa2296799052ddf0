//! The texts of the configuration files that a reconfiguration writes (D-08 to D-11).
//!
//! When a reconfiguration is proposed, `zoo.cfg.dynamic.next` is written. When it is committed, `zoo.cfg.dynamic.<version>` is
//! written, `zoo.cfg` is made to name it, and `zoo.cfg.dynamic.next` is removed. A server that stops in between still has the
//! older configuration whole.

use super::PropertiesError;
use crate::model::properties;
use crate::model::{View, ViewError};
use std::path::{Path, PathBuf};

/// The file of proposed views has the static file's name and this.
pub const NEXT: &str = ".dynamic.next";
/// The copy of the static file before its first rewrite has the file's name and this.
pub const BACKUP: &str = ".bak";

/// The path of the file of a committed view, beside the static file.
pub fn path_of(config_file: &Path, version: i64) -> PathBuf {
    beside(config_file, &format!(".dynamic.{version:x}"))
}

/// The static file's path with `end` appended.
pub fn beside(config_file: &Path, end: &str) -> PathBuf {
    let mut name = config_file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The version in a dynamic file's name: the hexadecimal number after its last dot.
///
/// Source: `QuorumPeerConfig.getVersionFromFilename`, ZooKeeper 3.9.5.
pub fn version_in(path: &str) -> Option<i64> {
    let (_, version) = path.rsplit_once('.')?;
    i64::from_str_radix(version, 16).ok()
}

/// The version of the dynamic file that a static file names; `None`: it names none.
pub fn version_named(text: &[u8]) -> Option<i64> {
    version_in(properties::parse(text).ok()?.get("dynamicConfigFile")?.value.trim())
}

/// The text of a committed view: its lines sorted, without its version, which is in the file's name.
pub fn decided(view: &View) -> String {
    let text = view.to_string();
    sorted(text.lines().filter(|line| !line.starts_with("version=")))
}

/// Line before an earlier view in the text of proposed views; the lines of that view follow as comments.
const EARLIER: &str = "#earlier";
/// The same before the view of the static file, which comes before the earlier ones.
const BESIDE: &str = "#beside";
const COMMENT: &str = "# ";

/// The text of proposed views: the lines of the newest view sorted, its version among them, as in Java's file. Java keeps the
/// newest view alone; the others are in comments, which Java ignores.
///
/// * `views`: oldest first. `beside`: the view in force, if its operator has written it.
///
/// Source: `QuorumPeerConfig.writeDynamicConfig`, ZooKeeper 3.9.5.
pub fn proposed(views: &[View], beside: Option<&View>) -> String {
    let Some((newest, earlier)) = views.split_last() else { return String::new() };
    let mut text = sorted(newest.to_string().lines());
    let beside = beside.map(|view| (BESIDE, view)).into_iter();
    for (title, view) in beside.chain(earlier.iter().map(|view| (EARLIER, view))) {
        text.extend(["\n", title]);
        view.to_string().lines().for_each(|line| text.extend(["\n", COMMENT, line]));
    }
    text
}

/// Whether a text of proposed views was written while `view` was in force, as its operator had written it.
pub fn is_beside(text: &str, view: &View) -> bool {
    let mut lines = text.lines().skip_while(|line| *line != BESIDE);
    let is_written = lines.next().is_some();
    let of_view = lines.map_while(|line| line.strip_prefix(COMMENT));
    is_written && of_view.eq(view.to_string().lines())
}

/// The earlier views in the text of proposed ones.
///
/// # Errors
/// When one of them can't be read.
pub fn earlier_proposed(text: &str) -> Result<Vec<View>, ViewError> {
    let mut texts: Vec<String> = Vec::new();
    for line in text.lines() {
        if line == EARLIER {
            texts.push(String::new());
        } else if let (Some(line), Some(text)) = (line.strip_prefix(COMMENT), texts.last_mut()) {
            text.extend([line, "\n"]);
        }
    }
    texts.iter().map(|text| View::parse(text)).collect()
}

fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// The static file after the members have moved to a dynamic file: without their lines, and with that file's name.
///
/// All other lines stay as they are, comments included; Java writes them anew, in no order.
///
/// * `dynamic_file`: absolute path of the dynamic file.
/// * `has_client`: whether this server's own line has a client address, so that the keys for it go.
///
/// # Errors
/// A text that is no properties file.
///
/// Source: `QuorumPeerConfig.editStaticConfig`, ZooKeeper 3.9.5.
pub fn static_naming(
    text: &[u8],
    dynamic_file: &str,
    has_client: bool,
) -> Result<Vec<u8>, PropertiesError> {
    let goes = |key: &str| {
        ["server.", "group", "weight", "dynamicConfigFile", "peerType"]
            .iter()
            .any(|start| key.starts_with(start))
            || (has_client && ["clientPort", "clientPortAddress"].contains(&key))
    };
    let mut kept = Vec::with_capacity(text.len());
    let mut at = 0;
    for (key, span) in properties::spans(text)? {
        if goes(key.trim()) {
            kept.extend_from_slice(&text[at..span.start]);
            at = span.end;
        }
    }
    kept.extend_from_slice(&text[at..]);
    end_last_line(&mut kept);
    kept.extend_from_slice(b"dynamicConfigFile=");
    for unit in dynamic_file.encode_utf16() {
        match u8::try_from(unit) {
            Ok(b'\\') => kept.extend_from_slice(b"\\\\"),
            Ok(byte) if byte.is_ascii_graphic() || byte == b' ' => kept.push(byte),
            _ => kept.extend_from_slice(format!("\\u{unit:04x}").as_bytes()),
        }
    }
    kept.push(b'\n');
    Ok(kept)
}

/// Ends the last line, even if a backslash says that it goes on.
fn end_last_line(text: &mut Vec<u8>) {
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let backslashes = line.iter().rev().take_while(|&&byte| byte == b'\\').count();
    if backslashes % 2 == 1 {
        text.push(b'\n');
    }
}
