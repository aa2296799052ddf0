//! Words that every room shares: ids, zxids, paths, codes. No behaviour beyond their own rules.

mod zxid;

pub use zxid::{Epoch, Zxid};
