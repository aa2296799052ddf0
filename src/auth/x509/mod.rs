//! X.509 certificates: how their subjects are printed, which hosts they name, and which of them are trusted.
//!
//! Pure: the clock and the check of a signature are arguments, and CRLs and answers of OCSP
//! responders are fetched by `net`.

mod certificate;
mod der;
mod dn;
mod dn_text;
mod host_check;
mod host_names;
pub mod path;
#[cfg(test)]
mod path_tests;
mod refusal;
pub mod revocation;
#[cfg(test)]
pub(crate) mod test_certificates;

pub use certificate::{Certificate, subject, time_text};
pub use dn::{DnError, is_printed_name, name};
pub use dn_text::is_valid_name;
pub use host_check::{Found, HostCheck, Lookup, Peer};
pub use host_names::HostNames;
pub use refusal::{Purpose, Refusal};
