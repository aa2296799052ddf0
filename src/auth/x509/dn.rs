//! Distinguished names as text, as `X500Principal.getName()` prints them: the ids of scheme x509 (U-08).

use super::der::{self, OBJECT_IDENTIFIER, SEQUENCE, SET, Value};
use crate::model::read_utf8;

/// Types with a name in RFC 2253. Others are printed as numbers, and their values as hexadecimal digits.
const NAMED: [(&str, &[u8]); 9] = [
    ("CN", &[0x55, 4, 3]),
    ("C", &[0x55, 4, 6]),
    ("L", &[0x55, 4, 7]),
    ("ST", &[0x55, 4, 8]),
    ("STREET", &[0x55, 4, 9]),
    ("O", &[0x55, 4, 10]),
    ("OU", &[0x55, 4, 11]),
    ("UID", &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1]),
    ("DC", &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25]),
];

/// Longest object identifier that Java takes, in bytes.
const OID_LEN_MAX: usize = 4096;

/// Why a subject can't be printed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DnError {
    #[error("its bytes are not an X.509 certificate")]
    NoCertificate,
    #[error("its subject is not a distinguished name")]
    NoName,
}

/// A distinguished name, given as DER: the last part comes first, parts are divided by commas, and pairs within a part by plus signs.
///
/// # Errors
/// [`DnError::NoName`] if the name is encoded wrongly.
///
/// Source: `X500Principal.getName()`, JDK 17. It reads every kind of string as UTF-8; JDK 25 reads each in its own character set.
pub fn name(der: &[u8]) -> Result<String, DnError> {
    let mut parts = Vec::new();
    let mut rdns = der::only(der, SEQUENCE).ok_or(DnError::NoName)?;
    while !rdns.is_empty() {
        let mut pairs = der::take_tagged(&mut rdns, SET).ok_or(DnError::NoName)?;
        let mut part = String::new();
        while !pairs.is_empty() {
            if !part.is_empty() {
                part.push('+');
            }
            push_pair(&mut part, &mut pairs).ok_or(DnError::NoName)?;
        }
        parts.push(part);
    }
    parts.reverse();
    Ok(parts.join(","))
}

/// A type and its value.
fn pair<'a>(pairs: &mut &'a [u8]) -> Option<(&'a [u8], Value<'a>)> {
    let mut fields = der::take_tagged(pairs, SEQUENCE)?;
    let oid = der::take_tagged(&mut fields, OBJECT_IDENTIFIER)?;
    let value = der::take(&mut fields)?;
    fields.is_empty().then_some((oid, value))
}

fn push_pair(out: &mut String, pairs: &mut &[u8]) -> Option<()> {
    let (oid, value) = pair(pairs)?;
    let numbers = oid_text(oid)?;
    match NAMED.iter().find(|(_, known)| *known == oid) {
        Some((name, _)) if der::is_text(value.tag) => {
            out.push_str(name);
            out.push('=');
            push_text(out, &read_utf8(value.content));
        }
        known => {
            out.push_str(known.map_or(numbers.as_str(), |(name, _)| name));
            out.push_str("=#");
            value.whole.iter().for_each(|byte| out.push_str(&format!("{byte:02x}")));
        }
    }
    Some(())
}

