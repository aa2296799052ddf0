//! Reading primitives: a cursor over borrowed bytes.

use std::borrow::Cow;

/// Why bytes are not the record that was asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    #[error("record needs {needed} bytes at offset {at}, {left} are left")]
    Short { at: usize, needed: usize, left: usize },
    #[error("unreasonable length {len} at offset {at}")]
    Length { at: usize, len: i32 },
}

/// A record that can be read from bytes and may borrow from them.
pub trait Decode<'a>: Sized {
    /// Reads one value and leaves the reader after it.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes end early or a length is negative (other than -1, which is null).
    fn decode(from: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// A position in borrowed bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next unread byte.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// All bytes from `start` to the current position.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// Reads one record.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    #[inline]
    pub fn read<T: Decode<'a>>(&mut self) -> Result<T, DecodeError> {
        T::decode(self)
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when fewer are left.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.rest();
        let Some(taken) = rest.get(..len) else {
            return Err(DecodeError::Short { at: self.at, needed: len, left: rest.len() });
        };
        self.at += len;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let rest = self.rest();
        let Some(head) = rest.first_chunk::<N>() else {
            return Err(DecodeError::Short { at: self.at, needed: N, left: rest.len() });
        };
        self.at += N;
        Ok(*head)
    }
}

impl Decode<'_> for bool {
    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(from.array::<1>()?[0] != 0)
    }
}

impl Decode<'_> for i32 {
    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(i32::from_be_bytes(from.array()?))
    }
}

impl Decode<'_> for i64 {
    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(i64::from_be_bytes(from.array()?))
    }
}

impl<'a> Decode<'a> for Option<&'a [u8]> {
    #[inline]
    fn decode(from: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let at = from.at;
        match i32::decode(from)? {
            -1 => Ok(None),
            len if len < 0 => Err(DecodeError::Length { at, len }),
            len => Ok(Some(from.take(len as usize)?)),
        }
    }
}

impl<'a> Decode<'a> for Option<Cow<'a, str>> {
    #[inline]
    fn decode(from: &mut Reader<'a>) -> Result<Self, DecodeError> {
        // Java decodes malformed UTF-8 to replacement characters and goes on (P-08).
        Ok(Option::<&[u8]>::decode(from)?.map(read_utf8))
    }
}

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
