//! From settings to keys and trusted certificates.

use super::choice;
use super::entry::{Entry, KeyEntry, Keys};
use super::error::{EntryFault, Fault, StoreError};
use super::file::{read_password, read_store, text};
use super::kind::{Kind, kind_of};
use super::{java_order, jks, pem, pkcs12};
use crate::config::tls::{StorePassword, StoreSettings};
use rustls_pki_types::CertificateDer;
use std::path::Path;
use std::time::SystemTime;

const KEY_STORE: &str = "key store";
const TRUST_STORE: &str = "trust store";

/// Reads a key store, and its password if that is in a file.
///
/// # Errors
/// One line that names file, kind, alias and reason: a file or a password that does not fit, no key, a key that fits no certificate.
pub fn load_keys(settings: &StoreSettings) -> Result<Keys, StoreError> {
    let (kind, entries) = entries(settings, KEY_STORE)?;
    choice::choose(keys_of(entries), SystemTime::now())
        .map_err(|fault| error(settings, KEY_STORE, Some(kind), fault))
}

/// Reads a trust store, and its password if that is in a file. Certificates of its key entries are not trusted, as in Java.
///
/// # Errors
/// One line that names file, kind and reason. A store without trusted certificates is an error.
pub fn load_trust(settings: &StoreSettings) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let (kind, entries) = entries(settings, TRUST_STORE)?;
    let trusted = entries.into_iter().filter_map(|entry| match entry {
        Entry::Trusted(trusted) => Some(trusted.certificate),
        Entry::Key(_) => None,
    });
    let trusted: Vec<_> = trusted.collect();
    if trusted.is_empty() {
        let fault = Fault::NotTrusted(match kind {
            Kind::Jks | Kind::Pkcs12 => {
                "no trusted certificate in it, only keys and certificates without Java's mark; add one: \
                 keytool -importcert -keystore FILE -alias ALIAS -file CERTIFICATE"
            }
            Kind::Pem => "no certificate in it; name the file of the authority's certificate",
        });
        return Err(error(settings, TRUST_STORE, Some(kind), fault.into()));
    }
    Ok(trusted)
}

fn keys_of(entries: Vec<Entry>) -> Vec<KeyEntry> {
    let keys = entries.into_iter().filter_map(|entry| match entry {
        Entry::Key(key) => Some(key),
        Entry::Trusted(_) => None,
    });
    keys.collect()
}

fn entries(settings: &StoreSettings, role: &'static str) -> Result<(Kind, Vec<Entry>), StoreError> {
    let data =
        read_store(&settings.path).map_err(|fault| error(settings, role, None, fault.into()))?;
    let kind = kind_of(&data).map_err(|fault| error(settings, role, None, fault.into()))?;
    decoded(&data, kind, &settings.password)
        .map(|entries| (kind, entries))
        .map_err(|fault| error(settings, role, Some(kind), fault.into()))
}

/// An entry, as `config check` shows it.
pub struct Shown {
    pub alias: String,
    /// The certificates of a key, its own first, or one trusted certificate.
    pub chain: Vec<CertificateDer<'static>>,
    pub is_key: bool,
    /// Why a key can't be used.
    pub fault: Option<String>,
}

/// Reads all entries of a store, whether they can be used or not.
///
/// # Errors
/// One line, as of [`load_keys`] and [`load_trust`].
pub fn show(
    settings: &StoreSettings,
    is_key_store: bool,
) -> Result<(Kind, Vec<Shown>), StoreError> {
    let (kind, entries) = entries(settings, if is_key_store { KEY_STORE } else { TRUST_STORE })?;
    let shown = entries.into_iter().map(|entry| match entry {
        Entry::Key(key) => {
            let (alias, chain) = (key.alias.clone(), key.chain.clone());
            let fault = choice::usable(key).err().map(|fault| fault.to_string());
            Shown { alias, chain, is_key: true, fault }
        }
        Entry::Trusted(trusted) => Shown {
            alias: trusted.alias,
            chain: vec![trusted.certificate],
            is_key: false,
            fault: None,
        },
    });
    Ok((kind, shown.collect()))
}

