//! The comma-separated `key=value` pairs of both halves' tokens.

use crate::auth::sasl::Refusal;

/// The values of the keys that were asked for, in their order; keys that are not known are left out.
///
/// RFC 2831 allows only `realm` to occur twice. No ZooKeeper server sends two realms, so this is refused too.
///
/// # Errors
/// [`Refusal`] for text that has no such form, and for a known key that comes twice.
///
/// Source: `DigestMD5Base.parseDirectives`, JDK 17.
pub(super) fn parse<const N: usize>(
    token: &[u8],
    keys: [&'static str; N],
) -> Result<[Option<Vec<u8>>; N], Refusal> {
    let mut values = [const { None }; N];
    let mut rest = skip_space(token);
    while !rest.is_empty() {
        if let [b',', after @ ..] = rest {
            rest = skip_space(after);
            continue;
        }
        let pair = pair(rest)?;
        rest = pair.rest;
        let Some(at) = keys.iter().position(|key| pair.key.eq_ignore_ascii_case(key.as_bytes()))
        else {
            continue;
        };
        if values[at].replace(pair.value).is_some() {
            return Err(Refusal::new(format!("the token has more than one {}", keys[at])));
        }
    }
    Ok(values)
}

struct Pair<'t> {
    key: &'t [u8],
    value: Vec<u8>,
    rest: &'t [u8],
}

/// The pair at the front of `token`, which begins with neither space nor comma.
fn pair(token: &[u8]) -> Result<Pair<'_>, Refusal> {
    let ends_key = |&byte: &u8| is_space(byte) || matches!(byte, b',' | b'=');
    let Some(key_len) = token.iter().position(ends_key) else {
        // The JDK takes a last key without a value for one with an empty value.
        return Ok(Pair { key: token, value: Vec::new(), rest: &[] });
    };
    let (key, rest) = token.split_at(key_len);
    let [b'=', rest @ ..] = skip_space(rest) else {
        return Err(Refusal::new("a key of the token has no = after it"));
    };
    if key.is_empty() {
        return Err(Refusal::new("the token has a value without a key"));
    }
    let rest = skip_space(rest);
    let (value, rest) = match rest {
        [] => return Err(Refusal::new("the token ends before a value")),
        [b'"', quoted @ ..] => quoted_value(quoted)?,
        _ => {
            let ends_value = |&byte: &u8| is_space(byte) || byte == b',';
            let len = rest.iter().position(ends_value).unwrap_or(rest.len());
            (rest[..len].to_vec(), &rest[len..])
        }
    };
    // One space or comma ends the value.
    let rest = skip_space(rest.get(1..).unwrap_or_default());
    Ok(Pair { key, value, rest })
}

/// A value up to its closing quote, which a space or a comma has to follow unless the token ends.
fn quoted_value(quoted: &[u8]) -> Result<(Vec<u8>, &[u8]), Refusal> {
    let mut value = Vec::new();
    let mut rest = quoted;
    loop {
        rest = match rest {
            [b'\\', escaped, rest @ ..] => {
                value.push(*escaped);
                rest
            }
            [b'"', rest @ ..] => {
                if rest.first().is_some_and(|&next| !is_space(next) && next != b',') {
                    return Err(Refusal::new(
                        "a quoted value of the token goes on after its quote",
                    ));
                }
                return Ok((value, rest));
            }
            [] | [b'\\'] => return Err(Refusal::new("a quoted value of the token has no end")),
            [byte, rest @ ..] => {
                value.push(*byte);
                rest
            }
        };
    }
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn skip_space(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().take_while(|&&byte| is_space(byte)).count();
    &bytes[len..]
}

/// Appends `"value"`, with the escapes of RFC 2831.
pub(super) fn put_quoted(value: &[u8], to: &mut Vec<u8>) {
    to.push(b'"');
    for &byte in value {
        let is_control = byte == 127 || (byte < 32 && !matches!(byte, b'\t' | b'\r' | b'\n'));
        if is_control || matches!(byte, b'"' | b'\\') {
            to.push(b'\\');
        }
        to.push(byte);
    }
    to.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(token: &str) -> Option<[Option<String>; 3]> {
        let text = |value: Vec<u8>| String::from_utf8(value).unwrap();
        parse(token.as_bytes(), ["a", "b", "c"]).ok().map(|values| values.map(|v| v.map(text)))
    }

    // rows: U-18
    #[test]
    fn pairs_are_read_as_the_jdk_reads_them() {
        let of = |a: &str, b: &str, c: &str| {
            Some([a, b, c].map(|text| (text != "-").then(|| text.to_owned())))
        };
        for (token, found) in [
            ("", of("-", "-", "-")),
            (" , ,", of("-", "-", "-")),
            ("a=1,b=2,c=3", of("1", "2", "3")),
            ("A = 1 , B =\t2\r\n c=3", of("1", "2", "3")),
            ("a=1 b=2", of("1", "2", "-")),
            ("a=\"x, \\\"y\\\\ = \",z=1", of("x, \"y\\ = ", "-", "-")),
            ("a=\"\",b=,c=\"3\"", of("", "", "3")),
            ("a=1\"2,b=3=4", of("1\"2", "3=4", "-")),
            ("z=1,z=2,a=3", of("3", "-", "-")),
            ("a=1,b", of("1", "", "-")),
        ] {
            assert_eq!(values(token), found, "{token}");
        }
        for token in
            ["a,b=1", "a b=1", "a ", "=1", "a=", "a= ", "a=\"1", "a=\"1\\", "a=\"1\"b=2", "a=1,a=1"]
        {
            assert_eq!(values(token), None, "{token}");
        }
    }

    #[test]
    fn quoted_value_is_read_as_it_was_written() {
        let value: Vec<u8> = (0..=255).collect();
        let mut token = b"a=".to_vec();
        put_quoted(&value, &mut token);
        assert_eq!(parse(&token, ["a"]).unwrap(), [Some(value)]);
    }
}
