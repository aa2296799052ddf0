//! Which chains hold, and the reason for each that does not.

use super::certificate::{Certificate, oid};
use super::path::*;
use super::refusal::{Purpose, Refusal};
use super::test_certificates::{Draft, ECDSA_SHA1, NOW, RSA_KEY, authority, purposes, tlv, usage};

const CODE_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 3];

/// The key of an issuer is its signature.
struct KeyIsSignature;

impl Check for KeyIsSignature {
    fn check(&self, signed: &Signed<'_>) -> Checked {
        if signed.signature == signed.key { Checked::Good } else { Checked::Bad }
    }
}

fn judged(trusted: &[Draft], chain: &[Draft], purpose: Purpose) -> Result<Vec<usize>, Refusal> {
    let trusted: Vec<Vec<u8>> = trusted.iter().map(Draft::der).collect();
    let trust = Trust::new(trusted.iter().map(|der| &**der));
    let chain: Vec<Vec<u8>> = chain.iter().map(Draft::der).collect();
    let chain: Vec<&[u8]> = chain.iter().map(|der| &**der).collect();
    let chain = parse_chain(&chain, 10, 32 << 10)?;
    let check = &KeyIsSignature;
    let question = Question {
        trust: &trust,
        chain: &chain,
        purpose,
        now: NOW,
        names_are_checked: false,
        check,
    };
    find(&question).map(|path| path.certificates)
}

/// Judges the chain of a client below a root.
fn client(chain: &[Draft]) -> Result<Vec<usize>, Refusal> {
    judged(&[Draft::authority("root", "root")], chain, Purpose::Client)
}

fn leaf() -> Draft {
    Draft::new("leaf", "root")
}

fn subject() -> String {
    "CN=leaf".to_owned()
}

#[test]
fn leaves_of_all_versions_under_a_ca_are_trusted() {
    for version in 1..=3 {
        assert_eq!(client(&[Draft { version, ..leaf() }]), Ok(vec![0]), "version {version}");
    }
    let with_ca = leaf().with(oid::BASIC_CONSTRAINTS, true, &authority(None));
    assert_eq!(client(&[with_ca]), Ok(vec![0]), "a leaf may be a CA");
}

#[test]
fn intermediates_may_come_in_any_order() {
    let chain = [
        Draft::new("leaf", "low"),
        Draft::authority("high", "root"),
        Draft::authority("other", "root"),
        Draft::authority("low", "high"),
    ];
    assert_eq!(client(&chain), Ok(vec![0, 3, 1]));
}

#[test]
fn a_chain_without_a_trusted_end_is_refused() {
    let unknown = |subject: &str, issuer: &str| {
        let (subject, issuer) = (format!("CN={subject}"), format!("CN={issuer}"));
        Err(Refusal::UnknownIssuer { subject, issuer })
    };
    assert_eq!(client(&[Draft::new("leaf", "stranger")]), unknown("leaf", "stranger"));
    let chain = [Draft::new("leaf", "low"), Draft::authority("low", "stranger")];
    assert_eq!(client(&chain), unknown("low", "stranger"));
    assert_eq!(
        client(&[Draft::authority("a", "b"), Draft::authority("b", "a")]),
        unknown("b", "a")
    );
    assert_eq!(client(&[Draft::authority("alone", "alone")]), unknown("alone", "alone"));
    assert_eq!(judged(&[], &[leaf()], Purpose::Client), unknown("leaf", "root"));
}

#[test]
fn a_leaf_outside_its_dates_is_refused() {
    let expired = Draft { until: NOW - 1, ..leaf() };
    assert_eq!(client(&[expired]), Err(Refusal::Expired { subject: subject(), until: NOW - 1 }));
    let early = Draft { from: NOW + 1, ..leaf() };
    assert_eq!(client(&[early]), Err(Refusal::NotYetValid { subject: subject(), from: NOW + 1 }));
    assert_eq!(client(&[Draft { from: NOW, until: NOW, ..leaf() }]), Ok(vec![0]));
}

