//! The four-letter words: which are known, which are enabled, and how each is answered.

use super::effect::Effect;
use super::list::List;
use super::{Status, conf, dump, environment, monitor, serve};
use crate::config::{Config, Whitelist};
use crate::metrics::Registry;

const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

macro_rules! words {
    ($($(#[$doc:meta])* $word:ident = $name:literal,)*) => {
        /// A four-letter word, which a client may send instead of its connect request.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum Word {
            $($(#[$doc])* $word,)*
            /// The bytes that `telnet` sends when its user interrupts it. They are neither a four-letter word nor a frame.
            TelnetClose,
        }

        impl Word {
            /// All four-letter words, in the order of the alphabet; [`Word::TelnetClose`] is not among them.
            pub const ALL: &'static [Word] = &[$(Self::$word,)*];

            /// The name in the white list.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$word => $name,)*
                    Self::TelnetClose => "telnet close",
                }
            }
        }
    };
}

words! {
    /// Configuration.
    Conf = "conf",
    /// Connections in full.
    Cons = "cons",
    /// Resets the connections' counters.
    Crst = "crst",
    /// Sizes of the data directories.
    Dirs = "dirs",
    /// Sessions and their ephemerals.
    Dump = "dump",
    /// Host, user and memory of the process.
    Envi = "envi",
    /// Trace mask.
    Gtmk = "gtmk",
    /// Recorded digests.
    Hash = "hash",
    /// Whether the server is read-only.
    Isro = "isro",
    /// Every metric.
    Mntr = "mntr",
    /// Alive.
    Ruok = "ruok",
    /// Resets the server's counters.
    Srst = "srst",
    /// The server in a few lines.
    Srvr = "srvr",
    /// The server in a few lines, and its connections.
    Stat = "stat",
    /// Sets the trace mask; eight more bytes follow.
    Stmk = "stmk",
    /// Watches by session.
    Wchc = "wchc",
    /// Watches by path.
    Wchp = "wchp",
    /// Number of watches.
    Wchs = "wchs",
}

impl Word {
    /// The four-letter word in the first four bytes of a connection, if they are one.
    ///
    /// As a frame's length each four-letter word is far above the default limit, so no usual frame is taken for one.
    ///
    /// Source: `FourLetterCommands`, ZooKeeper 3.9.5. Known only before the connect request.
    pub fn from_bytes(bytes: [u8; 4]) -> Option<Self> {
        if bytes == [0xff, 0xf4, 0xff, 0xfd] {
            return Some(Self::TelnetClose);
        }
        Self::ALL.iter().copied().find(|word| word.name().as_bytes() == bytes)
    }

    /// Whether the answer has lists in it, whose lengths grow with connections, sessions or watches.
    pub fn lists(self) -> bool {
        matches!(self, Self::Cons | Self::Dump | Self::Stat | Self::Wchc | Self::Wchp)
    }

    /// Whether [`Status::data_dir_bytes`] and [`Status::log_dir_bytes`] are read; both cost a walk.
    pub fn needs_dir_sizes(self) -> bool {
        matches!(self, Self::Conf | Self::Dirs)
    }
}

/// The answer to a four-letter word; the connection is closed after it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    pub text: String,
    /// Lists that follow, each with the text after it.
    pub lists: Vec<(List, String)>,
    /// What the server must do before the answer is sent.
    pub effect: Effect,
}

/// The answer to a four-letter word that is not in the white list; `None` if it is.
///
/// Source: `NIOServerCnxn.checkFourLetterWord`, ZooKeeper 3.9.5.
pub fn refusal(word: Word, whitelist: &Whitelist) -> Option<String> {
    let name = word.name();
    if whitelist.allows(name) {
        return None;
    }
    Some(format!("{name} is not executed because it is not in the whitelist.\n"))
}

/// Answers a four-letter word.
///
/// * `rest`: the bytes that came after it.
///
/// Source: `org.apache.zookeeper.server.command`, ZooKeeper 3.9.5, and a running server.
pub fn answer(
    word: Word,
    rest: &[u8],
    config: &Config,
    metrics: &Registry,
    status: &Status,
) -> Answer {
    let mut lists = Vec::new();
    let (text, effect) = match refusal(word, &config.four_letter_words) {
        Some(refusal) => (refusal, Effect::None),
        None if word.lists() && status.serving => {
            let text;
            (text, lists) = list(word, metrics, status);
            (text, Effect::None)
        }
        None => perform(word, rest, config, metrics, status),
    };
    Answer { text, lists, effect }
}

