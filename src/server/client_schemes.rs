//! What the authentication of clients needs in addition to the configuration: the Kerberos library and its keys.

use super::error::ServerError;
use crate::auth::Schemes;
use crate::auth::digest_md5::{Accounts, Offer};
use crate::auth::sasl::Mechanisms;
use crate::config::Config;
use crate::config::sasl::{ClientSasl, KerberosLogin, KeyTab, Login};
use crate::member::failure::FailureCause;
use crate::net::gss::{self, GssError};
use crate::net::gss_mechanism::Service;
use crate::net::nonce;
use std::sync::Arc;

/// The authentication schemes; the Kerberos library is asked for its default realm if that counts.
pub fn schemes(config: &Config) -> Schemes {
    let library = config.needs_default_realm().then(gss::library);
    let default_realm = library.and_then(Result::ok).map(gss::Gss::default_realm);
    config.client_schemes(default_realm.unwrap_or_default())
}

/// What begins the SASL exchanges of clients; `None`: the settings name no mechanism.
///
/// # Errors
/// When Kerberos can't work: without its library, without the server's key, or without a default realm where one is required.
pub fn mechanisms(config: &Config) -> Result<Option<Arc<dyn Mechanisms>>, ServerError> {
    check_required_configuration(config)?;
    let Some(ClientSasl { section, login, super_password }) = &config.client_sasl else {
        return Ok(None);
    };
    match login {
        Login::Digest(login) => {
            let accounts = Accounts::of_clients(&login.users, super_password.as_ref());
            Ok(Some(Arc::new(Offer::new(accounts, nonce))))
        }
        Login::Kerberos(login) => {
            let service = Service::of(login, false);
            Ok(Some(Arc::new(service.map_err(|error| kerberos_error(section, login, &error))?)))
        }
    }
}

/// `requireKerberosConfig`: the Kerberos library must have a default realm.
///
/// # Errors
/// When it has none.
///
/// Source: `KerberosName`, ZooKeeper 3.9.5.
fn check_required_configuration(config: &Config) -> Result<(), ServerError> {
    if !config.sasl_rules.requires_kerberos_config {
        return Ok(());
    }
    let realm = gss::library().map(gss::Gss::default_realm);
    let reason = match realm {
        Ok(realm) if !realm.is_empty() => return Ok(()),
        Ok(_) => "krb5.conf has no default_realm; add it to its section libdefaults, or name \
                  another file by -Djava.security.krb5.conf"
            .to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ServerError::Failed {
        reason: format!("requireKerberosConfig=true: {reason}"),
        exit: 2,
        cause: FailureCause::Other,
    })
}

/// Kerberos can't work as a section of the JAAS file says.
pub fn kerberos_error(section: &str, login: &KerberosLogin, error: &GssError) -> ServerError {
    let file = match &login.key_tab {
        Some(KeyTab::File(path)) => path.display().to_string(),
        Some(KeyTab::Default) | None => "the default one".to_owned(),
    };
    let principal = login.principal.as_deref().unwrap_or("any");
    let reason = format!(
        "section {section} of the JAAS file: principal {principal}, keytab {file}: {error}; correct them"
    );
    ServerError::Failed { reason, exit: 2, cause: FailureCause::Other }
}
