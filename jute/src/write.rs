//! Writing primitives: everything appends to a `Vec<u8>`.

use std::borrow::Cow;

/// A record that can be appended to bytes.
pub trait Encode {
    /// Appends the record's bytes.
    fn encode(&self, to: &mut Vec<u8>);
}

#[inline]
pub fn put_i32(to: &mut Vec<u8>, value: i32) {
    to.extend_from_slice(&value.to_be_bytes());
}

#[inline]
pub fn put_i64(to: &mut Vec<u8>, value: i64) {
    to.extend_from_slice(&value.to_be_bytes());
}

/// Appends a non-null buffer: length, then bytes.
#[inline]
pub fn put_buffer(to: &mut Vec<u8>, value: &[u8]) {
    // Frames are bounded far below 2 GiB; a longer buffer could not be expressed at all.
    put_i32(to, i32::try_from(value.len()).expect("a jute buffer fits an i32 length"));
    to.extend_from_slice(value);
}

/// Appends a non-null string, as Java does it: characters above U+FFFF go out as two surrogates of three bytes.
///
/// Source: `BinaryOutputArchive.stringToByteBuffer`.
#[inline]
pub fn put_string(to: &mut Vec<u8>, value: &str) {
    // Only four-byte sequences start at 0xF0 or above.
    if value.bytes().all(|b| b < 0xF0) {
        put_buffer(to, value.as_bytes())
    } else {
        put_surrogates(to, value)
    }
}

#[cold]
fn put_surrogates(to: &mut Vec<u8>, value: &str) {
    let start = to.len();
    put_i32(to, 0);
    for unit in value.encode_utf16() {
        match unit {
            0..0x80 => to.push(unit as u8),
            0x80..0x800 => {
                to.extend_from_slice(&[0xC0 | (unit >> 6) as u8, 0x80 | (unit & 0x3F) as u8])
            }
            _ => to.extend_from_slice(&[
                0xE0 | (unit >> 12) as u8,
                0x80 | (unit >> 6 & 0x3F) as u8,
                0x80 | (unit & 0x3F) as u8,
            ]),
        }
    }
    patch_length(to, start);
}

/// Writes into the four bytes at `start` how many bytes come after them.
#[inline]
pub fn patch_length(to: &mut [u8], start: usize) {
    let len = i32::try_from(to.len() - start - 4).expect("a jute frame fits an i32 length");
    to[start..start + 4].copy_from_slice(&len.to_be_bytes());
}

/// Appends a frame: length, then what `body` appends.
#[inline]
pub fn put_frame(to: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = to.len();
    put_i32(to, 0);
    body(to);
    patch_length(to, start);
}

impl Encode for bool {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }
}

impl Encode for i32 {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        put_i32(to, *self);
    }
}

impl Encode for i64 {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        put_i64(to, *self);
    }
}

impl Encode for Option<&[u8]> {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Some(bytes) => put_buffer(to, bytes),
            None => put_i32(to, -1),
        }
    }
}

impl Encode for Option<Cow<'_, str>> {
    #[inline]
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Some(text) => put_string(to, text),
            None => put_i32(to, -1),
        }
    }
}
