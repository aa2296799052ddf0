//! Kerberos principals of servers: which one a server that is dialed has, and which ones a server that dials may have.

use super::principal::Principal;
use super::sasl::Refusal;
use std::collections::BTreeSet;

/// The hosts of the members of all configurations that count. A principal with one of them identifies a server.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MemberHosts(BTreeSet<String>);

impl MemberHosts {
    pub const fn new(hosts: BTreeSet<String>) -> Self {
        Self(hosts)
    }

    /// The same with other names.
    pub fn renamed(&self, name: impl Fn(&str) -> String) -> Self {
        Self(self.0.iter().map(|host| name(host)).collect())
    }

    /// Whether the owner of a principal is a server: it is `service/host@REALM`, and its host is a member's, letter by letter. A
    /// ticket for any other name proves nothing here (CVE-2023-44981). The KDC decides which realms are trusted.
    ///
    /// # Errors
    /// [`Refusal`] for any other principal.
    ///
    /// Source: `SaslQuorumServerCallbackHandler.handleAuthorizeCallback`, ZooKeeper 3.9.5.
    pub fn check(&self, principal: &str) -> Result<(), Refusal> {
        let parts = Principal::parse(principal).filter(|parts| parts.realm.is_some());
        match parts.and_then(|parts| parts.host) {
            Some(host) if self.0.contains(host) => Ok(()),
            Some(_) => Err(Refusal::new(format!(
                "the host of \"{}\" is not a member's",
                principal.escape_debug()
            ))),
            None => Err(Refusal::new(format!(
                "the principal \"{}\" is not of the form service/host@REALM",
                principal.escape_debug()
            ))),
        }
    }
}

/// The realm of the servers that are dialed: the one that is set, or that of this server's own principal; `None`: the library
/// decides.
pub fn realm_of_servers<'t>(set: Option<&'t str>, own: Option<&'t str>) -> Option<&'t str> {
    set.or_else(|| own?.rsplit_once('@').map(|(_, realm)| realm))
}

/// The principal of a server that is dialed at `host`.
///
/// * `service_principal`: `service/host`; the host `_HOST` stands for the server that is dialed.
///
/// Source: `SecurityUtils.getServerPrincipal`, `SecurityUtils.createSaslClient`, ZooKeeper 3.9.5.
pub fn principal_of(service_principal: &str, host: &str, realm: Option<&str>) -> String {
    let host = host.to_lowercase();
    let name = match service_principal.split_once('/') {
        Some((service, "_HOST")) => format!("{service}/{host}"),
        _ => service_principal.to_owned(),
    };
    match realm {
        Some(realm) if !name.contains('@') => format!("{name}@{realm}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: Q-113 C-223
    #[test]
    fn host_of_the_service_principal_is_the_dialed_servers_in_lower_case() {
        for (service, realm, principal) in [
            ("zkquorum/_HOST", Some("R"), "zkquorum/zoo1.x@R"),
            ("zkquorum/zoo@Q", Some("R"), "zkquorum/zoo@Q"),
            ("zkquorum/localhost", Some("R"), "zkquorum/localhost@R"),
            ("zkquorum/_HOST", None, "zkquorum/zoo1.x"),
        ] {
            assert_eq!(principal_of(service, "Zoo1.X", realm), principal);
        }
    }

    // rows: C-223
    #[test]
    fn realm_of_servers_is_the_one_that_is_set_or_that_of_the_own_principal() {
        for (set, own, realm) in [
            (Some("S"), Some("learner/zoo1@R"), Some("S")),
            (Some("S"), None, Some("S")),
            (None, Some("learner/zoo1@R"), Some("R")),
            (None, Some("learner/zoo1"), None),
            (None, None, None),
        ] {
            assert_eq!(realm_of_servers(set, own), realm);
        }
    }

    /// CVE-2023-44981: a principal without a host was let in.
    // rows: Q-113
    #[test]
    fn principal_of_two_parts_or_of_another_host_is_no_server() {
        let zoo1 = MemberHosts::new(["zoo1".to_owned()].into());
        assert_eq!(zoo1.check("zkquorum/zoo1@R"), Ok(()));
        for name in ["zkquorum@R", "zoo1@R", "zkquorum/zoo2@R", "zkquorum/zoo1", "a/zoo1/b@R", ""] {
            assert!(zoo1.check(name).is_err(), "{name}");
            assert!(MemberHosts::default().check(name).is_err(), "{name}");
        }
        let zoo2 = MemberHosts::new(["zoo2".to_owned()].into());
        assert!(zoo2.check("zkquorum/zoo1@R").is_err(), "it is no longer a member");
        let both = MemberHosts::new(["zoo1".to_owned(), "zoo2".to_owned()].into());
        for name in ["zkquorum/zoo1@R", "zkquorum/zoo2@R"] {
            assert_eq!(both.check(name), Ok(()));
        }
    }

    // rows: Q-113
    #[test]
    fn service_and_realm_of_a_server_may_be_any_and_case_counts() {
        let hosts = MemberHosts::new(["zoo1".to_owned(), "Zoo2".to_owned()].into());
        for name in ["other/zoo1@R", "/zoo1@R", "zkquorum/zoo1@Q", "zkquorum/zoo1@", "a/Zoo2@R"] {
            assert_eq!(hosts.check(name), Ok(()), "{name}");
        }
        for name in ["zkquorum/ZOO1@R", "zkquorum/zoo2@R"] {
            let refusal =
                Refusal::new(format!("the host of \"{}\" is not a member's", name.escape_debug()));
            assert_eq!(hosts.check(name), Err(refusal));
        }
        let refusal = "the principal \"zoo1@R\" is not of the form service/host@REALM";
        assert_eq!(hosts.check("zoo1@R"), Err(Refusal::new(refusal)));
    }
}
