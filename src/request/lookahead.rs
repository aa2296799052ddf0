//! Looks up together the znodes that the next requests of a connection are likely to read.

use super::Batch;
use crate::model::op;
use crate::tree::{AHEAD_MAX, NO_NODE, NodeId, Tree};

/// Ids for the requests at the front of the input, one for each.
pub(super) struct Ahead {
    ids: [NodeId; AHEAD_MAX],
    count: usize,
    next: usize,
}

impl Ahead {
    pub const fn new() -> Self {
        Self { ids: [NO_NODE; AHEAD_MAX], count: 0, next: 0 }
    }

    /// The likely znode of the request at the front of `input`; [`NO_NODE`]: unknown. To be called once for each request in
    /// turn, under one hold of the tree's lock.
    pub fn next(&mut self, tree: &Tree, input: &[u8]) -> NodeId {
        if self.next == self.count {
            let (paths, count) = paths(input);
            // A single look-up gains nothing.
            self.ids =
                if count > 1 { tree.look_ahead(&paths, count) } else { [NO_NODE; AHEAD_MAX] };
            (self.count, self.next) = (count.max(1), 0);
        }
        self.next += 1;
        self.ids[self.next - 1]
    }
}

impl Batch {
    /// Prefetches what preparing and applying the requests from number `first` on will read: [`AHEAD_MAX`] of them.
    pub fn look_ahead(&self, tree: &Tree, first: usize) {
        let Some(requests) = self.requests.get(first..).filter(|requests| requests.len() > 1)
        else {
            return; // A single look-up gains nothing.
        };
        let mut start = first.checked_sub(1).map_or(0, |before| self.requests[before].end);
        let mut paths: [&[u8]; AHEAD_MAX] = [&[]; AHEAD_MAX];
        for (path, asked) in paths.iter_mut().zip(requests) {
            // Most writes begin with the path; what the others begin with is no path, and is not found.
            *path = split(&self.bytes[start..asked.end]).map_or(&[], |(path, _)| path);
            start = asked.end;
        }
        tree.look_ahead(&paths, requests.len().min(AHEAD_MAX));
    }
}

/// Paths of the whole requests at the front of `input`, empty for requests that look no path up.
fn paths(mut input: &[u8]) -> ([&[u8]; AHEAD_MAX], usize) {
    let mut paths: [&[u8]; AHEAD_MAX] = [&[]; AHEAD_MAX];
    for (at, path) in paths.iter_mut().enumerate() {
        let Some((frame, rest)) = split(input) else { return (paths, at) };
        input = rest;
        // The header is xid and operation.
        let Some((kind, body)) = frame.get(4..).and_then(split_i32) else { continue };
        if matches!(kind, op::EXISTS | op::GET_DATA | op::GET_CHILDREN | op::GET_CHILDREN2) {
            *path = split(body).map_or(&[], |(path, _)| path);
        }
    }
    (paths, AHEAD_MAX)
}

/// The bytes after their length, and the rest.
fn split(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = split_i32(input)?;
    rest.split_at_checked(usize::try_from(len).ok()?)
}

fn split_i32(input: &[u8]) -> Option<(i32, &[u8])> {
    let (head, rest) = input.split_first_chunk::<4>()?;
    Some((i32::from_be_bytes(*head), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Options;

    fn frame(kind: i32, body: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        jute::put_frame(&mut frame, |to| {
            jute::put_i32(to, 1);
            jute::put_i32(to, kind);
            to.extend_from_slice(body);
        });
        frame
    }

    fn get(path: &str) -> Vec<u8> {
        let mut body = Vec::new();
        jute::put_string(&mut body, path);
        body.push(0);
        frame(op::GET_DATA, &body)
    }

    #[test]
    fn look_ahead_gives_each_request_its_own_znode() {
        let tree = Tree::new(Options::default());
        let there = ["/zookeeper", "/", "/missing", "/zookeeper/quota"];
        // More than are looked up at once, with requests in between that look nothing up.
        let mut frames = Vec::new();
        for round in 0..9 {
            frames.push((Some(there[round % 4]), get(there[round % 4])));
            frames.push((None, frame(op::PING, &[])));
            frames.push((None, frame(op::WHO_AM_I, b"\0\0\0\x0a/zookeeper")));
        }
        let mut ahead = Ahead::new();
        for at in 0..frames.len() {
            let rest: Vec<u8> = frames[at..].iter().flat_map(|(_, frame)| frame.clone()).collect();
            let likely = ahead.next(&tree, &rest);
            if let Some(path) = frames[at].0 {
                assert_eq!(likely == NO_NODE, path == "/missing", "{at}");
                assert_eq!(tree.find_likely(path, likely), tree.find(path), "{at}");
            }
        }
    }

    #[test]
    fn look_ahead_accepts_any_bytes() {
        let tree = Tree::new(Options::default());
        let negative = frame(op::GET_DATA, &[0xff; 8]);
        let too_long = frame(op::GET_DATA, b"\0\0\x01\0/a");
        let short = vec![0, 0, 0, 2, 1, 2];
        for bytes in [negative, too_long, short, vec![0xff; 12], vec![]] {
            let twice = [bytes.clone(), bytes].concat();
            Ahead::new().next(&tree, &twice);
        }
    }
}
