//! The text of zoo.cfg, JVM flags and a command line, and the configuration or the problems that result.

mod config {
    mod args;
    mod auth_providers;
    mod client_address;
    mod client_schemes;
    mod dynamic;
    mod ensemble;
    mod file_settings;
    mod keys;
    mod parse;
    mod property_settings;
    mod sasl;
    mod stumbles;
    mod tls;
    mod unsupported;
}

use oxkeeper::config::{Config, ConfigError, Environment, Source, parse};

const BASE: &str = "dataDir=/d\nclientPort=2181\n";

/// A whole zoo.cfg and the text of the file `myid`.
fn file(text: &str, my_id: Option<&str>) -> Result<Config, ConfigError> {
    let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id };
    parse(source, &Environment::new(), &[])
}

/// A zoo.cfg that begins with [`BASE`], and the variable `JVMFLAGS`.
fn with_flags(lines: &str, flags: &str) -> Result<Config, ConfigError> {
    let text = format!("{BASE}{lines}\n");
    let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: None };
    let env = Environment::from([("JVMFLAGS".to_owned(), flags.to_owned())]);
    parse(source, &env, &[])
}

fn with(lines: &str) -> Result<Config, ConfigError> {
    with_flags(lines, "")
}

fn of(lines: &str) -> Config {
    with(lines).unwrap()
}
