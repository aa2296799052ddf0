//! Names of Kerberos principals. Ids of scheme `sasl` have the same form, whatever the mechanism was.

/// `service[/host][@REALM]`, in its parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Principal<'n> {
    pub service: &'n str,
    /// The host; without a realm there is none.
    pub host: Option<&'n str>,
    pub realm: Option<&'n str>,
}

impl<'n> Principal<'n> {
    /// `None`: the name has an `@` and is not `service[/host]@REALM`. Without an `@` every name is one
    /// component, slashes and all.
    ///
    /// Source: `KerberosName`, ZooKeeper 3.9.5.
    pub fn parse(name: &'n str) -> Option<Self> {
        let Some((components, realm)) = name.split_once('@') else {
            return Some(Self { service: name, host: None, realm: None });
        };
        let (service, host) = match components.split_once('/') {
            Some((service, host)) => (service, Some(host)),
            None => (components, None),
        };
        let is_part = |part: &str| !part.contains(['/', '@']);
        let fits = is_part(realm) && host.is_none_or(is_part);
        fits.then_some(Self { service, host, realm: Some(realm) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: U-09 U-19
    #[test]
    fn names_are_split_as_java_splits_them() {
        for (name, service, host, realm) in [
            ("bob", "bob", None, None),
            ("", "", None, None),
            ("a/b/c", "a/b/c", None, None),
            ("bob@R", "bob", None, Some("R")),
            ("bob/h@R", "bob", Some("h"), Some("R")),
            ("/@", "", Some(""), Some("")),
            ("@", "", None, Some("")),
        ] {
            assert_eq!(Principal::parse(name), Some(Principal { service, host, realm }), "{name}");
        }
        for name in ["a/b/c@R", "bob@R@S", "bob@R/x", "a@b/c@R"] {
            assert_eq!(Principal::parse(name), None, "{name}");
        }
    }
}