#[test]
fn an_intermediate_outside_its_dates_is_refused() {
    let low = Draft { until: NOW - 1, ..Draft::authority("low", "root") };
    let refusal = Refusal::Expired { subject: "CN=low".to_owned(), until: NOW - 1 };
    assert_eq!(client(&[Draft::new("leaf", "low"), low]), Err(refusal));
}

#[test]
fn the_dates_of_a_trusted_ca_are_not_looked_at() {
    let root = Draft { until: NOW - 1, ..Draft::authority("root", "root") };
    assert_eq!(judged(&[root], &[leaf()], Purpose::Client), Ok(vec![0]));
}

#[test]
fn leaf_is_refused_for_a_purpose_that_it_does_not_have() {
    let with = |purpose: &[u8]| leaf().with(oid::EXTENDED_KEY_USAGE, false, &purposes(&[purpose]));
    let root = [Draft::authority("root", "root")];
    let table = [
        (CLIENT, Purpose::Client, true),
        (CLIENT, Purpose::Server, false),
        (SERVER, Purpose::Client, false),
        (SERVER, Purpose::Server, true),
        (ANY_PURPOSE, Purpose::Client, true),
        (ANY_PURPOSE, Purpose::Server, true),
        (NETSCAPE_SERVER, Purpose::Server, true),
        (NETSCAPE_SERVER, Purpose::Client, false),
        (CODE_SIGNING, Purpose::Client, false),
        (CODE_SIGNING, Purpose::Server, false),
    ];
    for (oid, purpose, fits) in table {
        let refusal = Refusal::OtherPurpose { subject: subject(), purpose };
        let expected = if fits { Ok(vec![0]) } else { Err(refusal) };
        assert_eq!(judged(&root, &[with(oid)], purpose), expected, "{oid:?} {purpose:?}");
    }
}

#[test]
fn a_leaf_of_another_netscape_type_is_refused() {
    let server = leaf().with(oid::NETSCAPE_TYPE, false, &usage(&[1]));
    let root = [Draft::authority("root", "root")];
    assert_eq!(judged(&root, std::slice::from_ref(&server), Purpose::Server), Ok(vec![0]));
    let refusal = Refusal::OtherPurpose { subject: subject(), purpose: Purpose::Client };
    assert_eq!(judged(&root, &[server], Purpose::Client), Err(refusal));
}

#[test]
fn a_leaf_that_may_not_sign_is_refused() {
    let encipher = leaf().with(oid::KEY_USAGE, true, &usage(&[2]));
    assert_eq!(client(&[encipher]), Err(Refusal::NoSignatures { subject: subject() }));
    let sign = leaf().with(oid::KEY_USAGE, true, &usage(&[0, 2]));
    assert_eq!(client(&[sign]), Ok(vec![0]));
}

#[test]
fn an_issuer_in_the_chain_has_to_be_a_ca() {
    let refused = |low: Draft| client(&[Draft::new("leaf", "low"), low]);
    let issuer = || "CN=low".to_owned();
    assert_eq!(refused(Draft::new("low", "root")), Err(Refusal::IssuerIsNoCa { issuer: issuer() }));
    for version in [1, 2] {
        let old = Draft { version, ..Draft::new("low", "root") };
        assert_eq!(refused(old), Err(Refusal::IssuerIsNoCa { issuer: issuer() }), "{version}");
    }
    let silent = Draft::authority("low", "root").with(oid::KEY_USAGE, true, &usage(&[0, 6]));
    assert_eq!(refused(silent), Err(Refusal::IssuerMayNotSign { issuer: issuer() }));
    let signing = Draft::authority("low", "root").with(oid::KEY_USAGE, true, &usage(&[5]));
    assert_eq!(refused(signing), Ok(vec![0, 1]));
}

