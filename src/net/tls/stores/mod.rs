//! Key stores and trust stores: JKS, PKCS12 and PEM, as the JDK and ZooKeeper's PEM reader understand them.
//!
//! The kind of a store is found by its content; keytool writes PKCS12 whatever the suffix says.
//!
//! # Not here
//! Whether a certificate is trusted (`auth::x509`), and when stores are read again.

mod bytes;
mod choice;
mod entry;
mod error;
mod file;
mod java_order;
mod jks;
mod kind;
mod load;
mod pbe;
mod pem;
mod pkcs12;
mod secrecy;
#[cfg(test)]
mod tests;

pub use entry::Keys;
pub use error::{Fault, StoreError};
pub(super) use file::read_store;
#[cfg(any(test, feature = "sim"))]
pub use jks::seal_jks;
pub use kind::Kind;
pub use load::{Shown, count_entries, load_keys, load_pem_keys, load_trust, show, warnings};
pub use secrecy::holds_certificates_alone;
