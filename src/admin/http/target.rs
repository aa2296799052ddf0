//! Paths and queries of requests, as Jetty reads them.

use std::collections::BTreeMap;

/// Where a request goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Target {
    /// `commandURL`, with or without a slash.
    Links,
    /// The rest of a path that begins with `commandURL/`.
    Command(String),
    Other(String),
}

/// The target that a path names; `None`: the path is malformed.
///
/// Parameters of segments (`;x=1`) are cut, `%xx` decoded, `.` and `..` resolved.
///
/// * `command_url`: `admin.commandURL`.
pub(super) fn of(path: &str, command_url: &str) -> Option<Target> {
    let path = plain_path(path)?;
    let Some(rest) = path.strip_prefix(command_url.trim_end_matches('/')) else {
        return Some(Target::Other(path));
    };
    Some(match rest.strip_prefix('/') {
        None if !rest.is_empty() => Target::Other(path),
        None | Some("") => Target::Links,
        Some(name) => Target::Command(name.to_owned()),
    })
}

/// The path with its parameters cut, decoded and resolved; `None`: it is malformed.
pub(super) fn plain_path(path: &str) -> Option<String> {
    let mut kept: Vec<String> = Vec::new();
    let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        let bare = segment.split(';').next().unwrap_or(segment);
        match decoded(bare, false)?.as_str() {
            "." if is_last => kept.push(String::new()),
            "." => {}
            ".." => {
                kept.pop()?;
                if is_last {
                    kept.push(String::new());
                }
            }
            name if name.contains('\0') => return None,
            name => kept.push(name.to_owned()),
        }
    }
    Some(format!("/{}", kept.join("/")))
}

/// The parameters of a query; of a repeated one the first value counts. `None`: the query is malformed.
pub(super) fn parameters(query: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (decoded(key, true)?, decoded(value, true)?);
        found.entry(key).or_insert(value);
    }
    Some(found)
}

/// Every value of one parameter, in their order.
pub(super) fn values(query: &str, name: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decoded(key, true)? == name {
            found.push(decoded(value, true)?);
        }
    }
    Some(found)
}

/// `%xx` as bytes of UTF-8, or of ISO 8859-1 where they are none.
fn decoded(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                (digit(rest.next()?)? * 16 + digit(rest.next()?)?) as u8
            }
            b'+' if plus_is_space => b' ',
            byte => byte,
        });
    }
    let latin = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect();
    Some(String::from_utf8(bytes).unwrap_or_else(|error| latin(error.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(name: &str) -> Option<Target> {
        Some(Target::Command(name.to_owned()))
    }

    // rows: A-01
    #[test]
    fn paths_are_read_as_jetty_reads_them() {
        let at = |path| of(path, "/commands");
        for links in ["/commands", "/commands/", "/commands;x=1", "/x/../commands/", "/commands/."]
        {
            assert_eq!(at(links), Some(Target::Links), "{links}");
        }
        for (path, name) in [
            ("/commands/ruok", "ruok"),
            ("/commands/ruok/", "ruok/"),
            ("/commands/a/b", "a/b"),
            ("/commands//ruok", "/ruok"),
            ("/commands/r%75ok;x=1", "ruok"),
            ("/commands;x=1/ruok", "ruok"),
            ("/commands/./x/../ruok", "ruok"),
            ("/commands/%C3%A9%FF%20", "\u{c3}\u{a9}\u{ff} "),
            ("/commands/%C3%A9", "é"),
        ] {
            assert_eq!(at(path), command(name), "{path}");
        }
        for elsewhere in ["/", "/commandsx", "//commands/ruok", "/x"] {
            assert_eq!(at(elsewhere), Some(Target::Other(elsewhere.to_owned())));
        }
        for malformed in
            ["", "commands", "/%zz", "/%4", "/..", "/commands/../../x", "/commands/%00"]
        {
            assert_eq!(at(malformed), None, "{malformed}");
        }
        assert_eq!(of("/a/b/ruok", "/a/b/"), command("ruok"));
    }

    // rows: A-09
    #[test]
    fn first_value_of_a_parameter_counts() {
        let found = parameters("traceMask=5&x&traceMask=7&a%20b=+%2B&&").unwrap();
        let of = |key: &str| found.get(key).map(String::as_str);
        assert_eq!((of("traceMask"), of("x"), of("a b")), (Some("5"), Some(""), Some(" +")));
        assert_eq!(found.len(), 3);
        assert_eq!(parameters("a=%"), None);
        let names = values("name[]=a&x=1&name%5B%5D=b", "name[]").unwrap();
        assert_eq!(names, ["a", "b"]);
    }
}
