//! Settings that this server accepts although they leave a security gap, as ZooKeeper does: one
//! line for each at start, with the setting that closes the gap.

use super::sasl::{KerberosLogin, KeyTab, Login};
use super::tls::{ClientAuth, QuorumTls, StorePassword, TlsSettings};
use super::{Config, logins};
use std::path::{Path, PathBuf};

/// The number of the user that may read every file.
pub const ROOT: u32 = 0;

/// What the settings alone leave open; `skipACL` and the like are among the warnings of the configuration.
pub fn risks(config: &Config) -> Vec<String> {
    let mut risks = Vec::new();
    if let Some(tls) = &config.quorum_tls {
        risks.extend(names(tls).map(str::to_owned));
        risks.extend(client_auth(&tls.settings));
        if tls.unified {
            risks.push(
                "connections between servers are accepted without TLS too; once all servers dial with TLS \
                 (sslQuorum=true), set portUnification=false"
                    .to_owned(),
            );
        }
    }
    if let Some(tls) = &config.client_tls {
        risks.extend(client_auth(&tls.settings));
        if tls.unified {
            risks.push(
                "clientPort accepts clients without TLS too; once all clients use TLS, set client.portUnification=false and \
                 secureClientPort"
                    .to_owned(),
            );
        }
    }
    let admin = config.admin.as_ref().and_then(|admin| admin.tls.as_ref());
    if admin.is_some_and(|tls| !tls.is_forced) {
        risks.push(
            "AdminServer accepts connections without TLS, and without a certificate, too; once all its clients use https, set \
             admin.forceHttps=true"
                .to_owned(),
        );
    }
    clients(config, &mut risks);
    servers(config, &mut risks);
    risks
}

/// How names of servers are checked.
///
/// Between servers nothing is compared in fips-mode, and a reverse lookup trusts the DNS server that answers for the address (CVE-2026-24281).
fn names(tls: &QuorumTls) -> Option<&'static str> {
    if tls.fips_mode {
        Some(
            "names of servers are not compared with their certificates, so any certificate that is trusted passes as any server; \
             give each certificate its server's host as in server.N, then set fips-mode=false",
        )
    } else if !tls.settings.verifies_host {
        Some(
            "names of servers are not compared with their certificates, so any certificate that is trusted passes as any server; \
             set ssl.quorum.hostnameVerification=true",
        )
    } else if !tls.settings.verifies_client_host {
        Some(
            "the address of a server that dials is not compared with its certificate; \
             set ssl.quorum.clientHostnameVerification=true",
        )
    } else if tls.settings.allows_reverse_dns {
        Some(
            "a server that dials is accepted by the name that a reverse lookup gives for its address, and the owner of the address chooses that name; \
             set ssl.quorum.allowReverseDnsLookup=false",
        )
    } else {
        None
    }
}

fn client_auth(tls: &TlsSettings) -> Option<String> {
    let (prefix, those) = match tls.prefix {
        "ssl." => ("ssl.", "clients"),
        quorum => (quorum, "servers that dial"),
    };
    match tls.client_auth {
        ClientAuth::Need => None,
        ClientAuth::Want => {
            Some(format!("{those} without a certificate are served; set {prefix}clientAuth=need"))
        }
        ClientAuth::None => {
            Some(format!("{those} need no certificate; set {prefix}clientAuth=need to require one"))
        }
    }
}

fn clients(config: &Config, risks: &mut Vec<String>) {
    let rules = &config.sasl_rules;
    if let Some(user) = &rules.let_any_user_do {
        risks.push(format!(
            "every client with a sasl id has the permissions of sasl:{user}; remove letAnySaslUserDoX"
        ));
    }
    let Some(sasl) = &config.client_sasl else {
        // A JAAS file without that section has a warning.
        if config.providers.sasl && config.jaas_file.is_none() {
            let why = logins::lack(None);
            risks.push(format!(
                "authProvider.N names scheme sasl, and no client can authenticate by SASL: {why}"
            ));
        }
        return;
    };
    // A scheme that is required overrules allowSaslFailedClients.
    if !config.providers.required.iter().any(|scheme| scheme == "sasl") {
        risks.push(
            "clients that do not authenticate by SASL are served, and may do what ACLs allow to anyone; \
             set sessionRequireClientSASLAuth=true"
                .to_owned(),
        );
        if rules.allows_failed_clients {
            risks.push(
                "a client that failed to authenticate by SASL is served without its id; remove allowSaslFailedClients"
                    .to_owned(),
            );
        }
    }
    if let Login::Digest(login) = &sasl.login
        && login.users.iter().any(|(user, _)| user == "super")
    {
        risks.push(format!(
            "user super of section {} passes every ACL entry of scheme sasl; remove user_super from the JAAS file, \
             and name superusers with superUser",
            sasl.section
        ));
    }
    let has_plain =
        config.client_tls.as_ref().is_none_or(|tls| tls.unified) || config.client_port.is_some();
    if has_plain {
        risks.push(plain_sasl(
            "clients",
            &sasl.login,
            "secureClientPort alone, without clientPort",
        ));
    }
}