/// The answer to a four-letter word that [lists](Word::lists).
fn list(word: Word, metrics: &Registry, status: &Status) -> (String, Vec<(List, String)>) {
    // An empty line ends these.
    let alone = |list| (String::new(), vec![(list, "\n".to_owned())]);
    match word {
        Word::Cons => alone(List::Connections { brief: false }),
        Word::Wchc => alone(List::WatchesBySession),
        Word::Wchp => alone(List::WatchesByPath),
        Word::Stat => {
            let rest = format!("\n{}", serve::figures(metrics, status));
            let clients = serve::head(status) + "Clients:\n";
            (clients, vec![(List::Connections { brief: true }, rest)])
        }
        _ => dump::render(status),
    }
}

fn perform(
    word: Word,
    rest: &[u8],
    config: &Config,
    metrics: &Registry,
    status: &Status,
) -> (String, Effect) {
    // The first of these are answered whether clients are served or not.
    let text = match word {
        Word::Ruok => "imok".to_owned(),
        Word::Envi => environment::render(&status.environment),
        Word::TelnetClose => String::new(),
        Word::Gtmk => status.trace_mask.to_string(),
        Word::Stmk => {
            // With fewer bytes Java closes the connection without an answer.
            let Some(mask) = rest.first_chunk() else { return (String::new(), Effect::None) };
            let mask = i64::from_be_bytes(*mask);
            return (mask.to_string(), Effect::SetTraceMask(mask));
        }
        Word::Isro if !status.serving => "null".to_owned(),
        Word::Hash if !status.serving => NOT_SERVING.trim_end().to_owned(),
        _ if !status.serving => NOT_SERVING.to_owned(),
        Word::Crst => return ("Connection stats reset.\n".to_owned(), Effect::ResetConnections),
        Word::Srst => return ("Server stats reset.\n".to_owned(), Effect::ResetServer),
        Word::Conf => conf::render(config, status),
        Word::Dirs => {
            let (data, log) = (status.data_dir_bytes, status.log_dir_bytes);
            format!("datadir_size: {data}\nlogdir_size: {log}\n")
        }
        Word::Hash => dump::digests(status),
        Word::Isro => serve::read_only_or_not(status.mode).to_owned(),
        Word::Mntr => monitor::render(config.metrics.provider, metrics, status),
        Word::Srvr => serve::head(status) + &serve::figures(metrics, status),
        Word::Cons | Word::Dump | Word::Stat | Word::Wchc | Word::Wchp => String::new(), // See `list`.
        Word::Wchs => {
            let totals = status.watches;
            format!(
                "{} connections watching {} paths\nTotal watches:{}\n",
                totals.connections, totals.paths, totals.watches
            )
        }
    };
    (text, Effect::None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::WatchTotals;
    use crate::config::{Environment, Source, parse};

    fn config(whitelist: &str) -> Config {
        let text = format!("dataDir=/d\nclientPort=2181\n4lw.commands.whitelist={whitelist}\n");
        let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
        parse(source, &Environment::new(), &[]).unwrap()
    }

    fn ask(bytes: &[u8], whitelist: &str, status: &Status) -> Answer {
        let (word, rest) = bytes.split_first_chunk().unwrap();
        let word = Word::from_bytes(*word).unwrap();
        answer(word, rest, &config(whitelist), &Registry::default(), status)
    }

    #[test]
    fn all_eighteen_four_letter_words_are_known() {
        assert_eq!(Word::ALL.len(), 18);
        assert!(Word::ALL.iter().map(|word| word.name()).eq(crate::config::WORDS));
        for word in Word::ALL {
            let bytes = word.name().as_bytes().try_into().unwrap();
            assert_eq!(Word::from_bytes(bytes), Some(*word));
        }
        assert_eq!(Word::from_bytes(*b"RUOK"), None);
        assert_eq!(Word::from_bytes([0, 0, 0, 45]), None);
    }

    // rows: W-01 W-02 W-03 W-08
    #[test]
    fn word_outside_the_whitelist_is_refused_with_its_name() {
        let serving = Status { serving: true, ..Status::default() };
        let refused = "mntr is not executed because it is not in the whitelist.\n";
        assert_eq!(ask(b"mntr", "", &serving).text, refused);
        assert_eq!(ask(b"srst", "ruok, stat", &serving).effect, Effect::None);
        assert!(ask(b"srvr", "", &serving).text.starts_with("Zookeeper version: 3.9.5-"));
        assert_eq!(ask(b"ruok", "*", &serving).text, "imok");
        let telnet = b"\xff\xf4\xff\xfd";
        assert_eq!(ask(telnet, "*", &serving).text, "");
        let refused = "telnet close is not executed because it is not in the whitelist.\n";
        assert_eq!(ask(telnet, "ruok", &serving).text, refused);
    }

    // rows: W-04 W-07 W-18 W-26
    #[test]
    fn most_words_are_refused_while_clients_are_not_served() {
        let down = Status::default();
        let up = Status { serving: true, ..Status::default() };
        assert_eq!(ask(b"ruok", "*", &down).text, "imok");
        assert_eq!(ask(b"isro", "*", &down).text, "null");
        assert_eq!(ask(b"isro", "*", &up).text, "rw");
        assert!(ask(b"envi", "*", &down).text.starts_with("Environment:\nzookeeper.version="));
        assert_eq!(ask(b"hash", "*", &down).text, NOT_SERVING.trim_end());
        let most = "conf cons crst dirs dump mntr srst srvr stat wchc wchp wchs";
        for word in most.split(' ').map(str::as_bytes) {
            let text = NOT_SERVING.to_owned();
            let not_serving = Answer { text, lists: Vec::new(), effect: Effect::None };
            assert_eq!(ask(word, "*", &down), not_serving);
        }
    }

    #[test]
    fn short_answers_are_as_in_java() {
        let watches = WatchTotals { connections: 1, paths: 2, watches: 2 };
        let (data_dir_bytes, log_dir_bytes) = (7, 67_109_358);
        let status =
            Status { serving: true, watches, data_dir_bytes, log_dir_bytes, ..Status::default() };
        let said = |word: &[u8]| ask(word, "*", &status);
        assert_eq!(said(b"dirs").text, "datadir_size: 7\nlogdir_size: 67109358\n");
        assert_eq!(said(b"wchs").text, "1 connections watching 2 paths\nTotal watches:2\n");
        let reset =
            |text: &str, effect| Answer { text: text.to_owned(), lists: Vec::new(), effect };
        assert_eq!(said(b"srst"), reset("Server stats reset.\n", Effect::ResetServer));
        assert_eq!(said(b"crst"), reset("Connection stats reset.\n", Effect::ResetConnections));
    }

    // rows: W-11 W-21 W-23 W-24
    #[test]
    fn lists_are_in_javas_places() {
        let status = Status { serving: true, ..Status::default() };
        for (word, list) in [
            (b"cons", List::Connections { brief: false }),
            (b"wchc", List::WatchesBySession),
            (b"wchp", List::WatchesByPath),
        ] {
            let said = ask(word, "*", &status);
            assert_eq!((&*said.text, said.lists), ("", vec![(list, "\n".to_owned())]));
        }
        let said = ask(b"stat", "*", &status);
        assert!(
            said.text.starts_with("Zookeeper version: ") && said.text.ends_with("\nClients:\n")
        );
        let [(List::Connections { brief: true }, after)] = &*said.lists else {
            panic!("{:?}", said.lists)
        };
        assert!(after.starts_with("\nLatency min/avg/max: "), "{after}");
    }

    // rows: W-16 W-17
    #[test]
    fn trace_mask_is_read_and_set() {
        let status = Status { trace_mask: 306, ..Status::default() };
        assert_eq!(ask(b"gtmk", "*", &status).text, "306");
        let set = ask(b"stmk\0\0\0\0\0\0\x01\x02", "*", &status);
        assert_eq!((&*set.text, set.effect), ("258", Effect::SetTraceMask(258)));
        let short = ask(b"stmk\0\0\0", "*", &status);
        assert_eq!((&*short.text, short.effect), ("", Effect::None));
    }
}
