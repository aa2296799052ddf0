//! The sections of the JAAS file as logins: what each login module's options ask for, checked.

use super::checker::Checker;
use super::jaas::{self, Module, Section};
use super::sasl::{DigestLogin, KerberosLogin, KeyTab, Login, TicketCache};
use super::system_properties::SystemProperties;
use super::{Environment, SettingPlace};
use crate::model::Secret;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The flag that names the file.
pub(super) const FLAG: &str = "java.security.auth.login.config";

const DIGEST: &str = "org.apache.zookeeper.server.auth.DigestLoginModule";
const KERBEROS: &str = "com.sun.security.auth.module.Krb5LoginModule";

/// Options of `DigestLoginModule` that begin so are users.
const USER: &str = "user_";

/// The JAAS file, already read.
#[derive(Debug)]
pub(super) struct JaasFile {
    /// Its path, as the flag names it.
    pub name: String,
    /// Its bytes, or why there are none.
    pub text: Result<Secret, String>,
}

/// The path that the flag names: a path, or a URL of a file, after a `=` that Java accepts too.
///
/// # Errors
/// A text, if it is no path.
pub(super) fn path(value: &str, property: &jaas::Property<'_>) -> Result<PathBuf, String> {
    let value = jaas::expand(value.strip_prefix('=').unwrap_or(value), property)?;
    let Some(url) = strip_scheme(&value, "file:") else {
        if strip_scheme(&value, "http:").or_else(|| strip_scheme(&value, "https:")).is_some() {
            return Err("is not a file of this machine".to_owned());
        }
        return Ok(PathBuf::from(value.as_str()));
    };
    let path = match url.strip_prefix("//") {
        None => url,
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !["", "localhost"].contains(&host) {
                return Err(format!("names host \"{host}\"; write file:///path"));
            }
            path
        }
    };
    Ok(PathBuf::from(percent_decoded(path)))
}

fn strip_scheme<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = url.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Replaces `%20` and the like; other per cent signs stay.
fn percent_decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = digits.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let (b'%', Some(code)) = (byte, code) {
            decoded.push(code);
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// A Java system property: one that is set, or one of those that every JVM has.
pub(super) fn property(env: &Environment, system: &SystemProperties, name: &str) -> Option<String> {
    let variable = |name: &str| env.get(name).cloned();
    if let Some(property) = system.get(name) {
        return Some(property.value.clone());
    }
    match name {
        "user.home" => variable("HOME"),
        "user.name" => variable("USER").or_else(|| variable("LOGNAME")),
        "user.dir" => variable("PWD"),
        "java.io.tmpdir" => Some("/tmp".to_owned()),
        "file.separator" => Some("/".to_owned()),
        "path.separator" => Some(":".to_owned()),
        "line.separator" => Some("\n".to_owned()),
        _ => None,
    }
}

/// The sections of the file.
pub(super) enum Logins {
    /// The flag is not set.
    NoFile,
    /// The file is wrong; a problem says why.
    Broken,
    Found {
        file: String,
        flag: SettingPlace,
        sections: Vec<Section>,
    },
}

/// Why no client can authenticate by SASL, and what to do.
///
/// * `file`: the JAAS file, which has no section for clients; `None`: none is named.
pub fn lack(file: Option<&Path>) -> String {
    match file {
        Some(file) => {
            format!("{} has no section for clients; add the section Server", file.display())
        }
        None => format!("no JAAS file is named; set -D{FLAG}=FILE, with a section Server"),
    }
}

impl Logins {
    /// The file's path, if it was read.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Found { file, .. } => Some(PathBuf::from(file)),
            Self::NoFile | Self::Broken => None,
        }
    }
}

/// Parses the file; a problem if it is missing or malformed.
pub(super) fn read(
    checker: &mut Checker,
    env: &Environment,
    system: &mut SystemProperties,
    file: Option<&JaasFile>,
) -> Logins {
    let Some(flag) = system.take(FLAG) else { return Logins::NoFile };
    let text = match file.map(|file| file.text.as_ref()) {
        Some(Ok(text)) => text,
        other => {
            let why = other.and_then(Result::err).map_or("not read", String::as_str);
            let text = format!("-D{FLAG}={}: {why}; name a file to read", flag.value);
            checker.problem(&flag.place, text);
            return Logins::Broken;
        }
    };
    let file = file.map(|file| file.name.clone()).unwrap_or_default();
    match jaas::parse(text.reveal(), &|name| property(env, system, name)) {
        Ok(sections) => Logins::Found { file, flag: flag.place, sections },
        Err(error) => {
            let place = SettingPlace::Line { file, line: error.line };
            checker.problem(&place, format!("{error}; correct the JAAS file"));
            Logins::Broken
        }
    }
}

/// What a section is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Use {
    /// It proves this server to others that it dials.
    Dials,
    /// It judges those that dial.
    Accepts,
}

