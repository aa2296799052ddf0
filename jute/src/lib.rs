//! Jute: the record format of ZooKeeper's wire and files.
//!
//! This crate knows how records are laid out and nothing of what they mean. Decoding borrows from the input:
//! strings, buffers and vectors point into it. Encoding appends to a `Vec<u8>` without temporaries.
//!
//! # Invariants
//! 1. A length field is believed only when as many bytes are there: no allocation is sized by it.
//! 2. Decoding never panics, whatever the bytes.
//! 3. `null` (length -1) and empty stay distinct for strings, buffers and vectors.
//!
//! Source: `zookeeper.jute`, `BinaryInputArchive`, `BinaryOutputArchive`, ZooKeeper 3.9.5.

mod read;
mod utf8;
mod vector;
mod write;

pub mod data;
pub mod persistence;
pub mod proto;
pub mod quorum;
pub mod txn;

pub use read::{Decode, DecodeError, Reader};
pub use utf8::{put_utf8, read_utf8};
pub use vector::{Items, Vector};
pub use write::{Encode, patch_length, put_buffer, put_frame, put_i32, put_i64, put_string};

/// A jute `ustring`: `None` is null. Borrowed unless the bytes were not valid UTF-8.
pub type Ustring<'a> = Option<std::borrow::Cow<'a, str>>;
/// A jute `buffer`: `None` is null.
pub type Buffer<'a> = Option<&'a [u8]>;

/// Declares a record: a struct whose fields are encoded one after the other in the order given.
///
/// Records that borrow take the lifetime `'a`; plain ones take none and are `Copy`.
#[macro_export]
macro_rules! record {
    ($(#[$meta:meta])* pub struct $name:ident<'a> { $($(#[$fm:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name<'a> { $($(#[$fm])* pub $field: $ty,)* }
        impl<'a> $crate::Decode<'a> for $name<'a> {
            #[inline]
            fn decode(from: &mut $crate::Reader<'a>) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $($field: $crate::Decode::decode(from)?,)* })
            }
        }
        impl $crate::Encode for $name<'_> {
            #[inline]
            fn encode(&self, to: &mut Vec<u8>) { $($crate::Encode::encode(&self.$field, to);)* }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$fm:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        pub struct $name { $($(#[$fm])* pub $field: $ty,)* }
        impl<'a> $crate::Decode<'a> for $name {
            #[inline]
            fn decode(from: &mut $crate::Reader<'a>) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $($field: $crate::Decode::decode(from)?,)* })
            }
        }
        impl $crate::Encode for $name {
            #[inline]
            fn encode(&self, to: &mut Vec<u8>) { $($crate::Encode::encode(&self.$field, to);)* }
        }
    };
}
