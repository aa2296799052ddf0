//! SASL on client ports: the section of the JAAS file, and what decides about proved identities.

use super::SettingPlace;
use super::auth_providers::Providers;
use super::checker::Checker;
use super::logins::{self, Logins, Use};
use super::property_reader::Reader;
use super::sasl::{ClientSasl, Login, SaslRules};
use super::system_properties::SystemProperties;
use crate::auth::kerberos::NameRules;
use crate::model::Secret;
use std::sync::Arc;

const SECTION: &str = "zookeeper.sasl.serverconfig";
const SUPER_PASSWORD: &str = "zookeeper.SASLAuthenticationProvider.superPassword";
const NAME_RULES: &str = "zookeeper.security.auth_to_local";
const SUPER_USER: &str = "zookeeper.superUser";

/// `None` if no mechanism is offered, and if a setting was wrong.
///
/// Source: `ServerCnxnFactory.configureSaslLogin`, ZooKeeper 3.9.5.
pub(super) fn take(
    checker: &mut Checker,
    system: &mut SystemProperties,
    logins: &Logins,
) -> Option<ClientSasl> {
    let named = system.take(SECTION);
    let super_password = system.take(SUPER_PASSWORD);
    let name = named.as_ref().map_or("Server", |named| named.value.as_str()).to_owned();
    let found = match logins {
        Logins::Broken => return None,
        Logins::NoFile => None,
        Logins::Found { sections, file, .. } => {
            sections.iter().find(|section| section.name == name).map(|section| (section, file))
        }
    };
    let Some((section, file)) = found else {
        let (flag, file) = match logins {
            Logins::Found { flag, file, .. } => (Some(flag.clone()), file.as_str()),
            _ => (None, ""),
        };
        match (named, flag) {
            (Some(named), None) => {
                let text = format!(
                    "sasl.serverconfig={name} names a section, but no JAAS file is named; set -D{}=FILE",
                    logins::FLAG
                );
                checker.problem(&named.place, text);
            }
            (Some(named), Some(_)) => {
                let text = format!("sasl.serverconfig={name}: {file} has no such section; add it");
                checker.problem(&named.place, text);
            }
            (None, Some(flag)) => {
                let text = format!(
                    "{file} has no section {name}: clients can't authenticate by SASL; add it if they should"
                );
                checker.warn(&flag, text);
            }
            (None, None) => {}
        }
        if let Some(idle) = super_password {
            let text = "SASLAuthenticationProvider.superPassword has no effect without SASL of clients; remove it";
            checker.warn(&idle.place, text);
        }
        return None;
    };
    let login = logins::login(checker, file, section, Use::Accepts)?;
    let super_password = super_password.filter(|password| !password.value.is_empty());
    let has_super = match &login {
        Login::Digest(login) => login.users.iter().any(|(user, _)| user == "super"),
        Login::Kerberos(_) => false,
    };
    if let Some(idle) = super_password.as_ref().filter(|_| !has_super) {
        let text = format!(
            "SASLAuthenticationProvider.superPassword has no effect, as section {name} of {file} has no user super; add user_super to it, or remove the setting"
        );
        checker.warn(&idle.place, text);
    }
    Some(ClientSasl {
        section: name,
        login,
        super_password: super_password
            .map(|password| Arc::new(Secret::new(password.value.into_bytes()))),
    })
}

/// What decides about identities.
///
/// Source: `ZooKeeperServer.isSaslSuperUser`, `SASLAuthenticationProvider`, `KerberosName`, `SaslServerCallbackHandler`,
/// ZooKeeper 3.9.5.
pub(super) fn take_rules(checker: &mut Checker, system: &mut SystemProperties) -> SaslRules {
    let is_super = |name: &str| {
        name.strip_prefix(SUPER_USER).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let names = system
        .all()
        .into_iter()
        .filter(|(name, property)| is_super(name) && !property.value.is_empty());
    let super_users = names.map(|(_, property)| property.value).collect();
    let mut from = Reader::new(system, &mut checker.warnings);
    SaslRules {
        super_users,
        let_any_user_do: from.text("zookeeper.letAnySaslUserDoX"),
        allows_failed_clients: from.flag("zookeeper.allowSaslFailedClients", false),
        removes_host: from.flag("zookeeper.kerberos.removeHostFromPrincipal", false),
        removes_realm: from.flag("zookeeper.kerberos.removeRealmFromPrincipal", false),
        requires_kerberos_config: from.flag("zookeeper.requireKerberosConfig", false),
        auth_to_local: take_name_rules(checker, system),
    }
}

fn take_name_rules(checker: &mut Checker, system: &mut SystemProperties) -> NameRules {
    let Some(rules) = system.take(NAME_RULES) else { return NameRules::default() };
    NameRules::parse(&rules.value).unwrap_or_else(|error| {
        checker.problem(&rules.place, format!("security.auth_to_local: {error}"));
        NameRules::default()
    })
}

/// Settings that ask for SASL where no client can use it.
///
/// * `has_sasl`: a JAAS file has a section for clients, or a problem was reported.
pub(super) fn check_required(
    checker: &mut Checker,
    system: &SystemProperties,
    providers: &Providers,
    logins: &Logins,
) {
    if matches!(logins, Logins::Broken) {
        return;
    }
    let required = &providers.required;
    if required.is_empty() || !required.iter().all(|scheme| scheme == "sasl") {
        return;
    }
    let keys = ["zookeeper.sessionRequireClientSASLAuth", "zookeeper.enforce.auth.schemes"];
    let place = keys.iter().find_map(|key| system.get(key)).map(|property| property.place.clone());
    let place = place.unwrap_or(SettingPlace::Argument);
    let why = logins::lack(logins.file().as_deref());
    let text = format!("clients must authenticate by SASL, and none can: {why}");
    checker.warn(&place, text);
}
