//! The paths of a run's znodes: all are below one root that the run creates and removes.
//!
//! Keys are in folders of [`KEYS_PER_FOLDER`], so that the list of a folder is a reply of a usual size. The znodes that a
//! connection creates are in folders of its own, of [`CREATED_PER_FOLDER`] each, so that no reply is larger than clients accept.

use crate::model::{OPEN_ACL, op};
use jute::{put_buffer, put_i32, put_string};
use std::fmt::Write;

pub const KEYS_PER_FOLDER: u64 = 100;
pub const CREATED_PER_FOLDER: u64 = 10_000;

/// Names of all znodes of one run.
#[derive(Clone, Debug)]
pub struct Znodes {
    /// The path above all znodes of the run, without a slash at its end.
    pub root: String,
    pub keys: u64,
}

impl Znodes {
    pub fn key(&self, to: &mut String, key: u64) {
        self.write(to, format_args!("/keys{}/k{key}", key / KEYS_PER_FOLDER));
    }

    /// The folder that holds a key.
    pub fn folder(&self, to: &mut String, key: u64) {
        self.write(to, format_args!("/keys{}", key / KEYS_PER_FOLDER));
    }

    /// The folder of all znodes that one connection creates.
    pub fn own_folder(&self, to: &mut String, connection: u32) {
        self.write(to, format_args!("/made{connection}"));
    }

    /// Whether a child of `root` is the folder of a connection.
    pub fn is_own_folder(root: &str, path: &str) -> bool {
        path.strip_prefix(root).is_some_and(|name| name.starts_with("/made"))
    }

    /// The path of a connection's `number`th create: first a folder, then znodes in it.
    pub fn created(&self, to: &mut String, connection: u32, number: u64) {
        let folder = number / CREATED_PER_FOLDER;
        self.write(to, format_args!("/made{connection}/f{folder}"));
        if !is_folder(number) {
            // Writing to a string can't fail.
            let _infallible = write!(to, "/n{number}");
        }
    }

    fn write(&self, to: &mut String, tail: std::fmt::Arguments<'_>) {
        to.clear();
        to.push_str(&self.root);
        let _infallible = to.write_fmt(tail);
    }
}

/// Whether a connection's `number`th create makes a folder, which deletes leave alone.
pub const fn is_folder(number: u64) -> bool {
    number.is_multiple_of(CREATED_PER_FOLDER)
}

/// Appends the body of a request: create, delete, setData, or one of those that read a path.
pub fn put_body(to: &mut Vec<u8>, kind: i32, path: &str, value: &[u8]) {
    const ANY_VERSION: i32 = -1;
    const PERSISTENT: i32 = 0;
    put_string(to, path);
    match kind {
        op::CREATE => {
            put_buffer(to, value);
            to.extend_from_slice(OPEN_ACL);
            put_i32(to, PERSISTENT);
        }
        op::SET_DATA => {
            put_buffer(to, value);
            put_i32(to, ANY_VERSION);
        }
        op::DELETE => put_i32(to, ANY_VERSION),
        _ => to.push(0), // No watch.
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jute::Reader;
    use jute::proto::{CreateRequest, DeleteRequest, GetChildren2Request, SetDataRequest};

    #[test]
    fn paths_of_keys_and_created_znodes_are_in_their_folders() {
        let znodes = Znodes { root: "/b".into(), keys: 250 };
        let mut path = String::new();
        znodes.key(&mut path, 249);
        assert_eq!(path, "/b/keys2/k249");
        znodes.folder(&mut path, 249);
        assert_eq!(path, "/b/keys2");
        znodes.own_folder(&mut path, 3);
        assert_eq!(path, "/b/made3");
        assert!(Znodes::is_own_folder("/b", &path) && !Znodes::is_own_folder("/b", "/b/keys2"));
        znodes.created(&mut path, 3, CREATED_PER_FOLDER);
        assert_eq!(path, "/b/made3/f1");
        znodes.created(&mut path, 3, CREATED_PER_FOLDER + 1);
        assert_eq!(path, "/b/made3/f1/n10001");
    }

    #[test]
    fn bodies_are_decoded_as_the_protocols_requests() {
        let body = |kind| {
            let mut to = Vec::new();
            put_body(&mut to, kind, "/a", b"xy");
            to
        };
        let create = body(op::CREATE);
        let create: CreateRequest<'_> = Reader::new(&create).read().unwrap();
        assert_eq!(
            (create.path.as_deref(), create.data, create.flags),
            (Some("/a"), Some(&b"xy"[..]), 0)
        );
        let set = body(op::SET_DATA);
        let set: SetDataRequest<'_> = Reader::new(&set).read().unwrap();
        assert_eq!((set.data, set.version), (Some(&b"xy"[..]), -1));
        let delete = body(op::DELETE);
        assert_eq!(Reader::new(&delete).read::<DeleteRequest<'_>>().unwrap().version, -1);
        let list = body(op::GET_CHILDREN2);
        assert!(!Reader::new(&list).read::<GetChildren2Request<'_>>().unwrap().watch);
    }
}