#[test]
fn chain_longer_than_path_len_is_refused() {
    let limited = |name: &str, issuer: &str, max| {
        Draft::new(name, issuer).with(oid::BASIC_CONSTRAINTS, true, &authority(Some(max)))
    };
    let chain = |max| {
        [Draft::new("leaf", "low"), Draft::authority("low", "high"), limited("high", "root", max)]
    };
    let refusal = Refusal::PathTooLong { issuer: "CN=high".to_owned(), max: 0 };
    assert_eq!(client(&chain(0)), Err(refusal));
    assert_eq!(client(&chain(1)), Ok(vec![0, 1, 2]));
    assert_eq!(client(&[Draft::new("leaf", "low"), limited("low", "root", 0)]), Ok(vec![0, 1]));
}

#[test]
fn a_wrong_signature_is_refused() {
    let forged = Draft { key: b"another".to_vec(), ..Draft::authority("root", "root") };
    let refusal = Refusal::BadSignature { subject: subject() };
    assert_eq!(judged(std::slice::from_ref(&forged), &[leaf()], Purpose::Client), Err(refusal));
    let both = [forged, Draft::authority("root", "root")];
    assert_eq!(judged(&both, &[leaf()], Purpose::Client), Ok(vec![0]), "an old and a new key");
}

#[test]
fn weak_signatures_and_keys_are_refused() {
    let weak = Draft { signature_algorithm: ECDSA_SHA1, ..leaf() };
    let refusal = Refusal::WeakSignature { subject: subject(), algorithm: "SHA-1" };
    assert_eq!(client(&[weak]), Err(refusal));
    let rsa = |bits: usize| {
        let modulus = [&[0, 0x80][..], &vec![1; bits / 8 - 1]].concat();
        let key = tlv(0x30, &[&tlv(2, &[&modulus]), &tlv(2, &[&[1, 0, 1]])]);
        Draft { key_algorithm: RSA_KEY, key, ..Draft::new("leaf", "root") }.der()
    };
    let checked = |der: &[u8]| check_key(&Certificate::parse(der).unwrap());
    assert_eq!(checked(&rsa(1024)), Err(Refusal::ShortKey { subject: subject(), bits: 1024 }));
    assert_eq!(checked(&rsa(2048)), Ok(()));
}

#[test]
fn certificate_with_an_unknown_critical_extension_is_refused() {
    let unknown = [0x2a, 3, 4];
    let refusal = |subject: &str| Refusal::UnknownExtension {
        subject: format!("CN={subject}"),
        oid: "1.2.3.4".to_owned(),
    };
    assert_eq!(client(&[leaf().with(&unknown, true, &[])]), Err(refusal("leaf")));
    assert_eq!(client(&[leaf().with(&unknown, false, &[])]), Ok(vec![0]));
    let low = Draft::authority("low", "root").with(&unknown, true, &[]);
    assert_eq!(client(&[Draft::new("leaf", "low"), low]), Err(refusal("low")));
}

#[test]
fn critical_policies_are_taken_unless_one_is_required() {
    let policies = tlv(0x30, &[&tlv(0x30, &[&tlv(6, &[&[0x2a, 3, 4]])])]);
    let constraints = |tag| tlv(0x30, &[&tlv(tag, &[&[0]])]);
    for (extension, value) in [
        (oid::CERTIFICATE_POLICIES, policies),
        (oid::INHIBIT_ANY_POLICY, tlv(2, &[&[0]])),
        (oid::POLICY_CONSTRAINTS, constraints(0x81)),
    ] {
        assert_eq!(client(&[leaf().with(extension, true, &value)]), Ok(vec![0]));
        let low = Draft::authority("low", "root").with(extension, true, &value);
        assert_eq!(client(&[Draft::new("leaf", "low"), low]), Ok(vec![0, 1]));
    }
    for value in [constraints(0x80), tlv(0x30, &[&constraints(0x81)]), tlv(0x30, &[])] {
        let required = leaf().with(oid::POLICY_CONSTRAINTS, true, &value);
        let refusal = Refusal::UnknownExtension { subject: subject(), oid: "2.5.29.36".to_owned() };
        assert_eq!(client(&[required]), Err(refusal));
    }
}

