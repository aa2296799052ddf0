//! DER, one value at a time. A length is never trusted beyond the bytes that are there.

/// A value: its tag, what it contains, and its whole encoding.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    pub tag: u8,
    pub content: &'a [u8],
    pub whole: &'a [u8],
}

pub const BOOLEAN: u8 = 0x01;
pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const ENUMERATED: u8 = 0x0a;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;

/// Whether values with this tag are printed as text: UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString.
pub fn is_text(tag: u8) -> bool {
    matches!(tag, 0x0c | 0x13 | 0x14 | 0x16 | 0x1b | 0x1e)
}

/// Takes the first value from `bytes`; `None` if it is cut short, or not encoded as DER. Tags above 30 do not occur in
/// certificates, and Java knows none.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Option<Value<'a>> {
    let all = *bytes;
    let (&[tag, first], mut rest) = all.split_first_chunk::<2>()?;
    if tag & 0x1f == 0x1f {
        return None;
    }
    let len = if first < 0x80 {
        usize::from(first)
    } else {
        let count = usize::from(first & 0x7f);
        let (digits, after) = rest.split_at_checked(count).filter(|_| (1..=4).contains(&count))?;
        rest = after;
        let len = digits.iter().fold(0, |len, &digit| len << 8 | usize::from(digit));
        (digits[0] != 0 && len >= 0x80).then_some(len)?
    };
    let (content, after) = rest.split_at_checked(len)?;
    *bytes = after;
    Some(Value { tag, content, whole: &all[..all.len() - after.len()] })
}

/// Takes the first value from `bytes` if it has this tag, and returns its content.
pub fn take_tagged<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    take(bytes).filter(|value| value.tag == tag).map(|value| value.content)
}

/// Takes the first value from `bytes` if it has this tag, and leaves it there if it has another. `None` if it is cut short.
pub fn take_optional<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<Option<&'a [u8]>> {
    match bytes.first() {
        Some(first) if *first == tag => take(bytes).map(|value| Some(value.content)),
        _ => Some(None),
    }
}

/// The content, if `bytes` are exactly one value with this tag.
pub fn only(mut bytes: &[u8], tag: u8) -> Option<&[u8]> {
    take_tagged(&mut bytes, tag).filter(|_| bytes.is_empty())
}

/// A value with this content.
pub fn encode(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match content.len() {
        len @ 0..0x80 => out.push(len as u8),
        len => {
            let digits = len.to_be_bytes();
            let digits = &digits[len.leading_zeros() as usize / 8..];
            out.push(0x80 | digits.len() as u8);
            out.extend(digits);
        }
    }
    out.extend(content);
    out
}

/// Whether `bytes` are one value in BER, as far as the JDK looks into one: lengths may be longer
/// than needed, and a constructed value may have no length and end with an end-of-contents mark.
pub fn is_ber_value(bytes: &[u8]) -> bool {
    let is_constructed = bytes.first().is_some_and(|tag| tag & 0x20 != 0);
    let known_tag = bytes.first().is_some_and(|tag| tag & 0x1f != 0x1f);
    let (mut at, mut open) = (0_usize, 0_usize);
    loop {
        let Some([tag, first]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            return false;
        };
        let is_end_mark = [*tag, *first] == [0, 0];
        at += 2;
        match first {
            _ if is_end_mark && open > 0 => open -= 1,
            0x80 if open > 0 || is_constructed => open += 1,
            _ => {
                let count = usize::from(if *first < 0x80 { 0 } else { first & 0x7f });
                let Some(digits) =
                    bytes.get(at..at + count).filter(|_| count <= 4 && *first != 0x80)
                else {
                    return false;
                };
                let len = digits.iter().fold(0, |len, &digit| len << 8 | usize::from(digit));
                let len = if count == 0 { usize::from(*first) } else { len };
                if len > bytes.len() {
                    return false;
                }
                at += count + len;
            }
        }
        if open == 0 {
            return known_tag && at == bytes.len();
        }
    }
}
