//! The bytes by which entries `auth` of access lists make a transaction longer than its request.

use super::Limits;
use crate::model::{Identity, op};

/// An entry's scheme as it is encoded, with its length.
const AUTH: &[u8] = b"\0\0\0\x04auth";

/// Bytes that the transaction of a write has beyond the request, at most: each entry `auth` is replaced by all identities that
/// authenticate the client. Data that looks like an entry counts as one.
pub fn expansion(limits: &Limits, kind: i32, body: &[u8], identities: &[Identity]) -> usize {
    let has_lists = matches!(
        kind,
        op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL | op::SET_ACL | op::MULTI
    );
    let stored = if has_lists { limits.schemes.proved_len(identities) } else { 0 };
    if stored == 0 {
        return 0;
    }
    let entries = body.windows(AUTH.len()).filter(|bytes| *bytes == AUTH).count();
    // The log takes no longer entry.
    (entries * stored).min(2 * limits.frame_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth;
    use crate::model::Acl;

    fn stored_len(list: &[Acl]) -> usize {
        list.iter().map(|entry| 12 + entry.who.text_len()).sum()
    }

    #[test]
    fn expansion_is_at_least_what_auth_entries_add_to_a_list() {
        let limits = Limits::default();
        let id = |scheme, len: usize| Identity::new(scheme, &format!("u:{}", "x".repeat(len)));
        let identities = [id("ip", 5), id("digest", 60_000), id("digest", 10)];
        for count in [0, 1, 17] {
            let asked: Vec<Acl> = (0..count)
                .map(|n| Acl { perms: 31 + (n << 5), who: Identity::new("auth", "") })
                .chain([Acl { perms: 1, who: Identity::new("world", "anyone") }])
                .collect();
            let mut body = Vec::new();
            for entry in &asked {
                body.extend(entry.perms.to_be_bytes());
                jute::put_string(&mut body, &entry.who.scheme);
                jute::put_string(&mut body, &entry.who.id);
            }
            let before = stored_len(&asked);
            let after = stored_len(&auth::fix(&limits.schemes, asked, &identities).unwrap());
            let added = expansion(&limits, op::SET_ACL, &body, &identities);
            assert!(
                after - before <= added && added <= after,
                "{count}: {before}, {after}, {added}"
            );
            assert_eq!(
                expansion(&limits, op::SET_ACL, &body, &identities[..1]),
                0,
                "it is refused"
            );
        }
        let all = AUTH.repeat(1000);
        assert_eq!(expansion(&limits, op::DELETE, &all, &identities), 0, "it has no list");
        assert_eq!(expansion(&limits, op::MULTI, &all, &identities), 2 * limits.frame_max);
    }
}
