//! The files that change while an ensemble runs, as texts: what a reconfiguration makes of them (D-08 to D-11).
//!
//! A reconfiguration is proposed (`zoo.cfg.dynamic.next` is written), and decided: `zoo.cfg.dynamic.<version>` is
//! written, `zoo.cfg` is made to name it, the proposal goes. Whoever stops in between still has the older one whole.

use super::PropertiesError;
use crate::model::View;
use crate::model::properties;
use std::path::{Path, PathBuf};

/// What follows the static file's name in that of a proposed view.
pub const NEXT: &str = ".dynamic.next";
/// What follows it in that of the copy made before a first rewrite.
pub const BACKUP: &str = ".bak";

/// The file of a decided view, beside the static file.
pub fn path_of(config_file: &Path, version: i64) -> PathBuf {
    beside(config_file, &format!(".dynamic.{version:x}"))
}

/// The static file's path with something behind it.
pub fn beside(config_file: &Path, end: &str) -> PathBuf {
    let mut name = config_file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The version in a dynamic file's name: the hexadecimal number behind its last dot.
///
/// Source: `QuorumPeerConfig.getVersionFromFilename`, ZooKeeper 3.9.5.
pub fn version_in(path: &str) -> Option<i64> {
    let (_, version) = path.rsplit_once('.')?;
    i64::from_str_radix(version, 16).ok()
}

/// The text of a decided view: its lines sorted, without its version, which the name has.
pub fn decided(view: &View) -> String {
    let text = view.to_string();
    sorted(text.lines().filter(|line| !line.starts_with("version=")))
}

/// The text of a proposed view: its lines sorted, the version among them.
///
/// Source: `QuorumPeerConfig.writeDynamicConfig`, ZooKeeper 3.9.5.
pub fn proposed(view: &View) -> String {
    sorted(view.to_string().lines())
}

fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// The static file once the members stand in a dynamic one: without their lines, and naming it.
///
/// What it does not concern stays as it is, comments and all; Java writes the rest anew, in no order.
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

/// Ends the last line, also one that says that it goes on.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse_properties;
    use std::collections::BTreeMap;

    // rows: D-08 D-09
    #[test]
    fn files_are_named_by_their_version() {
        let path = |version| path_of(Path::new("/c/zoo.cfg"), version).display().to_string();
        assert_eq!(path(0x1_0000_0003), "/c/zoo.cfg.dynamic.100000003");
        assert_eq!(path(0), "/c/zoo.cfg.dynamic.0");
        assert_eq!(beside(Path::new("/c/zoo.cfg"), NEXT), Path::new("/c/zoo.cfg.dynamic.next"));
        assert_eq!(beside(Path::new("/c/zoo.cfg"), BACKUP), Path::new("/c/zoo.cfg.bak"));
        for (path, version) in [
            ("zoo.cfg.dynamic.100000003", Some(0x1_0000_0003)),
            ("zoo.cfg.dynamic.0", Some(0)),
            ("zoo.cfg.dynamic.FF", Some(0xff)),
            ("zoo.cfg.dynamic", None),
            ("zoo.cfg.dynamic.next", None),
            ("/etc.d/members", None),
            ("members", None),
            ("members.", None),
        ] {
            assert_eq!(version_in(path), version, "{path}");
        }
    }

    // rows: D-08 D-09
    #[test]
    fn lines_are_sorted_as_text() {
        let text = "server.2=b:1:2\nserver.10=c:1:2:observer;2181\nserver.1=a:1:2\n\
            group.1=1:2\nweight.2=3\nversion=1f";
        let view = View::parse(text).unwrap();
        let members = "group.1=1:2\nserver.10=c:1:2:observer;0.0.0.0:2181\n\
            server.1=a:1:2:participant\nserver.2=b:1:2:participant\n";
        assert_eq!(decided(&view), format!("{members}weight.1=1\nweight.2=3"));
        assert_eq!(proposed(&view), format!("{members}version=1f\nweight.1=1\nweight.2=3"));
        assert_eq!(View::parse(&proposed(&view)), Ok(view));
    }

    #[track_caller]
    fn rewritten(text: &str, has_client: bool, expected: &str) {
        let new = static_naming(text.as_bytes(), "/c/dyn.1", has_client).unwrap();
        let new = String::from_utf8(new).unwrap();
        assert_eq!(new, expected);
        // Once more, and nothing changes.
        let again = static_naming(new.as_bytes(), "/c/dyn.1", has_client).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), expected);
        let entries = |text: &str| parse_properties(text.as_bytes()).unwrap();
        let (old, new) = (entries(text), entries(&new));
        let values = |entries: &BTreeMap<String, crate::config::Entry>, key: &str| {
            entries.get(key).map(|entry| entry.value.clone())
        };
        assert_eq!(values(&new, "dynamicConfigFile").as_deref(), Some("/c/dyn.1"));
        for key in ["tickTime", "dataDir", "clientPortListenBacklog"] {
            assert_eq!(values(&old, key), values(&new, key), "{key}");
        }
    }

    // rows: D-11
    #[test]
    fn the_static_file_keeps_what_is_not_about_members() {
        let text = "# ours\ntickTime=2000\n\nserver.1=a:1:2;2181\nserver.2 = \\\n  b:1:2\npeerType=observer\n\
            group.1=1:2\nweight.1=2\nclientPort=2181\nclientPortAddress=h\nclientPortListenBacklog=7\n\
            dynamicConfigFile=/old\n# end\ndataDir=/d";
        let head = "# ours\ntickTime=2000\n\n";
        let tail = "clientPortListenBacklog=7\n# end\ndataDir=/d\ndynamicConfigFile=/c/dyn.1\n";
        rewritten(text, true, &format!("{head}{tail}"));
        let client = "clientPort=2181\nclientPortAddress=h\n";
        rewritten(text, false, &format!("{head}{client}{tail}"));
        rewritten("", false, "dynamicConfigFile=/c/dyn.1\n");
        rewritten("tickTime=1\\", false, "tickTime=1\\\n\ndynamicConfigFile=/c/dyn.1\n");
        rewritten(
            "server.1=a:1:2\r\ntickTime=1\r\n",
            false,
            "tickTime=1\r\ndynamicConfigFile=/c/dyn.1\n",
        );
    }

    #[test]
    fn odd_paths_are_read_back() {
        let path = "/c ü\u{1f600}\\x/dyn.1";
        let text = static_naming(b"a=1\n", path, false).unwrap();
        assert_eq!(parse_properties(&text).unwrap()["dynamicConfigFile"].value, path);
    }

    proptest::proptest! {
        /// Whatever stands in the file, continuations of nothing included: nothing else changes for who reads it.
        #[test]
        fn what_is_kept_means_what_it_meant(text in "(server\\.1|weight|a|\\\\|=|:| |#|\\r|\\n){0,30}") {
            let old = parse_properties(text.as_bytes()).unwrap();
            let new = static_naming(text.as_bytes(), "/c/dyn.1", false).unwrap();
            let new = parse_properties(&new).unwrap();
            // A backslash at the very end is an entry without a key there, and none in front of a line.
            let is_one = |entry: &(&String, &String)| !entry.0.is_empty();
            let goes = |key: &str| ["server.", "weight"].iter().any(|start| key.trim().starts_with(start));
            let kept = old.iter().filter(|(key, _)| !goes(key));
            let mut expected: Vec<_> = kept.map(|(key, entry)| (key, &entry.value)).filter(is_one).collect();
            let (key, path) = ("dynamicConfigFile".to_owned(), "/c/dyn.1".to_owned());
            expected.push((&key, &path));
            expected.sort();
            let found: Vec<_> = new.iter().map(|(key, entry)| (key, &entry.value)).filter(is_one).collect();
            proptest::prop_assert_eq!(found, expected, "{:?}", text);
        }
    }
}
