//! Which ids a client gets for the name that it proved by SASL, and what these ids permit (U-09, U-18, U-19).

use super::kerberos::NameRules;
use super::principal::Principal;
use super::sasl::Refusal;
use crate::model::{AccessList, Identity};

/// The rules of the settings.
#[derive(Clone, Debug, Default)]
pub struct SaslRules {
    /// `superUser` and `superUser.*`: ids that are `super` too.
    pub super_users: Vec<String>,
    /// `letAnySaslUserDoX`: the id whose ACL entries match every client with a sasl id.
    pub any_user_is: Option<Identity>,
    /// `allowSaslFailedClients`: a client that fails is served without an id.
    pub allows_failed_clients: bool,
    /// `kerberos.removeHostFromPrincipal`, `kerberos.removeRealmFromPrincipal`.
    pub removes_host: bool,
    pub removes_realm: bool,
    /// `security.auth_to_local`.
    pub name_rules: NameRules,
    /// The realm whose names the rule `DEFAULT` shortens; empty: there is none.
    pub default_realm: String,
}

impl SaslRules {
    /// The identities of a client that has proved `name`.
    ///
    /// # Errors
    /// [`Refusal`] for a name that no list can have.
    ///
    /// Source: `SaslServerCallbackHandler.handleAuthorizeCallback`, `ZooKeeperServer.processSasl`, ZooKeeper 3.9.5.
    pub fn identities(&self, name: &str) -> Result<Vec<Identity>, Refusal> {
        let id = self.id(name).ok_or_else(|| {
            Refusal::new("the proved name has an @, and is not of the form service/host@REALM")
        })?;
        let is_super = !id.is_empty() && self.super_users.contains(&id);
        let mut identities = vec![Identity::new("sasl", &id)];
        identities.extend(is_super.then(|| Identity::new("super", "")));
        Ok(identities)
    }

    /// The id: short name, host and realm, without what the settings remove. A name that no rule shortens is kept whole.
    fn id(&self, name: &str) -> Option<String> {
        let principal = Principal::parse(name)?;
        let short = self.name_rules.short(principal, &self.default_realm);
        let Some(mut id) = short else { return Some(name.to_owned()) };
        if let Some(host) = principal.host.filter(|_| !self.removes_host) {
            id.push('/');
            id.push_str(host);
        }
        if let Some(realm) = principal.realm.filter(|_| !self.removes_realm) {
            id.push('@');
            id.push_str(realm);
        }
        Some(id)
    }

    /// Whether an access list gives this client of scheme sasl a permission of `wanted`. Every sasl
    /// entry matches a client whose id is `super`; an ACL entry `sasl:super` is like any other.
    ///
    /// Source: `SASLAuthenticationProvider.matches`, ZooKeeper 3.9.5.
    pub(super) fn permit(&self, acl: &AccessList, wanted: i32, who: &Identity) -> bool {
        acl.permits_identity(wanted, who)
            || self.any_user_is.as_ref().is_some_and(|any| acl.permits_identity(wanted, any))
            || (&*who.id == "super" && permits_scheme(acl, wanted, "sasl"))
    }
}

/// Whether any entry of the scheme has a permission of `wanted`.
pub(super) fn permits_scheme(acl: &AccessList, wanted: i32, scheme: &str) -> bool {
    acl.iter().any(|entry| entry.perms & wanted != 0 && *entry.who.scheme == *scheme)
}
