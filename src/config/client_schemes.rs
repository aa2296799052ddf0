//! How clients can authenticate: the schemes of `auth` from the checked settings.

use super::checked_config::Config;
use super::sasl::Login;
use crate::auth::{SaslRules, Schemes};
use crate::model::Identity;

impl Config {
    /// The authentication schemes of clients.
    ///
    /// * `default_realm`: of the Kerberos library, if [`Config::needs_default_realm`]; empty: there is none.
    pub fn client_schemes(&self, default_realm: String) -> Schemes {
        let rules = &self.sasl_rules;
        Schemes {
            digest: self.digest_auth_enabled || self.providers.digest,
            algorithm: self.digest_algorithm,
            super_digest: self.super_digest.clone(),
            ensemble: self.providers.ensemble,
            ensemble_names: self.ensemble_names.clone(),
            key: self.providers.key,
            sasl: self.providers.sasl,
            sasl_rules: SaslRules {
                super_users: rules.super_users.clone(),
                any_user_is: rules.let_any_user_do.as_deref().map(|id| Identity::new("sasl", id)),
                allows_failed_clients: rules.allows_failed_clients,
                removes_host: rules.removes_host,
                removes_realm: rules.removes_realm,
                name_rules: rules.auth_to_local.clone(),
                default_realm,
            },
            x509: self.providers.x509,
            x509_super_user: self.client_tls.as_ref().and_then(|tls| tls.x509_super_user.clone()),
            required: self.providers.required.clone(),
        }
    }

    /// Whether the default realm of the Kerberos library counts: names with a realm may have to be shortened, or the settings ask
    /// for one.
    pub fn needs_default_realm(&self) -> bool {
        let may_have_realm = self.client_sasl.as_ref().is_some_and(|sasl| match &sasl.login {
            Login::Digest(login) => login.users.iter().any(|(user, _)| user.contains('@')),
            Login::Kerberos(_) => true,
        });
        may_have_realm || self.sasl_rules.requires_kerberos_config
    }
}
