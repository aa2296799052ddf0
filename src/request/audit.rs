//! What the audit log shows of a client's write (U-31..U-37): kept with the request, logged when it is answered.
//!
//! Source: `AuditHelper`, ZooKeeper 3.9.5.

use super::commands::BatchedWrite;
use super::write_request::{Creation, Write};
use crate::model::{
    AuditEvent, AuditResult, AuditUser, AuditedOperation, Identity, SessionId, op, perms,
};
use crate::tree::Applied;
use core::net::IpAddr;
use jute::data::Acl;
use std::sync::Arc;

/// A write on its way, as the audit log will show it.
#[derive(Debug)]
pub struct AuditedWrite {
    session: SessionId,
    ip: IpAddr,
    identities: Arc<[Identity]>,
    operation: AuditedOperation,
    path: Option<Box<str>>,
    znode_type: Option<&'static str>,
    acl: Option<Box<str>>,
    /// What the creates of a multi ask for, by path.
    parts: Vec<(Box<str>, &'static str)>,
}

impl AuditedWrite {
    /// `None`: the audit log does not record such an operation.
    pub fn of(write: BatchedWrite<'_>) -> Option<Box<Self>> {
        let BatchedWrite { batch, request, body } = write;
        let operation = match request.op {
            op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                AuditedOperation::Create
            }
            op::DELETE => AuditedOperation::Delete,
            op::SET_DATA => AuditedOperation::SetData,
            op::SET_ACL => AuditedOperation::SetAcl,
            op::MULTI => AuditedOperation::Multi,
            op::RECONFIG => AuditedOperation::Reconfig,
            _ => return None,
        };
        let mut audited = Self {
            session: batch.session,
            ip: batch.conn.peer.ip(),
            identities: batch.identities.clone(),
            operation,
            path: None,
            znode_type: None,
            acl: None,
            parts: Vec::new(),
        };
        // Another body is answered without a transaction, so nothing is logged.
        if let Some(decoded) = Write::decode(request.op, body) {
            audited.describe(&decoded);
        }
        Some(Box::new(audited))
    }

    fn describe(&mut self, write: &Write<'_>) {
        match write {
            Write::Create(create) => {
                self.path = create.request.path.as_deref().map(Into::into);
                self.znode_type = znode_type(create.request.flags);
            }
            Write::Delete(delete) => self.path = delete.path.as_deref().map(Into::into),
            Write::SetData(set) => self.path = set.path.as_deref().map(Into::into),
            Write::SetAcl(set) => {
                self.path = set.path.as_deref().map(Into::into);
                self.acl = Some(set.acl.iter().map(|entry| entry_text(&entry)).collect());
            }
            Write::Multi(parts) => self.parts = parts.iter().filter_map(part_type).collect(),
            _ => {}
        }
    }

    /// Pushes the events that say how the request ended.
    pub fn push_events(&self, applied: &Applied<'_>, to: &mut Vec<AuditEvent>) {
        let applied_path = || applied.path.as_deref().map(Into::into);
        match self.operation {
            AuditedOperation::Multi if applied.kind == op::MULTI => {
                self.push_part_events(applied, to)
            }
            // A refused reconfiguration has no path, others have the path of the request.
            operation if applied.kind == op::ERROR => to.push(AuditEvent {
                path: self.path.clone(),
                znode_type: self.znode_type,
                acl: self.acl.clone(),
                ..self.event(operation, AuditResult::Failure)
            }),
            operation => to.push(AuditEvent {
                path: applied_path(),
                znode_type: self.znode_type,
                acl: self.acl.clone(),
                ..self.event(operation, result(applied))
            }),
        }
    }

    /// Pushes an event for each part of a multi that was carried out. Its checks change nothing and are not logged.
    fn push_part_events(&self, multi: &Applied<'_>, to: &mut Vec<AuditEvent>) {
        if multi.parts.iter().any(|part| part.kind == op::ERROR) {
            return to.push(self.event(AuditedOperation::Multi, AuditResult::Failure));
        }
        for part in &multi.parts {
            let path = part.path.as_deref();
            let (operation, znode_type) = match part.kind {
                op::CREATE | op::CREATE2 | op::CREATE_CONTAINER | op::CREATE_TTL => {
                    let asked = self.parts.iter().rev().find(|(asked, _)| path == Some(asked));
                    (AuditedOperation::Create, asked.map(|(_, znode_type)| *znode_type))
                }
                op::DELETE => (AuditedOperation::Delete, None),
                op::SET_DATA => (AuditedOperation::SetData, None),
                _ => continue,
            };
            let path = path.map(Into::into);
            let event = self.event(operation, AuditResult::Success);
            to.push(AuditEvent { path, znode_type, ..event });
        }
    }

    fn event(&self, operation: AuditedOperation, result: AuditResult) -> AuditEvent {
        let Self { session, ip, identities, .. } = self;
        let by = AuditUser::Client { session: *session, ip: *ip, identities: identities.clone() };
        AuditEvent { by, ..AuditEvent::of_server(operation, result) }
    }
}

fn result(applied: &Applied<'_>) -> AuditResult {
    if applied.code.is_ok() { AuditResult::Success } else { AuditResult::Failure }
}

/// What a create inside a multi asks for. As in Java, those with a TTL are not found by their path.
fn part_type((_, part): &(i32, Write<'_>)) -> Option<(Box<str>, &'static str)> {
    match part {
        Write::Create(Creation { request, kind, .. }) if *kind != op::CREATE_TTL => {
            Some((request.path.as_deref()?.into(), znode_type(request.flags)?))
        }
        _ => None,
    }
}

/// The name of the flags of a create; `None`: they are invalid.
///
/// Source: `CreateMode`.
const fn znode_type(flags: i32) -> Option<&'static str> {
    Some(match flags {
        0 => "persistent",
        1 => "ephemeral",
        2 => "persistent_sequential",
        3 => "ephemeral_sequential",
        4 => "container",
        5 => "persistent_with_ttl",
        6 => "persistent_sequential_with_ttl",
        _ => return None,
    })
}

/// One entry of an access list as `scheme:id:perms`.
///
/// Source: `ZKUtil.aclToString`.
fn entry_text(entry: &Acl<'_>) -> String {
    let text = |text: &jute::Ustring<'_>| text.as_deref().unwrap_or("null").to_owned();
    let mut shown = format!("{}:{}:", text(&entry.id.scheme), text(&entry.id.id));
    let letters = [
        (perms::CREATE, 'c'),
        (perms::DELETE, 'd'),
        (perms::READ, 'r'),
        (perms::WRITE, 'w'),
        (perms::ADMIN, 'a'),
    ];
    shown.extend(letters.iter().filter(|(bit, _)| entry.perms & bit != 0).map(|(_, c)| c));
    shown
}
