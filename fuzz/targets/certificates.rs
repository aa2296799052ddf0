//! Any bytes as what a peer or a responder sends: a chain of certificates, a name, a revocation list, an OCSP answer; and any text
//! as an id of scheme x509. Everything is read or refused; nothing is trusted that no trusted key has signed.

use oxkeeper::auth::x509::path::{Check, Checked, Question, Signed, Trust, find, parse_chain};
use oxkeeper::auth::x509::revocation::{Pair, crl_status, ocsp_request, ocsp_status};
use oxkeeper::auth::x509::{Certificate, HostNames, Purpose, is_valid_name, name, subject};

/// Takes each signature for good or for bad.
struct Says(bool);

impl Check for Says {
    fn check(&self, _: &Signed<'_>) -> Checked {
        if self.0 { Checked::Good } else { Checked::Bad }
    }
}

pub fn target(input: &[u8]) {
    let _ = (name(input), subject(input), is_valid_name(&String::from_utf8_lossy(input)));
    // Certificates are divided by this mark; the first is trusted, the others are a chain.
    let parts: Vec<&[u8]> = split(input, b"--");
    let (anchor, chain) = (parts[0], &parts[1..]);
    let trust = Trust::new([anchor]);
    if let Ok(chain) = parse_chain(chain, 10, 32 << 10) {
        for (purpose, good) in
            [(Purpose::Client, true), (Purpose::Server, true), (Purpose::Client, false)]
        {
            let check = &Says(good);
            let (chain, trust) = (&chain[..], &trust);
            let question = Question {
                trust,
                chain,
                purpose,
                now: 1_795_694_400,
                names_are_checked: false,
                check,
            };
            let found = find(&question);
            assert!(good || found.is_err(), "a path without a signature");
        }
        for certificate in &chain {
            let names = HostNames::of(certificate);
            let _ = (
                names.fit("zk1.example.com"),
                names.fit("::1"),
                certificate.crl_urls(),
                certificate.ocsp_urls(),
                names.to_string(),
            );
        }
    }
    if let (Some(issuer), [answer, leaf, ..]) = (Certificate::parse(anchor), chain)
        && let Some(leaf) = Certificate::parse(leaf)
    {
        let pair = Pair { certificate: &leaf, issuer: &issuer };
        assert!(!ocsp_request(pair).is_empty());
        for answer in
            [crl_status, ocsp_status].map(|read| read(answer, pair, 1_798_286_400, &Says(true)))
        {
            let _ = answer;
        }
        assert!(crl_status(answer, pair, 1_798_286_400, &Says(false)).is_err());
        assert!(ocsp_status(answer, pair, 1_798_286_400, &Says(false)).is_err());
    }
}

fn split<'a>(mut bytes: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = bytes.windows(mark.len()).position(|window| window == mark) {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + mark.len()..];
    }
    parts.push(bytes);
    parts
}