/// The login that a section asks for; `None` if it is wrong, and a problem says why.
///
/// Source: `ServerCnxnFactory.getDigestMd5Credentials`, `SaslQuorumServerCallbackHandler`, `SecurityUtils`,
/// `DigestLoginModule`, ZooKeeper 3.9.5; `Krb5LoginModule`, JDK 17.
pub(super) fn login(
    checker: &mut Checker,
    file: &str,
    section: &Section,
    used: Use,
) -> Option<Login> {
    let place = |line| SettingPlace::Line { file: file.to_owned(), line };
    let name = &section.name;
    if section.modules.is_empty() {
        checker
            .problem(&place(section.line), format!("section {name} has no login module; add one"));
        return None;
    }
    for module in &section.modules {
        if ![DIGEST, KERBEROS].contains(&module.class.as_str()) {
            let text = format!(
                "section {name} has login module {}, which this server does not have; use {DIGEST} or {KERBEROS}",
                module.class
            );
            checker.problem(&place(module.line), text);
            return None;
        }
    }
    let mut kerberos = section.modules.iter().filter(|module| module.class == KERBEROS);
    let Some(module) = kerberos.next() else {
        return digest(checker, &place(section.line), section, used).map(Login::Digest);
    };
    if let Some(second) = kerberos.next() {
        let text = format!("section {name} has a second Krb5LoginModule; remove it");
        checker.problem(&place(second.line), text);
        return None;
    }
    if let Some(idle) = section.modules.iter().find(|module| module.class == DIGEST) {
        let text = format!(
            "section {name}: DigestLoginModule has no effect beside Krb5LoginModule; remove it"
        );
        checker.warn(&place(idle.line), text);
    }
    self::kerberos(checker, &place(module.line), name, module, used).map(Login::Kerberos)
}

fn digest(
    checker: &mut Checker,
    place: &SettingPlace,
    section: &Section,
    used: Use,
) -> Option<DigestLogin> {
    let mut login = DigestLogin::default();
    for (option, value) in section.modules.iter().flat_map(|module| &module.options) {
        let value = || Arc::new(Secret::new(value.reveal().to_vec()));
        match (option.as_str(), option.strip_prefix(USER)) {
            (_, Some(user)) => match login.users.iter_mut().find(|(other, _)| other == user) {
                Some((_, password)) => *password = value(),
                None => login.users.push((user.to_owned(), value())),
            },
            ("username", _) => {
                login.user_name = Some(String::from_utf8_lossy(value().reveal()).into_owned());
            }
            ("password", _) => login.password = Some(value()),
            _ => {}
        }
    }
    let name = &section.name;
    match used {
        Use::Dials if login.user_name.is_none() || login.password.is_none() => {
            let text = format!("section {name} proves this server: it needs username and password");
            checker.problem(place, text);
            return None;
        }
        Use::Accepts if login.users.is_empty() => {
            let text = format!(
                "section {name} has no user, so no client can authenticate; add user_NAME=\"password\""
            );
            checker.warn(place, text);
        }
        _ => {}
    }
    Some(login)
}

fn kerberos(
    checker: &mut Checker,
    place: &SettingPlace,
    section: &str,
    module: &Module,
    used: Use,
) -> Option<KerberosLogin> {
    let path = |name: &str| {
        let path = module.option(name)?;
        Some(PathBuf::from(path.strip_prefix("FILE:").unwrap_or(path)))
    };
    let key_tab = module
        .is_true("useKeyTab", false)
        .then(|| path("keyTab").map_or(KeyTab::Default, KeyTab::File));
    let ticket_cache = module
        .is_true("useTicketCache", false)
        .then(|| path("ticketCache").map_or(TicketCache::Default, TicketCache::File));
    let principal = module.option("principal").filter(|principal| *principal != "*");
    let wrong = match used {
        Use::Accepts if key_tab.is_none() => Some("needs useKeyTab=true: it judges with a key"),
        Use::Accepts if !principal.is_some_and(is_service) => {
            Some("needs principal=\"service/host@REALM\"")
        }
        Use::Dials if key_tab.is_none() && ticket_cache.is_none() => Some(
            "needs useKeyTab=true or useTicketCache=true: a server can't be asked for a password",
        ),
        Use::Dials if principal.is_none() && ticket_cache.is_none() => {
            Some("needs principal=\"name@REALM\", whose key is in the keytab")
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        checker.problem(place, format!("section {section} {wrong}"));
        return None;
    }
    Some(KerberosLogin {
        principal: principal.map(str::to_owned),
        key_tab,
        ticket_cache,
        is_initiator: module.is_true("isInitiator", true),
    })
}

/// Whether a principal has a service and a host.
fn is_service(principal: &str) -> bool {
    let name = principal.split('@').next().unwrap_or_default();
    name.split_once('/').is_some_and(|(service, host)| !service.is_empty() && !host.is_empty())
}
