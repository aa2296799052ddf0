//! Text as Java decodes it: malformed UTF-8 becomes U+FFFD.

use std::borrow::Cow;

/// Bytes that are decoded before they are appended.
const BLOCK: usize = 256;
const REPLACEMENT: [u8; 3] = [0xEF, 0xBF, 0xBD];

/// In [`ALONE`]: the byte continues a character.
const CONTINUES: u32 = 1 << 30;
/// In [`ALONE`]: the byte begins a character of several bytes.
const BEGINS: u32 = CONTINUES << 1;

/// For each byte: in the lower three bytes, from the lowest on, its text where it is no part of a longer character; above them how long that text
/// is, and what else the byte may be.
const ALONE: [u32; 256] = {
    let replacement = u32::from_le_bytes([REPLACEMENT[0], REPLACEMENT[1], REPLACEMENT[2], 3]);
    let mut alone = [replacement; 256];
    let mut byte = 0;
    while byte < alone.len() {
        match byte {
            0..0x80 => alone[byte] = 1 << 24 | byte as u32,
            0x80..0xC0 => alone[byte] |= CONTINUES,
            0xC2..0xF5 => alone[byte] |= BEGINS,
            _ => {}
        }
        byte += 1;
    }
    alone
};

/// Decodes as Java's `new String(bytes, UTF_8)`: borrowed when well formed, else with U+FFFD where it is not.
///
/// The standard library's lossy decoding replaces each byte of an encoded surrogate; Java sees the three bytes, or
/// the first two alone, as one mistake. The difference shows: Java itself writes such bytes (see `put_string`).
pub fn read_utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let (mut text, mut rest) = (String::with_capacity(bytes.len() + 8), bytes);
    while let Some(chunk) = rest.utf8_chunks().next() {
        text.push_str(chunk.valid());
        rest = &rest[chunk.valid().len()..];
        let malformed = match rest {
            [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => 3,
            [0xED, 0xA0..=0xBF, ..] => 2,
            _ => chunk.invalid().len(),
        };
        if 0 < malformed {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        rest = &rest[malformed..];
    }
    Cow::Owned(text)
}

/// Appends the text of [`read_utf8`]. Made for data that is no text: there a branch for each byte would be predicted wrongly half of the
/// time, so a byte alone is looked up in a table.
pub fn put_utf8(to: &mut Vec<u8>, bytes: &[u8]) {
    if std::str::from_utf8(bytes).is_ok() {
        return to.extend_from_slice(bytes);
    }
    let mut text = [0; 3 * BLOCK + 4];
    let mut rest = bytes;
    while !rest.is_empty() {
        let (read, len) = put_block(&mut text, rest);
        to.extend_from_slice(&text[..len]);
        rest = &rest[read..];
    }
}

/// Decodes the next bytes, [`BLOCK`] or up to three more. Returns how many, and the length of their text.
fn put_block(text: &mut [u8; 3 * BLOCK + 4], rest: &[u8]) -> (usize, usize) {
    let (mut read, mut len) = (0, 0);
    while read < rest.len().min(BLOCK) {
        let alone = ALONE[usize::from(rest[read])];
        let next = rest.get(read + 1).map_or(0, |&next| ALONE[usize::from(next)]);
        // One branch for both bytes: both together are rare in such data.
        if (alone >> 1) & next & CONTINUES != 0 {
            let (from, to) = longer(&rest[read..rest.len().min(read + 4)]);
            text[len..len + to.len()].copy_from_slice(to);
            (read, len) = (read + from, len + to.len());
            continue;
        }
        let Some(place) = text[len..].first_chunk_mut() else { break };
        *place = alone.to_le_bytes();
        len += (alone >> 24 & 3) as usize;
        read += 1;
    }
    (read, len)
}

/// What to append for the first bytes of `head`, and how many bytes these are.
///
/// * `head`: begins with a byte that begins a character and one that continues one; up to four bytes.
fn longer(head: &[u8]) -> (usize, &[u8]) {
    let (len, is_character) = match head {
        [0xC2..0xE0, _, ..] => (2, true),
        // Half a surrogate pair.
        [0xED, 0xA0..=0xBF, 0x80..=0xBF, ..] => (3, false),
        [0xED, 0xA0..=0xBF, ..] => (2, false),
        // Longer than it has to be, or no character of Unicode.
        [0xE0, 0x80..0xA0, ..] | [0xF0, 0x80..0x90, ..] | [0xF4, 0x90..=0xBF, ..] => (1, false),
        [0xE0..0xF0, _, 0x80..=0xBF, ..] => (3, true),
        [0xF0..=0xF4, _, 0x80..=0xBF, 0x80..=0xBF, ..] => (4, true),
        [0xF0..=0xF4, _, 0x80..=0xBF, ..] => (3, false),
        _ => (2, false),
    };
    (len, if is_character { &head[..len] } else { &REPLACEMENT })
}
