//! Puts SASL between servers together from the settings.

use super::client_schemes::{kerberos_error, mechanisms};
use super::error::ServerError;
use crate::auth::digest_md5::Accounts;
use crate::config::Config;
use crate::config::sasl::{DigestLogin, Login};
use crate::member::failure::FailureCause;
use crate::member::quorum_sasl::{
    Acceptors, DigestAcceptors, DigestInitiators, Initiators, Nonces, QuorumSaslExchanges,
};
use crate::member::sasl_exchange::{NoSasl, SaslExchanges};
use crate::net::nonce;
use crate::net::quorum_gss::{KerberosAcceptors, KerberosInitiators};
use std::sync::Arc;

/// The SASL exchanges of the connections to other members.
///
/// # Errors
/// When the settings of SASL can't be obeyed.
pub fn exchanges(config: &Config) -> Result<Arc<dyn SaslExchanges>, ServerError> {
    let Some(sasl) = &config.quorum_sasl else { return Ok(Arc::new(NoSasl)) };
    let nonces: Nonces = Arc::new(nonce);
    let acceptors: Arc<dyn Acceptors> = match &sasl.server {
        Login::Digest(login) => {
            let accounts = Arc::new(Accounts::of_servers(&login.users));
            Arc::new(DigestAcceptors { accounts, nonces: nonces.clone() })
        }
        Login::Kerberos(login) => {
            let acceptors = KerberosAcceptors::new(login, sasl.canonicalizes_hosts);
            let section = "quorum.auth.server.saslLoginContext";
            Arc::new(acceptors.map_err(|error| kerberos_error(section, login, &error))?)
        }
    };
    let initiators: Option<Arc<dyn Initiators>> = match &sasl.learner {
        _ if !sasl.learner_requires => None,
        Login::Digest(login) => Some(Arc::new(digest_initiators(login, nonces)?)),
        Login::Kerberos(login) => {
            let realm = sasl.server_realm.as_deref();
            let (principal, canonicalizes) = (&sasl.service_principal, sasl.canonicalizes_hosts);
            let initiators = KerberosInitiators::new(login, principal, realm, canonicalizes);
            let section = "quorum.auth.learner.saslLoginContext";
            Some(Arc::new(initiators.map_err(|error| kerberos_error(section, login, &error))?))
        }
    };
    Ok(Arc::new(QuorumSaslExchanges { acceptors, initiators, is_required: sasl.server_requires }))
}

/// Whether SASL can work as the settings say, for clients and between servers. Nothing is sent.
///
/// # Errors
/// As at the start: a section that can't be used, or a key that is missing.
pub fn check_logins(config: &Config) -> Result<(), ServerError> {
    mechanisms(config)?;
    exchanges(config)?;
    Ok(())
}

fn digest_initiators(login: &DigestLogin, nonces: Nonces) -> Result<DigestInitiators, ServerError> {
    let (Some(user), Some(password)) = (login.user_name.clone(), login.password.clone()) else {
        return Err(failed(
            "the section of the JAAS file that quorum.auth.learner.saslLoginContext names has no \
             username and password",
        ));
    };
    Ok(DigestInitiators { user, password, nonces })
}

fn failed(reason: &str) -> ServerError {
    ServerError::Failed { reason: reason.to_owned(), exit: 2, cause: FailureCause::Other }
}
