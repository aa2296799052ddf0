//! The four-letter words that are enabled.

use std::collections::BTreeSet;

/// Every four-letter word of ZooKeeper 3.9.5.
pub const WORDS: [&str; 18] = [
    "conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "mntr", "ruok", "srst",
    "srvr", "stat", "stmk", "wchc", "wchp", "wchs",
];

/// The words of `4lw.commands.whitelist`, with those Java always adds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Whitelist {
    all: bool,
    words: BTreeSet<String>,
}

impl Whitelist {
    /// Reads the value of `4lw.commands.whitelist`.
    ///
    /// * `value`: comma list, each part trimmed; `*` enables every word, even after others.
    ///   `None` when the setting is absent.
    /// * `read_only_mode`: adds `isro`, which clients that accept a read-only server send on their own.
    ///
    /// `srvr` is always enabled: `zkServer.sh status` sends it.
    ///
    /// Source: `FourLetterCommands.isEnabled`, ZooKeeper 3.9.5.
    pub fn new(value: Option<&str>, read_only_mode: bool) -> Self {
        let mut list = Self { all: false, words: BTreeSet::from(["srvr".to_owned()]) };
        if read_only_mode {
            list.words.insert("isro".to_owned());
        }
        for word in value.unwrap_or_default().split(',').map(super::system_properties::trim) {
            match word {
                "*" => list.all = true,
                "" => {}
                _ => _ = list.words.insert(word.to_owned()),
            }
        }
        list
    }

    /// Names in the list that are no four-letter words.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str).filter(|word| !WORDS.contains(word))
    }

    /// Whether `word` is enabled; case matters.
    pub fn allows(&self, word: &str) -> bool {
        self.all || self.words.contains(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: W-01 W-02
    #[test]
    fn srvr_alone_is_enabled_by_default() {
        let plain = Whitelist::new(None, false);
        assert!(plain.allows("srvr") && !plain.allows("ruok") && !plain.allows("isro"));
        assert!(Whitelist::new(None, true).allows("isro"));
        let some = Whitelist::new(Some(" stat ,, ruok"), false);
        assert!(some.allows("stat") && some.allows("ruok") && some.allows("srvr"));
        assert!(!some.allows("mntr") && !some.allows("STAT"));
        assert!(Whitelist::new(Some("ruok, *"), false).allows("mntr"));
        assert!(!Whitelist::new(Some("ruok*"), false).allows("mntr"));
    }
}