#[test]
fn all_trusted_cas_of_one_name_count() {
    let old = Draft { key: b"old".to_vec(), ..Draft::authority("root", "root") };
    let new = Draft::authority("root", "root");
    assert_eq!(judged(&[new.clone(), old.clone()], &[leaf()], Purpose::Client), Ok(vec![0]));
    assert_eq!(judged(&[old, new], &[leaf()], Purpose::Client), Ok(vec![0]));
}

#[test]
fn chain_with_name_constraints_is_refused() {
    let constrained = |name: &str| {
        Draft::authority(name, "root").with(oid::NAME_CONSTRAINTS, true, &tlv(0x30, &[]))
    };
    let refusal = |issuer: &str| Err(Refusal::NameConstraints { issuer: format!("CN={issuer}") });
    let chain = [Draft::new("leaf", "low"), constrained("low")];
    assert_eq!(client(&chain), refusal("low"));
    assert_eq!(judged(&[constrained("root")], &[leaf()], Purpose::Client), refusal("root"));
}

#[test]
fn trusted_version_3_certificate_without_ca_true_issues_nothing() {
    let refusal = Refusal::AnchorIsNoCa { issuer: "CN=root".to_owned() };
    let no_ca = Draft::new("root", "root");
    assert_eq!(judged(std::slice::from_ref(&no_ca), &[leaf()], Purpose::Client), Err(refusal));
    let old = Draft { version: 1, ..no_ca };
    assert_eq!(judged(&[old], &[leaf()], Purpose::Client), Ok(vec![0]));
    let silent = Draft::authority("root", "root").with(oid::KEY_USAGE, true, &usage(&[6]));
    let refusal = Refusal::IssuerMayNotSign { issuer: "CN=root".to_owned() };
    assert_eq!(judged(&[silent], &[leaf()], Purpose::Client), Err(refusal));
}

#[test]
fn a_certificate_of_the_trust_store_is_pinned() {
    let pinned = Draft::new("leaf", "anyone").der();
    let trust = Trust::new([&*pinned]);
    let pins = |draft: Draft| trust.pins(&Certificate::parse(&draft.der()).unwrap());
    assert!(pins(Draft::new("leaf", "anyone")));
    assert!(pins(Draft { until: NOW, ..Draft::new("leaf", "another") }), "its name and key");
    assert!(!pins(Draft { key: b"another".to_vec(), ..Draft::new("leaf", "anyone") }));
    assert!(!pins(Draft { key: b"leaf".to_vec(), ..Draft::new("another", "anyone") }));
}

#[test]
fn a_chain_is_limited_in_number_and_bytes() {
    let chain = vec![leaf().der(); 11];
    let chain: Vec<&[u8]> = chain.iter().map(|der| &**der).collect();
    let refused = |max, len_max| parse_chain(&chain, max, len_max).err();
    assert_eq!(refused(10, 32 << 10), Some(Refusal::TooManyCertificates { count: 11, max: 10 }));
    assert_eq!(refused(11, 1000), Some(Refusal::TooLong { max: 1000 }));
    assert_eq!(refused(11, 32 << 10), None);
    assert_eq!(parse_chain(&[chain[0], &[]], 10, 1000).err(), Some(Refusal::Malformed { at: 2 }));
}

#[test]
fn a_web_of_certificates_costs_a_limited_number_of_signatures() {
    // All have one name, so that each may have issued each; no signature is right.
    let knot = |key: u8| Draft { key: vec![key], ..Draft::authority("knot", "knot") };
    let chain: Vec<Draft> = (0..10).map(knot).collect();
    let outcome = judged(&[], &chain, Purpose::Client);
    assert!(matches!(outcome, Err(Refusal::BadSignature { .. })), "{outcome:?}");
    // Here all signatures are right, and the trusted one is missing.
    let knot = |_| Draft { key: b"knot".to_vec(), ..Draft::authority("knot", "knot") };
    let chain: Vec<Draft> = (0..10).map(knot).collect();
    assert_eq!(judged(&[], &chain, Purpose::Client), Err(Refusal::TooManyPaths));
}
