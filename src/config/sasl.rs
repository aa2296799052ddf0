//! Checked settings of SASL, for clients and between servers: the sections of the JAAS file, and
//! the rules for identities.

use crate::auth::kerberos::NameRules;
use crate::model::Secret;
use std::path::PathBuf;
use std::sync::Arc;

/// A section of the JAAS file: how this server proves who it is, or which users it knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Login {
    /// `DigestLoginModule`.
    Digest(DigestLogin),
    /// `Krb5LoginModule`.
    Kerberos(KerberosLogin),
}

/// DIGEST-MD5: users for a section that accepts, `username` and `password` for one that dials.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DigestLogin {
    /// Each `user_NAME="password"`, in the order of the file.
    pub users: Vec<(String, Arc<Secret>)>,
    pub user_name: Option<String>,
    pub password: Option<Arc<Secret>>,
}

/// Kerberos, with the options of Java's module that mean something here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KerberosLogin {
    /// `service/host@REALM` or `user@REALM`; `_HOST` of a section between servers is not replaced yet.
    pub principal: Option<String>,
    /// `keyTab`, if `useKeyTab` is true; without `keyTab` the library's default.
    pub key_tab: Option<KeyTab>,
    /// `ticketCache`, if `useTicketCache` is true.
    pub ticket_cache: Option<TicketCache>,
    pub is_initiator: bool,
}

/// Where keys are read from.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyTab {
    Default,
    File(PathBuf),
}

/// Where tickets are read from.
#[derive(Clone, Debug, PartialEq)]
pub enum TicketCache {
    Default,
    File(PathBuf),
}

/// SASL on client ports.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSasl {
    /// `sasl.serverconfig`: the section's name.
    pub section: String,
    pub login: Login,
    /// `SASLAuthenticationProvider.superPassword`: replaces the password of the user `super` where the section has one.
    pub super_password: Option<Arc<Secret>>,
}

/// Rules for the ids of clients that authenticated by SASL (DIGEST-MD5 or Kerberos).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SaslRules {
    /// `superUser` and `superUser.*`: ids that are `super` too.
    pub super_users: Vec<String>,
    /// `letAnySaslUserDoX`: an ACL entry `sasl:` with this id matches every client that has a sasl id.
    pub let_any_user_do: Option<String>,
    /// `allowSaslFailedClients`.
    pub allows_failed_clients: bool,
    /// `kerberos.removeHostFromPrincipal`, `kerberos.removeRealmFromPrincipal`.
    pub removes_host: bool,
    pub removes_realm: bool,
    /// `requireKerberosConfig`: the Kerberos library must have a default realm, or the server does not start.
    pub requires_kerberos_config: bool,
    /// `security.auth_to_local`; `DEFAULT` where none is set.
    pub auth_to_local: NameRules,
}

/// SASL between servers (`quorum.auth.*`).
#[derive(Clone, Debug, PartialEq)]
pub struct QuorumSasl {
    /// `quorum.auth.learner.saslLoginContext`: for connections that this server makes.
    pub learner: Login,
    /// `quorum.auth.server.saslLoginContext`: for connections that other servers make.
    pub server: Login,
    /// `quorum.auth.learnerRequireSasl`: this server authenticates when it dials.
    pub learner_requires: bool,
    /// `quorum.auth.serverRequireSasl`: a server that dials must authenticate.
    pub server_requires: bool,
    /// `quorum.auth.kerberos.servicePrincipal`: `service/host`, where host may be `_HOST`.
    pub service_principal: String,
    /// `zookeeper.server.realm`; `None`: that of the learner's own principal.
    pub server_realm: Option<String>,
    /// `kerberos.canonicalizeHostNames`: servers are known by the names that name servers give for their addresses.
    pub canonicalizes_hosts: bool,
}
