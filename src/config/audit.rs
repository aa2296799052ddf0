//! The audit log: whether there is one, and where (C-224, C-225).

use super::log_output::LogFile;
use super::property_reader::Reader;
use super::system_properties::{Environment, SystemProperties};
use super::{Config, property_settings};

/// An audit log that is wanted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Audit {
    /// `None`: the lines go into the server's log.
    pub file: Option<LogFile>,
}

impl Audit {
    /// `None`: there is no audit log.
    pub fn of(config: &Config) -> Option<Self> {
        config.audit_enabled.then(|| Self { file: config.audit_file.clone() })
    }

    /// What flags alone say, for a server whose configuration is refused.
    ///
    /// * `logback`: the file that a `logback.xml` names.
    pub fn of_flags(env: &Environment, flags: &[String], logback: Option<LogFile>) -> Option<Self> {
        let mut system = SystemProperties::from_flags(env, flags);
        let (is_enabled, file) =
            property_settings::audit(&mut Reader::new(&mut system, &mut Vec::new()));
        is_enabled.then_some(Self { file: file.or(logback) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    // rows: C-224
    #[test]
    fn refused_start_is_logged_to_the_file_that_flags_name() {
        let of = |flags: &[&str]| {
            let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
            Audit::of_flags(&Environment::new(), &flags, None)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["-Dzookeeper.auditlog.file=a"]), None);
        assert_eq!(of(&["-Dzookeeper.audit.enable=True"]), Some(Audit { file: None }));
        let both = ["-Dzookeeper.audit.enable=true", "-Dzookeeper.auditlog.file=a.log"];
        let path = |of: Option<Audit>| of.unwrap().file.unwrap().path;
        assert_eq!(path(of(&both)), Path::new("./a.log"));
        let all = [both[0], both[1], "-Dzookeeper.log.dir=/var/log"];
        assert_eq!(path(of(&all)), Path::new("/var/log/a.log"));
    }
}
