//! Hosts of peers: by address, by name, by the names of `server.N` lines.

use super::peer_check::*;
use super::verifier::Verifier;
use crate::auth::x509::test_certificates::{Draft, alternative_names};
use crate::auth::x509::{Peer, Refusal};
use crate::config::tls::{ClientAuth, TlsSettings, TlsVersion};
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::CertificateDer;
use std::net::IpAddr;

const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
const DNS: u8 = 0x82;
const ADDRESS: u8 = 0x87;

fn settings() -> TlsSettings {
    TlsSettings {
        prefix: "ssl.quorum.",
        versions: vec![TlsVersion::V13],
        cipher_suites: Vec::new(),
        key_store: None,
        trust_store: None,
        client_auth: ClientAuth::Need,
        verifies_host: true,
        verifies_client_host: true,
        allows_reverse_dns: false,
        crl: false,
        ocsp: false,
        detection_timeout_ms: 5000,
    }
}

/// The setting that refused, if one did.
async fn refused(check: &PeerCheck, peer: Peer<'_>, names: &[(u8, &[u8])]) -> Option<&'static str> {
    let draft = Draft::new("leaf", "root");
    let draft = draft.with(ALTERNATIVE_NAMES, false, &alternative_names(names));
    let der = CertificateDer::from(draft.der());
    let provider = aws_lc_rs::default_provider();
    let verifier = Verifier::new(&provider, std::slice::from_ref(&der), true).unwrap();
    let refused = check.check_peer(&verifier, peer, &[der]).await.err()?;
    assert_eq!(refused.subject, "CN=leaf");
    assert!(matches!(refused.reason, Refusal::OtherHost { .. }), "{refused}");
    refused.reason.setting()
}

#[tokio::test]
async fn a_dialed_peer_is_known_by_its_address_or_its_configured_name() {
    let check = PeerCheck::new(&settings());
    let peer = Peer::Dialed { address: "10.0.0.1".parse().unwrap(), host: "zk1" };
    assert_eq!(refused(&check, peer, &[(ADDRESS, &[10, 0, 0, 1])]).await, None);
    assert_eq!(refused(&check, peer, &[(DNS, b"zk1")]).await, None);
    assert_eq!(refused(&check, peer, &[(DNS, b"zk2")]).await, Some("hostnameVerification"));
    let unchecked = PeerCheck::new(&TlsSettings { verifies_host: false, ..settings() });
    assert_eq!(refused(&unchecked, peer, &[(DNS, b"zk2")]).await, None);
}

#[tokio::test]
async fn a_member_that_dialed_is_known_by_server_lines_that_resolve_to_it() {
    let check = PeerCheck::new(&settings());
    let hosts = ["zk9.invalid".to_owned(), "localhost".to_owned()];
    let (near, far): (IpAddr, IpAddr) = ("127.0.0.1".parse().unwrap(), "10.0.0.1".parse().unwrap());
    let dialed = |address| Peer::Member { address, hosts: &hosts };
    let setting = Some("clientHostnameVerification");
    assert_eq!(refused(&check, dialed(near), &[(ADDRESS, &[127, 0, 0, 1])]).await, None);
    assert_eq!(refused(&check, dialed(near), &[(DNS, b"localhost")]).await, None);
    assert_eq!(refused(&check, dialed(far), &[(DNS, b"localhost")]).await, setting);
    assert_eq!(refused(&check, dialed(near), &[(DNS, b"zk9.invalid")]).await, setting);
    assert_eq!(refused(&check, dialed(near), &[(DNS, b"another")]).await, setting);
}

#[tokio::test]
async fn a_client_is_known_by_its_own_address() {
    let check = PeerCheck::new(&settings());
    let client = |address: &str| Peer::Client { address: address.parse().unwrap() };
    let setting = Some("clientHostnameVerification");
    assert_eq!(refused(&check, client("10.0.0.1"), &[(ADDRESS, &[10, 0, 0, 1])]).await, None);
    assert_eq!(
        refused(&check, client("::ffff:10.0.0.1"), &[(ADDRESS, &[10, 0, 0, 1])]).await,
        None
    );
    assert_eq!(refused(&check, client("127.0.0.1"), &[(DNS, b"localhost")]).await, None);
    assert_eq!(refused(&check, client("::1"), &[(DNS, b"localhost")]).await, None);
    assert_eq!(refused(&check, client("10.0.0.1"), &[(DNS, b"localhost")]).await, setting);
    assert_eq!(refused(&check, client("10.0.0.1"), &[(ADDRESS, &[127, 0, 0, 1])]).await, setting);
}
