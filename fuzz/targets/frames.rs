//! A client that sends anything: bytes as they come, or frames with valid lengths and any content, over several connections.
//! Nothing panics, what is logged gives the same tree when it is replayed, and replies are whole frames.
//!
//! The input is a list of moves: a byte that chooses the move, then what the move needs.

use oxkeeper::tree::txn::Entry;
use oxkeeper::tree::{Options, Tree};
use support::moves::Moves;
use support::standalone::{SETTINGS, Standalone};

/// Operations that clients send, from which a byte of the input chooses.
const KINDS: [i32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 100, 101, 102, 103,
    104, 105, 106, 107, -1, -10, -11,
];

fn play(world: &mut Standalone, input: &[u8]) {
    let mut moves = Moves(input);
    let (mut xid, mut others) = (100, Vec::new());
    while !moves.is_empty() {
        match moves.byte() % 8 {
            // A request of a known kind with any body; the commonest move.
            0..=4 => {
                xid += 1;
                let kind = KINDS[usize::from(moves.byte()) % KINDS.len()];
                let len = usize::from(moves.byte());
                let mut frame = Vec::from(i32::to_be_bytes(xid));
                frame.extend(kind.to_be_bytes());
                frame.extend(moves.take(len));
                world.exchange(&[&(frame.len() as i32).to_be_bytes()[..], &frame].concat());
            }
            5 => {
                let len = usize::from(moves.byte());
                world.exchange(moves.take(len));
            }
            6 => world.pass(u64::from(moves.byte())),
            _ => match others.pop() {
                Some(other) if moves.byte() % 2 == 0 => others.insert(0, world.speak(other)),
                other => {
                    others.extend(other);
                    others.push(world.connect(0));
                }
            },
        }
        if world.closed.take().is_some() {
            world.hang_up();
            drop(world.connect(0));
        }
    }
}

pub fn target(input: &[u8]) {
    let mut world = Standalone::new(SETTINGS, true);
    play(&mut world, input);
    world.flush();
    let mut replayed = Tree::new(Options { seed: 1, extended_types: true, ..Options::default() });
    for (zxid, entry) in world.log() {
        let entry =
            Entry::decode(entry).unwrap_or_else(|error| panic!("logged at {zxid}: {error}"));
        replayed.apply(&entry.header, &entry.txn, &mut Vec::new());
    }
    let live = world.server.shared.state.tree.read();
    assert_eq!(replayed.digest(), live.digest(), "the log gives the tree that clients saw");
    assert_eq!(replayed.last_zxid(), live.last_zxid());
}
