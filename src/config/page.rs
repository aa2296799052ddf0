//! `docs/configuration.md`: its table is written from `keys.txt`, the rest by hand.

use super::keys::{Class, KEYS, Key, Scope};
use std::path::PathBuf;

const BEGIN: &str = "<!-- From src/config/keys.txt; `UPDATE_EXPECT=1 cargo test --lib config::page` writes it. -->\n";
const END: &str = "<!-- end -->\n";

fn table() -> String {
    let mut text = String::new();
    for (class, title, columns) in [
        (Class::Works, "Settings that have an effect", "Default | What it does"),
        (
            Class::Tunes,
            "Settings without effect: accepted, and named in a warning",
            "No warning if | Why",
        ),
        (
            Class::Guards,
            "Settings that ask for a protection that this server does not have: refused",
            "Accepted if | Asks for",
        ),
        (Class::Ensemble, "Settings that make an ensemble", "Default | What it is"),
        (
            Class::Member,
            "Settings of members of an ensemble; a standalone server accepts them with a warning",
            "Default | What it does",
        ),
    ] {
        text += &format!("\n### {title}\n\n| Setting | Where | {columns} |\n|---|---|---|---|\n");
        for key in KEYS.iter().filter(|key| key.class == class) {
            let value = match class {
                Class::Works | Class::Ensemble | Class::Member => key.default,
                Class::Tunes | Class::Guards => key.harmless.unwrap_or(""),
            };
            text += &format!("| `{}` | {} | {value} | {} |\n", key.name, place(key), key.text);
        }
    }
    text + "\n"
}

fn place(key: &Key) -> String {
    match key.scope {
        Scope::File => "zoo.cfg".to_owned(),
        Scope::Both => "zoo.cfg, `-Dzookeeper.`".to_owned(),
        Scope::Own => "zoo.cfg, `-D`".to_owned(),
        Scope::Flag => "`-D`".to_owned(),
        Scope::Variable => "environment".to_owned(),
    }
}

#[test]
fn configuration_page_has_every_setting() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or(env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let path = root.join("docs/configuration.md");
    let found = std::fs::read_to_string(&path).expect("the page");
    let (head, rest) = found.split_once(BEGIN).expect("where the table begins");
    let (_, tail) = rest.split_once(END).expect("where it ends");
    let wanted = format!("{head}{BEGIN}{}{END}{tail}", table());
    if found != wanted {
        let update = std::env::var_os("UPDATE_EXPECT").is_some();
        assert!(update, "{} is out of date; UPDATE_EXPECT=1 rewrites it", path.display());
        std::fs::write(&path, wanted).expect("write the page");
    }
}
