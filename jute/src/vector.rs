//! Vectors that stay bytes: checked once when decoded, read item by item when asked for.

use crate::{Decode, DecodeError, Encode, Reader, put_i32};
use std::marker::PhantomData;

/// A jute `vector<T>`: null, borrowed bytes already checked, or items to be written.
#[derive(Clone, Debug)]
pub enum Vector<'a, T> {
    Null,
    /// `count` items, whose encoding is exactly `bytes`.
    Raw {
        count: usize,
        bytes: &'a [u8],
        of: PhantomData<T>,
    },
    Owned(Vec<T>),
}

impl<'a, T: Decode<'a> + Clone> Vector<'a, T> {
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Number of items; 0 for null.
    pub fn len(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Raw { count, .. } => *count,
            Self::Owned(items) => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items in order; none for null.
    pub fn iter(&self) -> Items<'_, 'a, T> {
        match self {
            Self::Null => Items::Owned([].iter()),
            Self::Raw { count, bytes, .. } => Items::Raw { left: *count, from: Reader::new(bytes) },
            Self::Owned(items) => Items::Owned(items.iter()),
        }
    }
}

impl<'a, T: Decode<'a> + Clone + PartialEq> PartialEq for Vector<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_null() == other.is_null()
            && self.len() == other.len()
            && self.iter().eq(other.iter())
    }
}

/// Iterator over a [`Vector`].
pub enum Items<'v, 'a, T> {
    Raw { left: usize, from: Reader<'a> },
    Owned(std::slice::Iter<'v, T>),
}

impl<'a, T: Decode<'a> + Clone> Iterator for Items<'_, 'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::Owned(items) => items.next().cloned(),
            Self::Raw { left: 0, .. } => None,
            Self::Raw { left, from } => {
                *left -= 1;
                // Checked when the vector was decoded, so a failure here cannot happen; ending is the safe answer.
                from.read().ok()
            }
        }
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for Vector<'a, T> {
    fn decode(from: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = match i32::decode(from)? {
            -1 => return Ok(Self::Null),
            // Java takes any other negative count for an empty vector (P-05).
            count => usize::try_from(count).unwrap_or(0),
        };
        let start = from.at();
        // A huge count fails when the bytes run out, and costs no memory before that. Every item takes at least a byte.
        for _ in 0..count {
            T::decode(from)?;
        }
        Ok(Self::Raw { count, bytes: from.since(start), of: PhantomData })
    }
}

impl<T: Encode> Encode for Vector<'_, T> {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Null => put_i32(to, -1),
            Self::Raw { count, bytes, .. } => {
                put_i32(to, i32::try_from(*count).expect("a decoded count came from an i32"));
                to.extend_from_slice(bytes);
            }
            Self::Owned(items) => {
                put_i32(to, i32::try_from(items.len()).expect("a vector fits an i32 count"));
                for item in items {
                    item.encode(to);
                }
            }
        }
    }
}
