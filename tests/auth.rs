//! Authentication schemes, what ACLs permit, and which ACLs are accepted.

use oxkeeper::auth::{self, AclError, Proof, SaslRules, Schemes, user};
use oxkeeper::model::{Acl, Identity, perms};

fn permits(acl: &[Acl], wanted: i32, identities: &[Identity]) -> bool {
    auth::permits(&Schemes::default(), &acl.to_vec().into(), wanted, identities)
}

fn fix(asked: Vec<Acl>, identities: &[Identity]) -> Result<Vec<Acl>, AclError> {
    auth::fix(&Schemes::default(), asked, identities)
}

fn authenticate(schemes: &Schemes, scheme: &str, shown: Option<&[u8]>) -> Proof {
    auth::authenticate(schemes, scheme, shown, || None)
}

fn acl(perms: i32, scheme: &str, id: &str) -> Acl {
    Acl { perms, who: Identity::new(scheme, id) }
}

// rows: U-02 U-15
#[test]
fn acls_permit_by_scheme_and_permission_bit() {
    let local = [Identity::new("ip", "127.0.0.1")];
    assert!(permits(&[], perms::ADMIN, &local));
    assert!(permits(&[acl(perms::READ, "world", "anyone")], perms::READ, &[]));
    assert!(!permits(&[acl(perms::READ, "world", "anyone")], perms::WRITE, &local));
    assert!(permits(&[acl(perms::ALL, "ip", "127.0.0.0/8")], perms::WRITE, &local));
    assert!(!permits(&[acl(perms::ALL, "digest", "a:b")], perms::WRITE, &local));
    assert!(permits(
        &[acl(perms::ALL, "digest", "a:b")],
        perms::WRITE,
        &[Identity::new("super", "")]
    ));
}

