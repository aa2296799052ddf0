//! Lines of the audit log (U-31, U-33, U-35).

use crate::auth;
use crate::model::{AuditEvent, AuditResult, AuditUser, Identity, put_in_one_line};
use std::fmt::Write;

/// The logger's name in Java, as logback shortens it by `%c{2}` (log4j's `%c{2}` was another).
const LOGGER: &str = "o.a.z.a.Slf4jAuditLogger";

/// Whether the line of an event is an ERROR; others are INFO.
pub fn is_audit_error(event: &AuditEvent) -> bool {
    event.result == AuditResult::Failure
}

/// Appends what is before an event's text in a file of its own: `%d{ISO8601} %p `.
///
/// * `time`: `2026-11-22 18:00:00,123`, in local time.
pub fn put_audit_prefix(to: &mut String, time: &str, event: &AuditEvent) {
    let level = if is_audit_error(event) { "ERROR" } else { "INFO" };
    _ = write!(to, "{time} {level} "); // Writing to a string can't fail.
}

/// Appends the text of an event: the logger's name, then `key=value` separated by tabs.
///
/// * `server_user`: who has started the server.
///
/// Values can't forge lines or fields: control characters and the line separators of Unicode are escaped, as `\u000a`.
///
/// Source: `AuditEvent.toString`, ZooKeeper 3.9.5, which escapes nothing.
pub fn put_audit_text(to: &mut String, event: &AuditEvent, server_user: &str) {
    to.push_str(LOGGER);
    let mut fields = Fields { to, separator: ": " };
    match &event.by {
        AuditUser::Server => fields.put("user", server_user),
        AuditUser::ServerFor(session) => {
            fields.put("session", &session.to_string());
            fields.put("user", server_user);
        }
        AuditUser::Client { session, ip, identities } => {
            fields.put("session", &session.to_string());
            if let Some(users) = users(identities) {
                fields.put("user", &users);
            }
            fields.put("ip", &auth::ip_text(*ip));
        }
    }
    fields.put("operation", event.operation.name());
    let rest = [
        ("znode", event.path.as_deref()),
        ("znode_type", event.znode_type),
        ("acl", event.acl.as_deref()),
    ];
    for (key, value) in rest {
        if let Some(value) = value {
            fields.put(key, value);
        }
    }
    fields.put("result", event.result.name());
}

struct Fields<'a> {
    to: &'a mut String,
    /// What is before the next field.
    separator: &'static str,
}

impl Fields<'_> {
    fn put(&mut self, key: &str, value: &str) {
        self.to.push_str(std::mem::replace(&mut self.separator, "\t"));
        self.to.push_str(key);
        self.to.push('=');
        _ = put_in_one_line(self.to, value, &[]); // Writing to a string can't fail.
    }
}

/// The names of all identities, comma-joined; `None`: there is none.
///
/// Source: `AuthUtil.getUsers`. An identity of scheme `super` has no provider there, and so no name.
fn users(identities: &[Identity]) -> Option<String> {
    let is_name = |name: &&str| name.chars().any(|c| c > ' ');
    let names: Vec<&str> = identities.iter().map(auth::user).filter(is_name).collect();
    (!names.is_empty()).then(|| names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AuditedOperation, SessionId};

    fn text(event: &AuditEvent) -> String {
        let mut text = String::new();
        put_audit_text(&mut text, event, "zk");
        text
    }

    fn client(identities: &[(&str, &str)]) -> AuditUser {
        let identities = identities.iter().map(|(scheme, id)| Identity::new(scheme, id)).collect();
        AuditUser::Client { session: SessionId(-2), ip: [127, 0, 0, 1].into(), identities }
    }

    // rows: U-31 U-32 U-33
    #[test]
    fn fields_are_in_javas_order_and_absent_ones_left_out() {
        let start = AuditEvent::of_server(AuditedOperation::ServerStart, AuditResult::Success);
        assert_eq!(
            text(&start),
            "o.a.z.a.Slf4jAuditLogger: user=zk\toperation=serverStart\tresult=success"
        );
        let event = AuditEvent {
            by: client(&[("ip", "127.0.0.1")]),
            operation: AuditedOperation::SetAcl,
            path: Some("/a".into()),
            znode_type: Some("persistent"),
            acl: Some("world:anyone:cdrwa".into()),
            result: AuditResult::Failure,
        };
        assert_eq!(
            text(&event),
            "o.a.z.a.Slf4jAuditLogger: session=0xfffffffffffffffe\tuser=127.0.0.1\tip=127.0.0.1\t\
             operation=setAcl\tznode=/a\tznode_type=persistent\tacl=world:anyone:cdrwa\tresult=failure"
        );
        assert_eq!(
            text(&AuditEvent::ephemeral_deleted(SessionId(1), "/e")),
            "o.a.z.a.Slf4jAuditLogger: session=0x1\tuser=zk\t\
             operation=ephemeralZNodeDeletionOnSessionCloseOrExpire\tznode=/e\tresult=success"
        );
        let prefix = |event| {
            let mut line = String::new();
            put_audit_prefix(&mut line, "2026-11-22 18:00:00,123", event);
            line
        };
        assert_eq!(prefix(&event), "2026-11-22 18:00:00,123 ERROR ");
        let stop = AuditEvent::of_server(AuditedOperation::ServerStop, AuditResult::Invoked);
        assert_eq!(prefix(&stop), "2026-11-22 18:00:00,123 INFO ");
    }

    // rows: U-35
    #[test]
    fn users_are_the_names_of_all_identities_with_a_provider() {
        let named = |identities: &[(&str, &str)]| {
            let event = AuditEvent {
                by: client(identities),
                ..AuditEvent::of_server(AuditedOperation::Delete, AuditResult::Success)
            };
            let text = text(&event);
            let fields = text.split('\t');
            fields.filter_map(|field| field.strip_prefix("user=")).map(str::to_owned).next()
        };
        let all = [
            ("ip", "10.0.0.1"),
            ("super", ""),
            ("digest", "bob:aGFzaA=="),
            ("digest", " :aGFzaA=="),
            ("sasl", "cli/h@R"),
            ("x509", "CN=a,O=b"),
        ];
        assert_eq!(named(&all).as_deref(), Some("10.0.0.1,bob,cli/h@R,CN=a,O=b"));
        assert_eq!(named(&[("super", "")]), None);
    }

    // rows: U-31
    #[test]
    fn values_cannot_forge_lines_or_fields() {
        let event = AuditEvent {
            by: client(&[("digest", "b\nob\t:h")]),
            path: Some("/a\r\n2026 INFO x: user=root\u{85}\u{2028}\u{2029}\u{7f}\\u000aé: ".into()),
            ..AuditEvent::of_server(AuditedOperation::Create, AuditResult::Failure)
        };
        assert_eq!(
            text(&event),
            "o.a.z.a.Slf4jAuditLogger: session=0xfffffffffffffffe\tuser=b\\u000aob\\u0009\tip=127.0.0.1\t\
             operation=create\tznode=/a\\u000d\\u000a2026 INFO x: user=root\\u0085\\u2028\\u2029\\u007f\
             \\u000aé: \tresult=failure"
        );
    }
}
