//! The keys and values of a configuration's text: how they are split, and why one is refused.

use crate::model::ServerId;
use crate::model::properties::PropertiesError;

/// Why a text is not a view.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ViewError {
    #[error("not UTF-8")]
    Encoding,
    #[error("line {line}: malformed \\uxxxx encoding")]
    Unicode { line: u32 },
    #[error("{key} is not a key of a configuration")]
    Key { key: String },
    #[error("{key} needs a number after its dot")]
    Name { key: String },
    #[error("{key} repeats number {id}")]
    Again { key: String, id: i64 },
    #[error("{key}={value} {why}")]
    Value { key: String, value: String, why: &'static str },
    #[error("{key} names server {id}, which is in a group already")]
    Regrouped { key: String, id: ServerId },
    #[error("{key} names server {id}, which does not vote and has no weight")]
    Weightless { key: String, id: ServerId },
    #[error("server.{id} votes and is in no group")]
    Ungrouped { id: ServerId },
    #[error("no server votes")]
    NoVoters,
}

impl ViewError {
    /// The key that is wrong, if the error is about a key.
    pub fn key(&self) -> Option<String> {
        match self {
            Self::Key { key }
            | Self::Name { key }
            | Self::Again { key, .. }
            | Self::Value { key, .. }
            | Self::Regrouped { key, .. }
            | Self::Weightless { key, .. } => Some(key.clone()),
            Self::Ungrouped { id } => Some(format!("server.{id}")),
            Self::Encoding | Self::Unicode { .. } | Self::NoVoters => None,
        }
    }

    pub(super) fn value(key: &str, value: &str, why: &'static str) -> Self {
        Self::Value { key: key.to_owned(), value: value.to_owned(), why }
    }
}

impl From<PropertiesError> for ViewError {
    fn from(error: PropertiesError) -> Self {
        let PropertiesError::Unicode { line } = error;
        Self::Unicode { line }
    }
}

/// The number after the first dot of a key.
pub(super) fn number_in(key: &str) -> Result<i64, ViewError> {
    let number = key.split_once('.').and_then(|(_, number)| number.parse().ok());
    number.ok_or_else(|| ViewError::Name { key: key.to_owned() })
}

/// Splits as Java's `String.split` does: empty parts at the end are dropped.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    if !text.contains(separator) {
        return vec![text];
    }
    text.trim_end_matches(separator)
        .split(separator)
        .filter(|_| text.chars().any(|c| c != separator))
        .collect()
}
