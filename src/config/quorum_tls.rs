//! TLS between servers: whether there is any, and what is set for it.

use super::SettingPlace;
use super::checker::Checker;
use super::property_reader::Reader;
use super::system_properties::SystemProperties;
use super::tls::QuorumTls;
use super::tls_settings::{self, SslPrefix};

/// The switches, which are read from the file alone.
pub(super) struct Switches {
    dials: bool,
    unified: bool,
    reloads: bool,
    /// Where the setting is that switches TLS on.
    place: Option<SettingPlace>,
}

impl Switches {
    pub fn is_on(&self) -> bool {
        self.place.is_some()
    }
}

/// Takes the switches of a member of an ensemble.
///
/// Source: `QuorumPeerConfig.parseProperties`, ZooKeeper 3.9.5.
pub(super) fn take_switches(checker: &mut Checker) -> Switches {
    let on = |setting: Option<(bool, SettingPlace)>| setting.filter(|(on, _)| *on);
    let dials = on(checker.boolean("sslQuorum"));
    let unified = on(checker.boolean("portUnification"));
    let reloads = checker.boolean("sslQuorumReloadCertFiles").is_some_and(|(on, _)| on);
    Switches {
        dials: dials.is_some(),
        unified: unified.is_some(),
        reloads,
        place: dials.or(unified).map(|(_, place)| place),
    }
}

/// `None` if connections between servers are plain, and if a setting was wrong.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    switches: &Switches,
    fips_mode: bool,
) -> Option<QuorumTls> {
    let mut settings =
        tls_settings::take(checker, system, SslPrefix::Quorum, switches.place.as_ref()?)?;
    // As Java: with fips-mode host names are not compared between servers.
    settings.verifies_host &= !fips_mode;
    settings.verifies_client_host &= !fips_mode;
    Some(QuorumTls {
        settings,
        dials: switches.dials,
        unified: switches.unified,
        reloads: switches.reloads,
        fips_mode,
    })
}

/// `fips-mode`, which also decides about SASL between servers.
pub(super) fn take_fips_mode(checker: &mut Checker, system: &mut SystemProperties) -> bool {
    Reader::new(system, &mut checker.warnings).flag("zookeeper.fips-mode", true)
}