fn servers(config: &Config, risks: &mut Vec<String>) {
    let Some(sasl) = &config.quorum_sasl else { return };
    if !sasl.server_requires {
        risks.push(
            "servers that do not authenticate by SASL are accepted; once all servers have \
             quorum.auth.learnerRequireSasl=true, set quorum.auth.serverRequireSasl=true"
                .to_owned(),
        );
    }
    if sasl.canonicalizes_hosts {
        risks.push(
            "servers are known to Kerberos by the names that name servers give for their addresses; write these names in the server.N lines, \
             and remove kerberos.canonicalizeHostNames"
                .to_owned(),
        );
    }
    if config.quorum_tls.as_ref().is_none_or(|tls| tls.unified || !tls.dials) {
        risks.push(plain_sasl("servers", &sasl.server, "sslQuorum=true, without portUnification"));
    }
}

/// The risk of SASL without TLS: it authenticates, and protects nothing that is sent afterwards.
fn plain_sasl(those: &str, login: &Login, remedy: &str) -> String {
    let weak = match login {
        Login::Digest(_) => {
            ", and an attacker who reads the exchange can guess its passwords offline"
        }
        Login::Kerberos(_) => "",
    };
    format!(
        "SASL of {those} without TLS only authenticates: what is sent afterwards can be read and changed{weak}; \
         use {remedy}"
    )
}

/// Files that hold keys or passwords, each with the setting that names it.
pub fn secret_files(config: &Config) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    let clients = config.client_tls.as_ref().map(|tls| &tls.settings);
    let servers = config.quorum_tls.as_ref().map(|tls| &tls.settings);
    for tls in clients.into_iter().chain(servers).chain(&http_tls(config)) {
        for (name, store) in [("keyStore", &tls.key_store), ("trustStore", &tls.trust_store)] {
            let Some(store) = store else { continue };
            if name == "keyStore" {
                files.push((format!("{}{name}.location", tls.prefix), store.path.clone()));
            }
            if let StorePassword::File(path) = &store.password {
                files.push((format!("{}{name}.passwordPath", tls.prefix), path.clone()));
            }
        }
    }
    if let Some(path) = &config.jaas_file {
        files.push(("java.security.auth.login.config".to_owned(), path.clone()));
    }
    let client = config.client_sasl.iter().map(|sasl| &sasl.login);
    let quorum = config.quorum_sasl.iter().flat_map(|sasl| [&sasl.learner, &sasl.server]);
    for login in client.chain(quorum) {
        let Login::Kerberos(KerberosLogin { key_tab: Some(KeyTab::File(path)), .. }) = login else {
            continue;
        };
        if !files.iter().any(|(_, other)| other == path) {
            files.push(("keyTab".to_owned(), path.clone()));
        }
    }
    files
}

/// The settings of HTTPS whose stores no other TLS has.
pub(super) fn http_tls(config: &Config) -> Vec<TlsSettings> {
    let admin = config.admin.as_ref().and_then(|admin| admin.tls.as_ref());
    let admin = admin.filter(|_| config.quorum_tls.is_none()).map(|tls| tls.settings.clone());
    let https = config.metrics.prometheus.as_ref().and_then(|metrics| metrics.https.as_ref());
    admin.into_iter().chain(https.map(|https| https.settings.clone())).collect()
}

/// Whose a file is, and who may do what with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileRights {
    /// Type and permissions of the file, as in `st_mode`.
    pub mode: u32,
    /// The owner's number.
    pub owner: u32,
    /// The number of the user that this process runs as.
    pub user: u32,
}

/// The line for a file with keys or passwords that others can read or write; `None` if no other user can.
pub fn exposed(setting: &str, path: &Path, rights: FileRights) -> Option<String> {
    let (path, FileRights { mode, owner, user }) = (path.display(), rights);
    // Packages and Kubernetes give files to the server by its group, so the group may read.
    let can = match mode {
        _ if mode & 0o002 != 0 => "everybody can write",
        _ if mode & 0o004 != 0 => "everybody can read",
        _ if mode & 0o020 != 0 => "its group can write",
        _ => return None,
    };
    // The server could not read the file of another user any more. Root can.
    let own = if user == ROOT || user == owner {
        String::new()
    } else {
        format!("chown {user} {path} && ")
    };
    Some(format!("{setting}={path} holds secrets, and {can} it; {own}chmod 600 {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_others_can_read_is_named() {
        let rights = |mode| FileRights { mode, owner: 7, user: 7 };
        let risk_of = |mode| exposed("keyTab", Path::new("/k"), rights(mode));
        for fine in [0o100_600, 0o100_400, 0o100_640, 0o100_440] {
            assert_eq!(risk_of(fine), None, "{fine:o}");
        }
        for (mode, can) in [
            (0o100_644, "everybody can read it"),
            (0o100_604, "everybody can read it"),
            (0o100_666, "everybody can write it"),
            (0o100_660, "its group can write it"),
        ] {
            let line = risk_of(mode).unwrap_or_default();
            assert_eq!(line, format!("keyTab=/k holds secrets, and {can}; chmod 600 /k"));
        }
        let of = |owner, user| {
            exposed("keyTab", Path::new("/k"), FileRights { mode: 0o644, owner, user }).unwrap()
        };
        assert!(of(ROOT, 7).ends_with("; chown 7 /k && chmod 600 /k"));
        assert!(of(7, ROOT).ends_with("it; chmod 600 /k"), "root reads every file");
    }
}