/// Writes a value with a backslash before each special character, and before each space or carriage return at its ends.
fn push_text(out: &mut String, text: &str) {
    let is_space = |c: char| c == ' ' || c == '\r';
    let first = text.find(|c| !is_space(c)).unwrap_or(text.len());
    let last = text.trim_end_matches(is_space).len();
    for (at, c) in text.char_indices() {
        if c == '\0' {
            out.push_str("\\00");
            continue;
        }
        if at < first || at >= last || ",=+<>#;\"\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Whether [`name`] can print this text. Ids are compared as text, so a name in another form is the subject of no certificate.
pub fn is_printed_name(text: &str) -> bool {
    text.is_empty()
        || divided(text, ',').iter().all(|part| divided(part, '+').into_iter().all(is_printed_pair))
}

/// The parts of a text between dividers that have no backslash before them.
fn divided(text: &str, divider: char) -> Vec<&str> {
    let (mut parts, mut from, mut is_escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == divider && !is_escaped {
            parts.push(&text[from..at]);
            from = at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.push(&text[from..]);
    parts
}

fn is_printed_pair(pair: &str) -> bool {
    let Some((kind, value)) = pair.split_once('=') else { return false };
    let is_named = NAMED.iter().any(|(name, _)| *name == kind);
    if let Some(digits) = value.strip_prefix('#') {
        let is_number = kind.contains('.') && kind.bytes().all(|c| c == b'.' || c.is_ascii_digit());
        let is_hex = digits.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        return (is_named || is_number)
            && is_hex
            && !digits.is_empty()
            && digits.len().is_multiple_of(2);
    }
    let mut printed = String::new();
    push_text(&mut printed, &unescaped(value));
    is_named && printed == value
}

/// The text of which [`push_text`] has made this one, if it has.
fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.as_str().starts_with("00") => {
                rest.nth(1);
                text.push('\0');
            }
            '\\' => text.extend(rest.next()),
            c => text.push(c),
        }
    }
    text
}

/// An object identifier as decimal numbers, which may be of any size.
pub(super) fn oid_text(oid: &[u8]) -> Option<String> {
    let is_ended = oid.last().is_some_and(|last| last & 0x80 == 0);
    if !is_ended || oid.len() > OID_LEN_MAX {
        return None;
    }
    let mut out = String::new();
    for arc in oid.split_inclusive(|byte| byte & 0x80 == 0) {
        if arc[0] == 0x80 {
            return None;
        }
        let (mut number, first) = (decimal(arc), out.is_empty());
        if first {
            // The first two numbers share an arc: 40 times the first, plus the second.
            let root = if arc.len() > 1 { 2 } else { u64::from(arc[0] / 40).min(2) };
            subtract(&mut number, root * 40);
            out.push_str(&root.to_string());
        }
        out.push('.');
        push_decimal(&mut out, &number);
    }
    Some(out)
}

/// Nine decimal digits a limb, the lowest first.
const LIMB: u64 = 1_000_000_000;

/// The number that an arc encodes in groups of seven bits.
fn decimal(arc: &[u8]) -> Vec<u64> {
    let mut limbs = vec![0];
    for byte in arc {
        let mut carry = u64::from(byte & 0x7f);
        for limb in &mut limbs {
            let sum = *limb * 128 + carry;
            *limb = sum % LIMB;
            carry = sum / LIMB;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    limbs
}

/// Subtracts a number of at most one limb that is not larger.
fn subtract(limbs: &mut Vec<u64>, mut small: u64) {
    for limb in limbs.iter_mut() {
        let borrow = u64::from(*limb < small);
        *limb = *limb + borrow * LIMB - small;
        small = borrow;
    }
    while limbs.len() > 1 && limbs.last() == Some(&0) {
        limbs.pop();
    }
}

fn push_decimal(out: &mut String, limbs: &[u64]) {
    let mut limbs = limbs.iter().rev();
    limbs.next().into_iter().for_each(|limb| out.push_str(&limb.to_string()));
    limbs.for_each(|limb| out.push_str(&format!("{limb:09}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::x509::{is_valid_name, subject};

    /// The golden file's `%xx` is one byte.
    fn unquoted(text: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, after @ ..] = rest {
            match (first, after) {
                (b'%', [high, low, after @ ..]) => {
                    let digits = [*high, *low];
                    let digits = str::from_utf8(&digits).expect("ASCII");
                    bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                    rest = after;
                }
                _ => {
                    bytes.push(*first);
                    rest = after;
                }
            }
        }
        String::from_utf8(bytes).expect("UTF-8")
    }

    fn from_hex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// Java prints these too: it accepts lengths that are longer than needed, and a name without
    /// its outer SEQUENCE. No certificate with such a name passes a handshake here.
    const JAVA_ALONE: [&str; 3] =
        ["", "30810e310c300a06035504030c03616263", "3010310e300c06035504030c820003616263"];

    #[test]
    fn names_are_printed_and_parsed_as_the_jdk_does() {
        let golden = include_str!("../../../compat-tests/golden/names/expected.txt");
        let (mut printed, mut parsed, mut wrong) = (0, 0, Vec::new());
        for line in golden.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            match fields[..] {
                ["der", hex, text] => {
                    let expected = (text != "!").then(|| unquoted(text));
                    let ours = name(&from_hex(hex)).ok();
                    if ours != expected && !(ours.is_none() && JAVA_ALONE.contains(&hex)) {
                        wrong.push(format!("{line}: {ours:?}"));
                    }
                    if let Some(printed) = ours.filter(|printed| !is_printed_name(printed)) {
                        wrong.push(format!("{line}: {printed} counts as never printed"));
                    }
                    printed += 1;
                }
                ["id", text, fits] => {
                    if is_valid_name(&unquoted(text)) != (fits == "1") {
                        wrong.push(line.to_owned());
                    }
                    parsed += 1;
                }
                _ => panic!("{line}?"),
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
        assert!(printed >= 500 && parsed >= 500, "{printed} and {parsed} are all of them");
    }

    #[test]
    fn name_in_another_form_than_the_printed_one_is_recognised() {
        for printed in ["", "CN=a", "CN=a,O=b+OU=c", r"CN=a\, b", "1.2.840.113549.1.9.1=#1601"] {
            assert!(is_printed_name(printed), "{printed}");
        }
        for other in [
            "boss",
            "cn=a",
            "CN=a, O=b",
            "CN=a,",
            "CN=a;O=b",
            "CN = a",
            r"CN=a\ b",
            "CN=\"a\"",
            "EMAILADDRESS=a@b,CN=a",
            "/CN=a/O=b",
        ] {
            assert!(!is_printed_name(other), "{other}");
        }
    }

    #[test]
    fn a_name_that_is_cut_short_anywhere_is_refused() {
        let whole = from_hex("301a3118301606035504030c0f7a6b312e6578616d706c652e6c616e");
        assert_eq!(name(&whole).as_deref(), Ok("CN=zk1.example.lan"));
        for len in 0..whole.len() {
            assert_eq!(name(&whole[..len]), Err(DnError::NoName), "{len} bytes");
        }
        assert_eq!(subject(&whole), Err(DnError::NoCertificate));
    }
}
