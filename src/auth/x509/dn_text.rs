//! Which texts are distinguished names for the JDK. An access list may only name such ids under scheme x509 (U-08); they are
//! compared as text nevertheless.

use super::der;

/// Names of types that the JDK knows.
const KEYWORDS: [&str; 21] = [
    "CN",
    "C",
    "L",
    "S",
    "ST",
    "O",
    "OU",
    "T",
    "IP",
    "STREET",
    "DC",
    "DNQUALIFIER",
    "DNQ",
    "SURNAME",
    "GIVENNAME",
    "INITIALS",
    "GENERATION",
    "EMAIL",
    "EMAILADDRESS",
    "UID",
    "SERIALNUMBER",
];

/// Longest object identifier that Java takes, in bytes.
const OID_LEN_MAX: usize = 4096;

/// The digit zero of each Unicode script that has its own decimal digits: `Integer.parseInt` accepts all of them.
const ZEROS: [u32; 37] = [
    0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6,
    0x0d66, 0x0de6, 0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80,
    0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0,
    0xff10,
];

/// Whether `new X500Principal(id)` of JDK 17 succeeds. The empty text is a name without parts.
pub fn is_valid_name(id: &str) -> bool {
    let text: Vec<char> = id.chars().collect();
    text.is_empty() || parts(&text).is_some()
}

/// Divides a name at its commas and semicolons, those in quotes or after a backslash excepted, and checks each part.
fn parts(text: &[char]) -> Option<()> {
    let (mut from, mut searched, mut quotes) = (0, 0, 0);
    while let Some(end) = find(text, searched, &[',', ';']) {
        quotes += count_quotes(text, searched, end);
        // Java restarts its count of quotes after each split, and treats every count but 1 as "no open quote".
        if quotes != 1 && !is_escaped(text, searched, end) {
            part(&text[from..end])?;
            from = end + 1;
            quotes = 0;
        }
        searched = end + 1;
    }
    part(&text[from..])
}

/// Divides a part at its plus signs, and checks each pair.
fn part(text: &[char]) -> Option<()> {
    let (mut from, mut searched, mut quotes) = (0, 0, 0);
    while let Some(plus) = find(text, searched, &['+']) {
        quotes += count_quotes(text, searched, plus);
        if plus > 0 && text[plus - 1] != '\\' && quotes != 1 {
            pair(&text[from..plus])?;
            from = plus + 1;
            quotes = 0;
        }
        searched = plus + 1;
    }
    pair(&text[from..])
}

fn find(text: &[char], from: usize, wanted: &[char]) -> Option<usize> {
    text[from..].iter().position(|c| wanted.contains(c)).map(|at| from + at)
}

fn count_quotes(text: &[char], from: usize, to: usize) -> usize {
    (from..to).filter(|&at| text[at] == '"' && (at == from || text[at - 1] != '\\')).count()
}

/// Whether the character at `at` is escaped. After two backslashes Java counts all backslashes
/// since `from`, adjacent or not.
fn is_escaped(text: &[char], from: usize, at: usize) -> bool {
    match text[..at] {
        ['\\'] => true,
        [.., '\\', '\\'] => {
            let since = &text[from.min(at)..at];
            since.iter().filter(|&&c| c == '\\').count() % 2 != 0
        }
        [_, .., '\\'] => true,
        _ => false,
    }
}

/// A type, an equals sign and a value.
fn pair(text: &[char]) -> Option<()> {
    let equals = find(text, 0, &['='])?;
    keyword(&text[..equals])?;
    let value = &text[equals + 1..];
    let blanks = value.iter().take_while(|&&c| c == ' ' || c == '\n').count();
    let value = &value[blanks..];
    match value.first() {
        None => Some(()),
        Some('#') => hex_value(&value[1..]),
        Some('"') => quoted_value(&value[1..]),
        Some(_) => plain_value(value),
    }
}

/// A known name in any case, or an object identifier in digits with or without `OID.` before it.
fn keyword(text: &[char]) -> Option<()> {
    let upper = text.iter().collect::<String>().to_uppercase();
    let word = upper.trim_matches(|c: char| c <= ' ');
    if KEYWORDS.contains(&word) {
        return Some(());
    }
    let word = word.strip_prefix("OID.").unwrap_or(word);
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (mut first, mut count, mut len) = (0, 0, 0);
    for text in word.split('.') {
        let number = number(text)?;
        let fits = match count {
            0 => number <= 2,
            1 => first == 2 || number <= 39,
            _ => true,
        };
        if !fits {
            return None;
        }
        first = if count == 0 { number } else { first };
        count += 1;
        // Three decimal digits need about ten bits.
        len += text.len() * 10 / 21 + 1;
    }
    (count >= 2 && len <= OID_LEN_MAX).then_some(())
}

/// A number with or without a sign; `u32::MAX` stands for all larger ones.
fn number(text: &str) -> Option<u32> {
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    let mut number = 0_u32;
    for c in digits.chars() {
        let zero = ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&u32::from(c)))?;
        number = number.saturating_mul(10).saturating_add(u32::from(c) - zero);
    }
    (!digits.is_empty() && (!is_negative || number == 0)).then_some(number)
}

/// Hexadecimal digits: the value as BER.
fn hex_value(text: &[char]) -> Option<()> {
    let digits = text.iter().take_while(|c| !is_terminator(**c));
    let digits: Option<Vec<u8>> =
        digits.map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let bytes: Option<Vec<u8>> = digits?
        .chunks(2)
        .map(|pair| <[u8; 2]>::try_from(pair).ok().map(|[high, low]| high << 4 | low))
        .collect();
    der::is_ber_value(&bytes?).then_some(())
}

fn is_terminator(c: char) -> bool {
    matches!(c, '+' | ',' | ';')
}

/// A value in quotes; the first quote is already taken.
fn quoted_value(text: &[char]) -> Option<()> {
    let mut at = 0;
    while *text.get(at)? != '"' {
        if text[at] == '\\' {
            at += 1;
            let c = *text.get(at)?;
            if c.is_ascii_hexdigit() {
                at += 1;
                if !text.get(at)?.is_ascii_hexdigit() {
                    return None;
                }
            } else if !",=\n+<>#;\\\"".contains(c) {
                return None;
            }
        }
        at += 1;
    }
    text[at + 1..].iter().all(|&c| c == ' ' || c == '\n').then_some(())
}

/// A value without quotes, with at least one character.
fn plain_value(text: &[char]) -> Option<()> {
    let mut at = 0;
    loop {
        match *text.get(at)? {
            '\\' => {
                at += 1;
                let c = *text.get(at)?;
                if c.is_ascii_hexdigit() {
                    at += 1;
                    if !text.get(at)?.is_ascii_hexdigit() {
                        return None;
                    }
                } else if !",=\n+<>#;\\\" ".contains(c) {
                    return None;
                }
            }
            ',' | '+' | '<' | '>' | ';' | '"' => return None,
            _ => {}
        }
        at += 1;
        if text.get(at).is_none_or(|c| is_terminator(*c)) {
            return Some(());
        }
    }
}