// rows: U-04 U-05 U-07 P-60d C-212
#[test]
fn digest_auth_gives_an_id_and_the_super_digest_also_super() {
    let plain = Schemes::default();
    let with_super = Schemes {
        super_digest: Some("super:xQJmxLMiHGwaqBvst5y6rkB6HQs=".into()),
        ..Schemes::default()
    };
    let owner = Identity::new("digest", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
    let shown = Some(&b"super:admin"[..]);
    assert_eq!(authenticate(&plain, "digest", shown), Proof::Is(vec![owner.clone()]));
    let both = vec![Identity::new("super", ""), owner];
    assert_eq!(authenticate(&with_super, "digest", shown), Proof::Is(both.clone()));
    assert_eq!(both.iter().map(user).collect::<Vec<_>>(), ["", "super"]);
    assert_eq!(authenticate(&plain, "ip", None), Proof::Is(vec![]));
    let off = Schemes { digest: false, ..Schemes::default() };
    for (schemes, scheme, shown) in [
        (&plain, "digest", None),
        (&off, "digest", shown),
        (&plain, "world", shown),
        (&plain, "auth", shown),
        (&plain, "super", shown),
        (&plain, "", shown),
        (&plain, "ensemble", shown),
        (&plain, "key", shown),
    ] {
        assert_eq!(authenticate(schemes, scheme, shown), Proof::Fails, "{scheme}");
    }
}

// rows: U-03 U-14
#[test]
fn acls_are_validated_and_expanded_as_in_java() {
    let open = Acl::open();
    assert_eq!(fix(vec![open.clone(), open.clone()], &[]), Ok(vec![open]));
    let bad = [
        ("world", "bob"),
        ("super", ""),
        ("x509", "CN=a"),
        ("ip", "127.0.0.1/33"),
        ("digest", "nocolon"),
        ("auth", ""),
    ];
    for (scheme, id) in bad {
        assert_eq!(
            fix(vec![acl(31, scheme, id)], &[Identity::new("ip", "::1")]),
            Err(AclError::Invalid),
            "{scheme}:{id}"
        );
    }
    assert_eq!(fix(vec![], &[]), Err(AclError::Invalid));
    assert_eq!(fix(vec![acl(0, "world", "anyone")], &[]), Ok(vec![acl(0, "world", "anyone")]));
    let me = [Identity::new("digest", "a:b")];
    assert_eq!(fix(vec![acl(3, "auth", "ignored")], &me), Ok(vec![acl(3, "digest", "a:b")]));
    // `auth` expands to all authenticated ids, but not to the address or to super (U-03).
    let many = [
        Identity::new("ip", "::1"),
        Identity::new("super", ""),
        Identity::new("digest", "a:b"),
        Identity::new("digest", "c:d"),
    ];
    let all = vec![acl(3, "digest", "a:b"), acl(3, "digest", "c:d")];
    assert_eq!(fix(vec![acl(3, "auth", "")], &many), Ok(all));
}

// rows: C-211 U-01
#[test]
fn digest_entries_are_refused_and_permit_nothing_when_digest_is_disabled() {
    let off = Schemes { digest: false, ..Schemes::default() };
    let me = [Identity::new("digest", "a:b")];
    for entry in [acl(31, "digest", "a:b"), acl(31, "auth", "")] {
        assert_eq!(auth::fix(&off, vec![entry], &me), Err(AclError::Invalid));
    }
    assert!(!auth::permits(&off, &vec![acl(31, "digest", "a:b")].into(), perms::READ, &me));
}

#[test]
fn key_entries_permit_nothing_when_scheme_key_is_off() {
    let me = [Identity::new("key", "k")];
    let permits = |key| {
        let schemes = Schemes { key, ..Schemes::default() };
        auth::permits(&schemes, &vec![acl(31, "key", "k")].into(), perms::READ, &me)
    };
    assert_eq!([permits(false), permits(true)], [false, true]);
}

#[test]
fn access_list_is_too_long_by_what_its_entries_take_beside_their_text() {
    // 16 MiB may be stored. Each of these has 10 to 15 bytes of text, and 12 of permissions and lengths.
    let id = |n: u32| acl(31, "ip", &format!("10.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255));
    let long = (0..780_000).map(id).collect();
    assert_eq!(auth::fix(&Schemes::default(), long, &[]), Err(AclError::TooLong));
}

// rows: U-10 C-217
#[test]
fn ensemble_auth_compares_the_clients_name_with_the_configured_names() {
    let any = Schemes { ensemble: true, ..Schemes::default() };
    let named = Schemes { ensemble_names: Some(vec!["a".into(), "b".into()]), ..any.clone() };
    for (schemes, shown, expected) in [
        (&any, Some(&b"x"[..]), Proof::NoEnsembleNamed),
        (&named, None, Proof::NoEnsembleNamed),
        (&named, Some(b""), Proof::NoEnsembleNamed),
        (&named, Some(b"b"), Proof::EnsembleMatches),
        (&named, Some(b"x"), Proof::OtherEnsemble),
    ] {
        assert_eq!(authenticate(schemes, "ensemble", shown), expected, "{shown:?}");
    }
    assert_eq!(auth::fix(&any, vec![acl(31, "ensemble", "a")], &[]), Err(AclError::Invalid));
}

// rows: U-11
#[test]
fn key_auth_accepts_multiples_of_the_servers_key() {
    let schemes = Schemes { key: true, ..Schemes::default() };
    let id = Identity::new("key", "");
    let by_key = |key: Option<&str>, shown: &str| {
        let key = key.map(|key| key.as_bytes().to_vec());
        auth::authenticate(&schemes, "key", Some(shown.as_bytes()), || key)
    };
    for (key, shown) in [(None, "anything"), (Some("7"), "21"), (Some("0"), "3"), (Some("-1"), "5")]
    {
        assert_eq!(by_key(key, shown), Proof::Is(vec![id.clone()]), "{key:?} {shown}");
    }
    for (key, shown) in [(Some("7"), "22"), (Some("7"), "x"), (Some(""), "7"), (Some("7"), "")] {
        assert_eq!(by_key(key, shown), Proof::Fails, "{key:?} {shown}");
    }
    let mine = auth::fix(&schemes, vec![acl(31, "auth", "")], std::slice::from_ref(&id));
    assert_eq!(mine, Ok(vec![acl(31, "key", "")]));
    let guarded = vec![acl(31, "key", "")].into();
    assert!(auth::permits(&schemes, &guarded, perms::READ, &[id]));
}

/// Expanded, this ACL would take 2.4 GB.
#[test]
fn acl_size_is_checked_before_auth_entries_are_expanded() {
    let me = [Identity::new("digest", &"x".repeat(60_000))];
    let asked = |count: i32| (0..count).map(|n| acl(31 + (n << 5), "auth", "")).collect();
    assert_eq!(fix(asked(40_000), &me), Err(AclError::TooLong));
    assert_eq!(fix(asked(279), &me).map(|list| list.len()), Ok(279));
    assert_eq!(fix(asked(280), &me), Err(AclError::TooLong));
    assert_eq!(fix(asked(40_000), &[]), Err(AclError::Invalid));
}

fn with_both() -> Schemes {
    Schemes { sasl: true, x509: true, ..Schemes::default() }
}

// rows: U-03 U-08 U-09
#[test]
fn sasl_and_x509_entries_need_their_provider_and_a_name_of_its_form() {
    let accepts = |schemes: &Schemes, scheme: &str, id: &str| {
        auth::fix(schemes, vec![acl(31, scheme, id)], &[]).is_ok()
    };
    for (scheme, id, is_valid) in [
        ("sasl", "bob", true),
        ("sasl", "", true),
        ("sasl", "cli/h@R", true),
        ("sasl", "a/b/c@R", false),
        ("sasl", "bob@R@S", false),
        ("x509", "CN=a,O=b", true),
        ("x509", "cn=a", true),
        ("x509", "CN=a, O=b", true),
        ("x509", "a", false),
    ] {
        assert_eq!(accepts(&with_both(), scheme, id), is_valid, "{scheme}:{id}");
        assert!(!accepts(&Schemes::default(), scheme, id), "{scheme}:{id} without a provider");
    }
    let identities = [
        Identity::new("ip", "::1"),
        Identity::new("super", "CN=a"),
        Identity::new("x509", "CN=a"),
        Identity::new("sasl", "bob"),
    ];
    let own = vec![acl(1, "x509", "CN=a"), acl(1, "sasl", "bob")];
    assert_eq!(auth::fix(&with_both(), vec![acl(1, "auth", "")], &identities), Ok(own));
    let one = Schemes { sasl: true, ..Schemes::default() };
    let own = vec![acl(1, "sasl", "bob")];
    assert_eq!(auth::fix(&one, vec![acl(1, "auth", "")], &identities), Ok(own));
}

// rows: U-08 U-09
#[test]
fn sasl_and_x509_entries_permit_their_own_id_alone() {
    let entry = |scheme: &str, id: &str| vec![acl(perms::READ, scheme, id)].into();
    let permits = |schemes: &Schemes, scheme: &str, listed: &str, id: &str| {
        auth::permits(schemes, &entry(scheme, listed), perms::READ, &[Identity::new(scheme, id)])
    };
    let both = with_both();
    assert!(permits(&both, "sasl", "bob", "bob") && permits(&both, "x509", "CN=a", "CN=a"));
    for (scheme, listed, id) in [
        ("sasl", "bob", "Bob"),
        ("sasl", "bob", "bob@R"),
        ("sasl", "super", "bob"),
        ("x509", "cn=a", "CN=a"),
        ("x509", "CN=a, O=b", "CN=a,O=b"),
        ("x509", "CN=a", "super"),
    ] {
        assert!(!permits(&both, scheme, listed, id), "{scheme}:{listed} for {id}");
    }
    assert!(!permits(&Schemes::default(), "sasl", "bob", "bob"), "without a provider");
    assert!(!permits(&Schemes::default(), "x509", "CN=a", "CN=a"), "without a provider");
    let of_x509 = [Identity::new("x509", "bob")];
    assert!(!auth::permits(&both, &entry("sasl", "bob"), perms::READ, &of_x509));
}

// rows: U-08 U-09 C-79 C-214
#[test]
fn client_named_super_and_the_super_subject_pass_every_entry_of_their_scheme() {
    let rules =
        SaslRules { any_user_is: Some(Identity::new("sasl", "any")), ..SaslRules::default() };
    let schemes =
        Schemes { x509_super_user: Some("CN=root".to_owned()), sasl_rules: rules, ..with_both() };
    let long: Vec<Acl> = (0..20).map(|n| acl(perms::READ, "sasl", &format!("u{n}"))).collect();
    let permits = |list: Vec<Acl>, wanted: i32, scheme: &str, id: &str| {
        auth::permits(&schemes, &list.into(), wanted, &[Identity::new(scheme, id)])
    };
    let entry = |scheme: &str, id: &str| vec![acl(perms::READ, scheme, id)];
    assert!(permits(entry("sasl", "bob"), perms::READ, "sasl", "super"));
    assert!(permits(long, perms::READ, "sasl", "super"));
    assert!(!permits(entry("sasl", "bob"), perms::WRITE, "sasl", "super"));
    assert!(!permits(entry("x509", "CN=a"), perms::READ, "sasl", "super"));
    assert!(permits(entry("x509", "CN=a"), perms::READ, "x509", "CN=root"));
    assert!(!permits(entry("sasl", "bob"), perms::READ, "x509", "CN=root"));
    assert!(permits(entry("sasl", "any"), perms::READ, "sasl", "bob"), "letAnySaslUserDoX");
    assert!(!permits(entry("sasl", "any"), perms::READ, "x509", "bob"));
    assert!(!permits(entry("sasl", "bob"), perms::READ, "sasl", "any"));
}

// rows: P-24 U-04 U-08 C-214
#[test]
fn certificate_gives_its_subject_and_super_before_it() {
    let schemes = Schemes { x509_super_user: Some("CN=root".to_owned()), ..with_both() };
    let id = |scheme: &str, id: &str| Identity::new(scheme, id);
    assert_eq!(schemes.of_certificate("CN=a"), [id("x509", "CN=a")]);
    let both = [id("super", "CN=root"), id("x509", "CN=root")];
    assert_eq!(schemes.of_certificate("CN=root"), both);
    assert_eq!(both.iter().map(user).collect::<Vec<_>>(), ["", "CN=root"]);
    assert_eq!(Schemes::default().of_certificate("CN=a"), []);
}

// rows: U-18 U-19
#[test]
fn sasl_names_become_ids_by_the_rules() {
    let id =
        |rules: &SaslRules, name: &str| rules.identities(name).map(|ids| ids[0].id.to_string());
    let rules = SaslRules::default();
    assert_eq!(id(&rules, "bob"), Ok("bob".to_owned()));
    assert_eq!(id(&rules, "a/b"), Ok("a/b".to_owned()));
    assert_eq!(id(&rules, "bob@R"), Ok("bob@R".to_owned()), "no rule fits: the full name");
    assert!(id(&rules, "bob@R@S").is_err());
}
