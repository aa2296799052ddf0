//! Reading primitives: a cursor over borrowed bytes.

use crate::read_utf8;
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
