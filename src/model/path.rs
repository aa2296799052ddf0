//! Paths of znodes and the rules for them (P-69..P-71).

/// Why a string is no path.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PathError {
    #[error("path must start with /")]
    NotAbsolute,
    #[error("path has an empty name")]
    EmptyName,
    #[error("path has a relative name")]
    Relative,
    #[error("path has a character ZooKeeper refuses: U+{0:04X}")]
    Character(u32),
}

/// Checks a path as Java's `PathUtils.validatePath` does.
///
/// Only create, setData, setACL and check ask for it, each at its own step (P-69): reads, watches, delete and
/// sync accept any string and answer "no node" (P-69a). Hence a check and not a type that every path must pass.
///
/// # Errors
/// [`PathError`] with the first rule broken.
pub fn validate(path: &str) -> Result<(), PathError> {
    let names = path.strip_prefix('/').ok_or(PathError::NotAbsolute)?;
    if names.is_empty() || is_plain(names.as_bytes()) {
        return Ok(()); // The root, or plain names, as in nearly all paths.
    }
    for name in names.split('/') {
        match name {
            "" => return Err(PathError::EmptyName),
            "." | ".." => return Err(PathError::Relative),
            _ => name.chars().try_for_each(check_char)?,
        }
    }
    Ok(())
}

/// Whether all bytes are allowed everywhere, and no name is empty or begins with a dot.
///
/// * `names`: a path without its first slash.
fn is_plain(names: &[u8]) -> bool {
    let mut before = b'/';
    let are_plain = names.iter().all(|&byte| {
        let begins_name = std::mem::replace(&mut before, byte) == b'/';
        (b' '..0x7F).contains(&byte) && !(begins_name && matches!(byte, b'/' | b'.'))
    });
    are_plain && before != b'/'
}

/// Length as Java counts it, in units of UTF-16.
///
/// * `path`: UTF-8, as text or as bytes.
pub fn utf16_len(path: impl AsRef<[u8]>) -> usize {
    let path = path.as_ref();
    if path.is_ascii() {
        return path.len();
    }
    // A character is one unit, and those of four bytes are two.
    let starts = path.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
    starts + path.iter().filter(|&&byte| 0xF0 <= byte).count()
}

fn check_char(c: char) -> Result<(), PathError> {
    match c as u32 {
        // From U+10000 up Java sees two surrogates, and refuses those.
        bad @ (0..=0x1F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..) => {
            Err(PathError::Character(bad))
        }
        _ => Ok(()),
    }
}

/// The parent's path as the tree knows it: `/a/b` -> `/a`, `/a` -> `` (the root). `None` without a slash.
pub fn parent(path: &str) -> Option<&str> {
    // Last names are short: a search for a character costs more than the bytes one by one.
    path.bytes().rposition(|byte| byte == b'/').map(|at| &path[..at])
}

/// Paths whose znodes can't be deleted (P-40).
pub fn is_special(path: &str) -> bool {
    matches!(path, "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config")
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: P-71
    #[test]
    fn paths_are_validated_as_java_does() {
        for good in ["/", "/a", "/a/b", "/a b", "/é", "/...", "/a.", "/\u{FFEF}"] {
            assert_eq!(validate(good), Ok(()), "{good:?}");
        }
        let bad = [
            ("", PathError::NotAbsolute),
            ("a", PathError::NotAbsolute),
            ("/a/", PathError::EmptyName),
            ("//a", PathError::EmptyName),
            ("/a/./b", PathError::Relative),
            ("/..", PathError::Relative),
            ("/a\0", PathError::Character(0)),
            ("/\u{1f}", PathError::Character(0x1F)),
            ("/\u{7f}", PathError::Character(0x7F)),
            ("/\u{80}", PathError::Character(0x80)),
            ("/\u{9f}", PathError::Character(0x9F)),
            ("/\u{E000}", PathError::Character(0xE000)),
            ("/\u{FFFD}", PathError::Character(0xFFFD)),
            ("/\u{1F600}", PathError::Character(0x1F600)),
        ];
        for (path, error) in bad {
            assert_eq!(validate(path), Err(error), "{path:?}");
        }
    }

    #[test]
    fn parent_is_the_path_before_the_last_slash() {
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("/a"), Some(""));
        assert_eq!(parent("a"), None);
    }
    #[test]
    fn lengths_are_counted_in_utf16_units() {
        for text in ["", "/a", "/é", "/€uro", "/\u{1F600}x"] {
            assert_eq!(utf16_len(text), text.encode_utf16().count(), "{text:?}");
        }
    }
}
