//! Any bytes as the first of a connection at a port that accepts TLS beside plain connections: it is decided by at most three of
//! them, more bytes never change it, and what is taken for TLS can be no frame of a client and no packet of a server.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxkeeper::net::tls::{SNIFF_BYTES, Sniffed, sniff};

fuzz_target!(|input: &[u8]| {
    let decided = (0..=input.len().min(SNIFF_BYTES)).map(|len| sniff(&input[..len]));
    let decided: Vec<Sniffed> = decided.filter(|&sniffed| sniffed != Sniffed::Open).collect();
    assert!(decided.windows(2).all(|two| two[0] == two[1]));
    assert_eq!(decided.is_empty(), sniff(input) == Sniffed::Open);
    if let Some(&first) = decided.first() {
        assert_eq!(sniff(input), first);
    }
    if let (Sniffed::Tls, Some(&head)) = (sniff(input), input.first_chunk()) {
        assert!(i32::from_be_bytes(head) > 0x0fff_ffff, "a length that a setting may allow");
    }
});
