//! Why a store is of no use, in one line without a password.

use crate::config::tls::{StorePassword, StoreSettings};
use std::io;
use std::path::PathBuf;

/// A store that can't be used: file, alias, kind and reason, for one line.
#[derive(Debug)]
pub struct StoreError {
    /// `key store` or `trust store`.
    pub(super) role: &'static str,
    pub(super) path: PathBuf,
    /// The kind of store that the content shows.
    pub(super) kind: Option<&'static str>,
    pub(super) alias: Option<String>,
    pub(super) fault: Fault,
}

impl StoreError {
    /// The setting to look at, without its prefix.
    pub fn setting(&self, store: &StoreSettings) -> String {
        let role = if self.role == "key store" { "keyStore" } else { "trustStore" };
        let what = match (&self.fault, &store.password) {
            (Fault::PasswordFile { .. } | Fault::PasswordText, _) => "passwordPath",
            (Fault::WrongPassword | Fault::KeyPassword(_), StorePassword::File(_)) => {
                "passwordPath"
            }
            (Fault::WrongPassword | Fault::KeyPassword(_) | Fault::NoPassword, _) => "password",
            _ => "location",
        };
        format!("{role}.{what}")
    }
}

impl StoreError {
    /// The error, and what to do about it.
    ///
    /// * `prefix`: what the keys of the store's settings begin with.
    pub fn line(&self, prefix: &str, store: &StoreSettings) -> String {
        let key = format!("{prefix}{}", self.setting(store));
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let act = match &self.fault {
            Fault::PasswordFile { reason, .. } if is_missing(reason) => {
                format!("; write the password into that file, or correct {key}")
            }
            Fault::Read(error) if !is_missing(error) => String::new(),
            Fault::Read(_) | Fault::NotAFile | Fault::TooLarge | Fault::WrongPassword => {
                format!("; correct {key}")
            }
            Fault::NoPassword => format!("; set {key}, or {key}Path"),
            Fault::Unknown => format!("; name such a store by {key}"),
            Fault::Damaged(_) | Fault::Empty => "; restore it, or make it anew".to_owned(),
            Fault::NoKey => "; put the key and its certificate into one store".to_owned(),
            _ => String::new(),
        };
        format!("{self}{act}")
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.role, self.path.display())?;
        if let Some(kind) = self.kind {
            write!(f, " ({kind})")?;
        }
        if let Some(alias) = &self.alias {
            write!(f, ", alias {}", alias.escape_debug())?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for StoreError {}

/// A fault of an entry, with the entry.
pub(super) struct EntryFault {
    pub alias: Option<String>,
    pub fault: Fault,
}

impl From<Fault> for EntryFault {
    fn from(fault: Fault) -> Self {
        Self { alias: None, fault }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("can't read it: {}{}", .0, advice(.0))]
    Read(io::Error),
    #[error("it is not a file")]
    NotAFile,
    #[error("it has more than 16 MiB, which no store has")]
    TooLarge,
    #[error("can't read its password from {}: {reason}{}", path.display(), advice(reason))]
    PasswordFile { path: PathBuf, reason: io::Error },
    #[error("its password is not UTF-8; write it in UTF-8, or give the store another one")]
    PasswordText,
    #[error("it needs a password, and none is set")]
    NoPassword,
    #[error("the password is wrong, or the file was changed")]
    WrongPassword,
    #[error("its key has another password than the store, which Java refuses too; {0}")]
    KeyPassword(&'static str),
    #[error("damaged, or not what it says: {0}")]
    Damaged(&'static str),
    #[error("the file is empty")]
    Empty,
    #[error("it is not a JKS, PKCS12 or PEM store")]
    Unknown,
    /// Kinds and keys that this server does not read, with the command that converts them.
    #[error("{what}; convert it: {command}")]
    Convert { what: &'static str, command: &'static str },
    /// Keys that no conversion makes usable.
    #[error("{what}; make a new key: {command}")]
    NewKey { what: &'static str, command: &'static str },
    #[error(
        "a key of it is derived with more than a million rounds, or all its keys with more than ten million; make it anew with fewer"
    )]
    TooManyRounds,
    #[error("no private key in it; a certificate alone can't serve")]
    NoKey,
    #[error("no certificate belongs to its key; put the certificate and its chain into the store")]
    NoCertificate,
    #[error("{0}")]
    NotTrusted(&'static str),
    #[error("key and certificate do not belong together; {0}")]
    Mismatch(&'static str),
    #[error("its key can't be used: {0}")]
    UnusableKey(&'static str),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; give this user the right to read it, as by chown",
        _ => "",
    }
}
