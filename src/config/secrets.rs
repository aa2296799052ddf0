//! Masks settings for log lines and reports: what may be a password is not shown.

/// `key=value`, without the value where it may be a secret: these lines go to logs.
pub(super) fn shown(key: &str, value: &str) -> String {
    format!("{key}={}", masked(key, value))
}

/// Masks a word of the scripts' variables in the same way. `before`: the word before it, which it may belong to.
pub(super) fn shown_word(word: &str, before: &str) -> String {
    let is_secret = |(key, value): (&str, &str)| masked(key, value) != value;
    if before.split_once('=').is_some_and(is_secret) {
        return "(not shown)".to_owned();
    }
    word.split_once('=').map_or_else(|| word.to_owned(), |(key, value)| shown(key, value))
}

/// The value, unless it may be a secret.
pub(super) fn masked<'a>(key: &str, value: &'a str) -> &'a str {
    if is_secret(key) { "(not shown)" } else { value }
}

/// Whether the value of a setting may be a secret.
pub(super) fn is_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    ["superdigest", "secret"].iter().any(|part| key.contains(part))
        || (key.contains("pass") && !key.ends_with("passwordpath"))
}
