//! Flags where ZooKeeper's and Kafka's scripts look for them, and which a server that is started without those scripts never sees.

use super::secrets::shown;
use super::system_properties::SystemProperties;
use super::{Environment, SettingPlace, Warning};
use std::io;
use std::path::Path;

/// Files beside the configuration that `zkEnv.sh` sources.
const SOURCED: [&str; 2] = ["java.env", "zookeeper-env.sh"];
/// The variable of Kafka's scripts.
const KAFKA: &str = "KAFKA_OPTS";

/// One warning for each place with flags that this server was not given.
///
/// * `config`: the configuration file. `system`: the flags that it was given.
pub(super) fn warnings(
    read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    config: &Path,
    env: &Environment,
    system: &SystemProperties,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for name in SOURCED {
        let path = config.with_file_name(name);
        // Most servers have no such file.
        let Ok(text) = read(&path) else { continue };
        let place = SettingPlace::File(path.display().to_string());
        warnings.extend(warning(&String::from_utf8_lossy(&text), place, system));
    }
    let kafka = env.get(KAFKA).and_then(|text| warning(text, SettingPlace::Variable, system));
    warnings.extend(kafka);
    warnings
}

fn warning(text: &str, place: SettingPlace, system: &SystemProperties) -> Option<Warning> {
    let lost: Vec<String> = flags(text)
        .filter(|(key, _)| system.get(key).is_none())
        .map(|(key, value)| format!("-D{}", shown(key, value)))
        .collect();
    let of = if place == SettingPlace::Variable { format!("{KAFKA}: ") } else { String::new() };
    let text = format!(
        "{of}{} not read, as only ZooKeeper's and Kafka's scripts read them; give them to the server, or put them into SERVER_JVMFLAGS",
        lost.join(" ")
    );
    (!lost.is_empty()).then_some(Warning::new(place, text))
}

/// The flags `-Dkey=value` of a shell file, or of a variable, except those in comments.
fn flags(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let words = lines.flat_map(|line| line.split([' ', '\t', '"', '\'', ';']));
    words.filter_map(|word| {
        let at = word.find("-D").filter(|&at| at == 0 || word[..at].ends_with('='))?;
        let definition = &word[at + 2..];
        let (key, value) = definition.split_once('=').unwrap_or((definition, ""));
        (!key.is_empty()).then_some((key, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_that_only_scripts_read_are_named_unless_the_server_has_them() {
        let files = |path: &Path| match path.to_str() {
            Some("/etc/zk/java.env") => {
                Ok(b"#!/bin/sh\n# -Da=1\nexport SERVER_JVMFLAGS=\"-Xmx1g -Djute.maxbuffer=5 \
                -Dkey.password=s3\"\nJVMFLAGS=-Dseen=1\n"
                    .to_vec())
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let warnings_of = |flags: &[&str], env: &Environment| {
            let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
            let system = SystemProperties::from_flags(env, &flags);
            let found = warnings(&files, Path::new("/etc/zk/zoo.cfg"), env, &system);
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let none = Environment::new();
        let lost = warnings_of(&["-Dseen=2"], &none);
        let wanted = "/etc/zk/java.env: -Djute.maxbuffer=5 -Dkey.password=(not shown) not read";
        assert!(lost.len() == 1 && lost[0].starts_with(wanted), "{lost:?}");
        assert_eq!(
            warnings_of(&["-Dseen", "-Djute.maxbuffer=7", "-Dkey.password=x"], &none),
            [""; 0]
        );
        let kafka = Environment::from([("KAFKA_OPTS".to_owned(), "-Dk=1".to_owned())]);
        let lost = warnings_of(&["-Dseen", "-Djute.maxbuffer=7", "-Dkey.password=x"], &kafka);
        assert!(lost.len() == 1 && lost[0].starts_with("environment: KAFKA_OPTS: -Dk=1 not read"));
    }
}
