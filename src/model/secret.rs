//! Passwords.

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// A password, or bytes that prove one. They are overwritten when they are dropped, and there is no way to print, copy or
/// compare them but those below.
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the one place that needs them. They must not be logged or kept.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }

    /// Compares in a time that depends on the lengths alone.
    pub fn matches(&self, shown: &[u8]) -> bool {
        self.0.ct_eq(shown).into()
    }
}

/// Says that there is a secret, and nothing about it: settings that hold one are printed by tests and in errors.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Settings that hold secrets are compared by tests.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.reveal())
    }
}
