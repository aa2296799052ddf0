//! Any bytes as a key store or trust store: JKS, PKCS12 or PEM, which their first bytes decide. They are read, or refused with a reason.
//!
//! After a first byte of 1 the rest is the body of a JKS, and gets the checksum that only its password gives.

use crate::memory::within_memory_of;
use oxkeeper::net::tls::stores::{count_entries, seal_jks};

/// What the golden stores have.
const PASSWORD: &str = "secret1";
/// What scrypt may ask for, and what a store of 4096 bytes becomes.
const MEMORY_MAX: usize = 72 << 20;

pub fn target(input: &[u8]) {
    let sealed = input.strip_prefix(&[1]).map(|body| seal_jks(body, PASSWORD));
    let data = sealed.as_deref().unwrap_or(input);
    for password in [PASSWORD, ""] {
        if let Err(fault) = within_memory_of(MEMORY_MAX, || count_entries(data, password)) {
            let text = fault.to_string();
            assert!(
                !text.is_empty() && !text.contains(PASSWORD),
                "a refusal has a reason, and no password"
            );
        }
    }
}
