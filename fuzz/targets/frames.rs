//! A client that says anything: bytes as they come, or frames with right lengths and any content, over several
//! connections. Nothing panics, what is logged gives the same tree when it is replayed, and replies are whole frames.
//!
//! The input is a list of moves: a byte that chooses, then what it needs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxkeeper::tree::txn::Entry;
use oxkeeper::tree::{Options, Tree};
use support::standalone::{SETTINGS, Standalone};

/// Operations clients send, so that a byte finds them.
const KINDS: [i32; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 100, 101, 102, 103,
    104, 105, 106, 107, -1, -10, -11,
];

fn take<'a>(input: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (front, rest) = input.split_at(len.min(input.len()));
    *input = rest;
    front
}

fn byte(input: &mut &[u8]) -> u8 {
    take(input, 1).first().copied().unwrap_or_default()
}

fn play(world: &mut Standalone, mut input: &[u8]) {
    let (mut xid, mut others) = (100, Vec::new());
    while !input.is_empty() {
        match byte(&mut input) % 8 {
            // A request of a known kind with any body; the commonest move.
            0..=4 => {
                xid += 1;
                let kind = KINDS[usize::from(byte(&mut input)) % KINDS.len()];
                let len = usize::from(byte(&mut input));
                let mut frame = Vec::from(i32::to_be_bytes(xid));
                frame.extend(kind.to_be_bytes());
                frame.extend(take(&mut input, len));
                world.exchange(&[&(frame.len() as i32).to_be_bytes()[..], &frame].concat());
            }
            5 => {
                let len = usize::from(byte(&mut input));
                world.exchange(take(&mut input, len));
            }
            6 => world.pass(u64::from(byte(&mut input))),
            _ => match others.pop() {
                Some(other) if byte(&mut input) % 2 == 0 => others.insert(0, world.speak(other)),
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

fuzz_target!(|input: &[u8]| {
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
});
