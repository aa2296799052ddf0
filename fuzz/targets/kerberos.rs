//! Any rules of `security.auth_to_local` and any name: rules are refused or applied, a short name has no `/` and no `@`, and rules that were
//! taken are taken again from their own text.

use oxkeeper::auth::kerberos::NameRules;
use oxkeeper::auth::principal::Principal;

pub fn target(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (rules, name) = text.split_once('\0').unwrap_or((text, "bob/host@R"));
    let Ok(rules) = NameRules::parse(rules) else { return };
    assert_eq!(NameRules::parse(rules.text()).as_ref(), Ok(&rules));
    let Some(principal) = Principal::parse(name) else { return };
    if let Some(short) = rules.short(principal, "R") {
        assert!(principal.realm.is_none() || !short.contains(['/', '@']));
    }
}
