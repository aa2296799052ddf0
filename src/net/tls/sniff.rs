//! Tells TLS from other protocols by the first bytes of a connection.

/// What the first bytes of a connection say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sniffed {
    Tls,
    Plain,
    /// More bytes are needed.
    Open,
}

/// The bytes that decide.
pub const SNIFF_BYTES: usize = 3;

/// Looks at the first bytes that have come.
///
/// TLS begins with a handshake record (22) of version 3.0 to 3.4. As the length of a ZooKeeper packet these bytes would say 350 MB,
/// and no four-letter word begins so.
pub const fn sniff(first: &[u8]) -> Sniffed {
    match first {
        [] | [0x16] | [0x16, 3] => Sniffed::Open,
        [0x16, 3, 0..=4, ..] => Sniffed::Tls,
        _ => Sniffed::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: C-118
    #[test]
    fn first_bytes_tell_tls_from_plain_as_soon_as_they_can() {
        for version in 0..=4 {
            assert_eq!(sniff(&[0x16, 3, version, 1, 0]), Sniffed::Tls);
        }
        for open in [&b""[..], b"\x16", b"\x16\x03"] {
            assert_eq!(sniff(open), Sniffed::Open);
        }
        for plain in
            [&b"\0"[..], b"ruok", b"\x15\x03\x01", b"\x16\x02", b"\x16\x03\x05", b"GET / HTTP/1.1"]
        {
            assert_eq!(sniff(plain), Sniffed::Plain);
        }
    }

    #[test]
    fn more_bytes_never_change_the_answer() {
        for first in 0..=u8::MAX {
            for second in [0, 3, 255] {
                for third in [0, 4, 5, 255] {
                    let all = [first, second, third, 7];
                    let answers: Vec<Sniffed> =
                        (0..=all.len()).map(|len| sniff(&all[..len])).collect();
                    let decided: Vec<&Sniffed> =
                        answers.iter().filter(|&&answer| answer != Sniffed::Open).collect();
                    assert!(decided.windows(2).all(|two| two[0] == two[1]), "{all:?}");
                    assert_ne!(answers[SNIFF_BYTES], Sniffed::Open);
                }
            }
        }
    }
}
