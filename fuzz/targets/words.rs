//! Any bytes as the first that a client sends: a four-letter word is answered, a connect request opens a session, and anything else
//! only closes the connection.

use oxkeeper::admin::{Status, Word, answer};
use oxkeeper::config::{Config, Environment, Source, parse};
use oxkeeper::metrics::Registry;
use oxkeeper::request::Need;
use std::sync::OnceLock;

const ZOO_CFG: &[u8] = b"dataDir=/d\nclientPort=2181\n4lw.commands.whitelist=*\n";

fn config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let source = Source { name: "zoo.cfg", text: ZOO_CFG, my_id: None };
        parse(source, &Environment::new(), &[]).expect("a configuration")
    })
}

pub fn target(input: &[u8]) {
    let mut world = support::standalone::Standalone::new(support::standalone::SETTINGS, false);
    let Need::Word(word) = world.greet(input) else { return };
    let word = Word::from_bytes(word).expect("a known four-letter word");
    let status =
        Status { serving: input.last().is_some_and(|last| last % 2 == 0), ..Status::default() };
    let rest = input.get(4..).unwrap_or_default();
    let said = answer(word, rest, config(), &Registry::default(), &status);
    let may_be_empty = match word {
        Word::TelnetClose | Word::Hash => true,
        Word::Stmk => rest.len() < 8,
        _ => false,
    };
    let is_answered = !said.text.is_empty() || !said.lists.is_empty();
    assert!(is_answered || may_be_empty, "{} is answered", word.name());
}
