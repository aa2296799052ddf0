//! Trees as a leader sends them after SNAP.

use oxkeeper::model::Zxid;
use oxkeeper::tree::load::Loader;
use oxkeeper::tree::{Options, Tree};

/// The stream of a tree with the root and this many znodes with 100 bytes of data each.
pub fn tree_stream(znodes: usize) -> Vec<u8> {
    stream_with(&[], znodes)
}

/// * `sessions`: ids and timeouts.
fn stream_with(sessions: &[(i64, i32)], znodes: usize) -> Vec<u8> {
    let mut stream = (sessions.len() as u32).to_be_bytes().to_vec();
    for (id, timeout_ms) in sessions {
        stream.extend_from_slice(&id.to_be_bytes());
        stream.extend_from_slice(&timeout_ms.to_be_bytes());
    }
    stream.extend_from_slice(&[0; 4]); // No ACLs.
    let mut znode = |path: &str, data: &[u8]| {
        for part in [path.as_bytes(), data] {
            stream.extend_from_slice(&(part.len() as u32).to_be_bytes());
            stream.extend_from_slice(part);
        }
        stream.extend_from_slice(&(-1i64).to_be_bytes());
        stream.extend_from_slice(&[0; 60]);
    };
    znode("", b"");
    (0..znodes).for_each(|number| znode(&format!("/{number}"), &[7; 100]));
    stream.extend_from_slice(b"\0\0\0\x01/");
    stream
}

/// The tree in the stream of [`tree_stream`].
pub fn tree_at(zxid: Zxid, znodes: usize) -> Box<Tree> {
    load(zxid, &tree_stream(znodes))
}

/// A tree with the root and one session.
pub fn tree_with_session(zxid: Zxid, session: i64, timeout_ms: i32) -> Box<Tree> {
    load(zxid, &stream_with(&[(session, timeout_ms)], 0))
}

/// The tree of a snapshot that has the znodes of `tree`, and is named by this zxid.
pub fn reloaded(tree: &mut Tree, zxid: Zxid) -> Tree {
    let (frozen, mut stream) = (tree.freeze().expect("nothing is frozen"), Vec::new());
    while !tree.freeze_piece(frozen, &mut stream) {}
    loaded(zxid, &stream, tree.options())
}

fn load(zxid: Zxid, stream: &[u8]) -> Box<Tree> {
    Box::new(loaded(zxid, stream, Options::default()))
}

fn loaded(zxid: Zxid, stream: &[u8], options: Options) -> Tree {
    let mut loader = Loader::new(options);
    let taken = loader.take(stream).expect("a tree");
    assert!(taken.ended, "a whole tree");
    loader.finish(zxid).expect("a tree")
}