/// Reads a key and its certificates from two PEM files, as clients have them.
///
/// # Errors
/// One line that names a file and the reason.
pub fn load_pem_keys(certificates: &Path, key: &Path) -> Result<Keys, StoreError> {
    let settings = |path: &Path| StoreSettings {
        path: path.to_owned(),
        password: StorePassword::None,
        kind: None,
    };
    let read = |path: &Path| {
        read_store(path).map_err(|fault| error(&settings(path), "PEM file", None, fault.into()))
    };
    let (mut data, more) = (read(key)?, read(certificates)?);
    data.push(b'\n');
    data.extend_from_slice(&more);
    let at_key = |fault| error(&settings(key), "key", Some(Kind::Pem), fault);
    let entries = pem::read(&data, "").map_err(|fault| at_key(fault.into()))?;
    choice::choose(keys_of(entries), SystemTime::now()).map_err(at_key)
}

/// Reads bytes as a store of any kind. Its password is `password`.
///
/// # Errors
/// Why the bytes are no store.
pub fn count_entries(data: &[u8], password: &str) -> Result<usize, Fault> {
    Ok(read_kind(data, kind_of(data)?, password)?.into_iter().map(usable_or_not).count())
}

fn usable_or_not(entry: Entry) -> bool {
    match entry {
        Entry::Key(key) => choice::usable(key).is_ok(),
        Entry::Trusted(_) => true,
    }
}

pub(super) fn decoded(
    data: &[u8],
    kind: Kind,
    password: &StorePassword,
) -> Result<Vec<Entry>, Fault> {
    let password = read_password(password)?;
    let password = password.as_ref().map_or(Ok(""), |password| text(password))?;
    read_kind(data, kind, password)
}

fn read_kind(data: &[u8], kind: Kind, password: &str) -> Result<Vec<Entry>, Fault> {
    match kind {
        Kind::Jks => jks::read(data, password).map(in_java_order),
        Kind::Pkcs12 => pkcs12::read(data, password),
        Kind::Pem => pem::read(data, password),
    }
}

fn in_java_order(entries: Vec<Entry>) -> Vec<Entry> {
    let aliases: Vec<String> = entries.iter().map(|entry| entry.alias().to_owned()).collect();
    let mut entries: Vec<Option<Entry>> = entries.into_iter().map(Some).collect();
    let order = java_order::jks_order(&aliases).into_iter();
    order.filter_map(|index| entries.get_mut(index).and_then(Option::take)).collect()
}

/// What the caller logs about a store that is used: its settings name another kind than it is, or it has several keys.
pub fn warnings(settings: &StoreSettings, keys: Option<&Keys>) -> Vec<String> {
    let mut warnings = Vec::new();
    let path = settings.path.display();
    let kind = read_store(&settings.path).and_then(|data| kind_of(&data));
    if let (Ok(kind), Some(named)) = (kind, settings.kind)
        && !kind.is(named)
    {
        let kind = kind.name();
        warnings.push(format!(
            "{path} is read as the {kind} store that it is, although its type or its suffix says otherwise; set the type to {kind}"
        ));
    }
    if let Some(keys) = keys.filter(|keys| !keys.others.is_empty()) {
        warnings.push(format!(
            "{path} has several keys: {} is shown to every client, and {} to none; keep one key in the store",
            keys.alias.escape_debug(),
            keys.others.iter().map(|alias| alias.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
        ));
    }
    warnings
}

fn error(
    settings: &StoreSettings,
    role: &'static str,
    kind: Option<Kind>,
    fault: EntryFault,
) -> StoreError {
    StoreError {
        role,
        path: settings.path.clone(),
        kind: kind.map(Kind::name),
        alias: fault.alias,
        fault: fault.fault,
    }
}
