//! Configuration as text, and the settings that the parts of a server get from it.

use oxkeeper::config::{Config, Environment, Source, parse};
use oxkeeper::member::configured::PartSettings;
use oxkeeper::member::sasl_exchange::NoSasl;
use std::sync::Arc;

/// The configuration of these lines and flags.
///
/// * `lines`: of zoo.cfg, after dataDir and clientPort. `flags`: as start scripts pass them, such as `-Dzookeeper.forceSync=no`.
pub fn config(lines: &str, flags: &str) -> Config {
    let text = format!("dataDir=/d\nclientPort=0\n{lines}\n");
    let source = Source { name: "zoo.cfg", text: text.as_bytes(), my_id: Some("1") };
    let environment = Environment::from([("SERVER_JVMFLAGS".to_owned(), flags.to_owned())]);
    parse(source, &environment, &[]).expect("a configuration")
}

pub fn parts_of(config: &Config) -> PartSettings {
    PartSettings::of(config, Arc::new(NoSasl), 0, 0)
}

/// The settings of the parts; arguments as in [`config`].
pub fn parts(lines: &str, flags: &str) -> PartSettings {
    parts_of(&config(lines, flags))
}
