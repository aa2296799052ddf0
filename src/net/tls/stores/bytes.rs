//! Reading from bytes that may end too early.

use super::error::Fault;

/// What is left to read. No length is believed before its bytes are there.
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) =
            self.0.split_at_checked(len).ok_or(Fault::Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u16(&mut self) -> Result<u16, Fault> {
        let (bytes, rest) =
            self.0.split_first_chunk().ok_or(Fault::Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    pub fn u32(&mut self) -> Result<u32, Fault> {
        let (bytes, rest) =
            self.0.split_first_chunk().ok_or(Fault::Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    /// Bytes after their length in two bytes.
    pub fn short_block(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.u16()?;
        self.take(len.into())
    }

    /// Bytes after their length in four bytes.
    pub fn block(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.u32()?;
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }
}
