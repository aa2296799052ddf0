//! Preparing a reconfiguration: a request becomes the transaction that proposes another configuration.
//!
//! Source: `PrepRequestProcessor.pRequest2Txn`, case `reconfig`, ZooKeeper 3.9.5.

use super::prep::Preparation;
use crate::model::{ChangeError, Code, Role, View, ViewError, perms};
use crate::tree::txn::write;
use jute::proto::ReconfigRequest;

/// The znode of the configuration.
const PATH: &str = "/zookeeper/config";

impl Preparation<'_> {
    pub(super) fn reconfig(&mut self, request: &ReconfigRequest<'_>) -> Result<(), Code> {
        let rules = self.prep.rules;
        if !rules.reconfigs {
            return Err(Code::RECONFIG_DISABLED);
        }
        self.asker.standing?;
        let ensemble = self.asker.ensemble.as_ref().ok_or(Code::UNIMPLEMENTED)?;
        if ensemble.is_changing || self.prep.reconfiguring.is_some() {
            return Err(Code::RECONFIG_IN_PROGRESS);
        }
        if ![-1, ensemble.view.version].contains(&request.cur_config_id) {
            return Err(Code::BAD_VERSION);
        }
        let in_force = ensemble.view.version;
        if self.zxid.to_wire() <= in_force {
            // Java answers that it is done, and forgets it with the next election.
            tracing::warn!(
                target: crate::model::STRANGERS, config_version = %format_args!("{in_force:x}"),
                "reconfiguration refused: the configuration in force has a later version than a new one would get, because data was removed and the files of the configuration were not, \
                 or a file was named by hand; stop all servers, write the same server.N lines into zoo.cfg in place of dynamicConfigFile at each, and start them"
            );
            return Err(Code::RECONFIG_IN_PROGRESS);
        }
        let mut view = wanted(&ensemble.view, request, rules.needs_two_voters)?;
        let many = |member: &&crate::model::Member| member.addresses.len() > 1;
        if let Some(member) = view.members.values().find(many)
            && !rules.many_addresses
        {
            tracing::warn!(
                target: crate::model::STRANGERS, server_id = member.id.0,
                "reconfiguration refused: it gives a member several addresses; set multiAddress.enabled=true on all members, or give it one"
            );
            return Err(Code::BAD_ARGUMENTS);
        }
        let voters_min = if rules.needs_two_voters { 2 } else { 1 };
        if view.voters().count() < voters_min {
            tracing::warn!(
                target: crate::model::STRANGERS, voters_min,
                "reconfiguration refused: it has too few voters, keep more of them"
            );
            return Err(Code::BAD_ARGUMENTS);
        }
        if !view.has_quorum(&ensemble.synced) {
            let synced = ensemble.synced.iter().map(|id| id.0.to_string()).collect::<Vec<_>>();
            let synced = synced.join(" ");
            tracing::warn!(
                target: crate::model::STRANGERS, %synced,
                "reconfiguration refused: the servers in sync are not a quorum of the new voters; start the others first"
            );
            return Err(Code::NEW_CONFIG_NO_QUORUM);
        }
        view.version = self.zxid.to_wire();
        self.propose_view(&view)
    }

    fn propose_view(&mut self, view: &View) -> Result<(), Code> {
        let mut node = self.view(PATH).ok_or(Code::NO_NODE)?;
        self.permit(&node, perms::WRITE)?;
        let text = view.to_string();
        write::set_data(self.to, PATH, Some(text.as_bytes()), -1);
        self.fits()?;
        let before = self.digest_of(&node, PATH);
        node.stat.version = -1;
        node.stat.mtime = self.header.time;
        node.stat.mzxid = self.header.zxid;
        (node.crc, node.data_len) = (self.crc(PATH, Some(text.as_bytes())), text.len() as _);
        self.put(PATH, before, Some(node));
        self.prep.reconfiguring = Some(self.zxid);
        Ok(())
    }
}

/// The requested configuration, given as a whole or as changes.
fn wanted(now: &View, request: &ReconfigRequest<'_>, needs_two_voters: bool) -> Result<View, Code> {
    if let Some(text) = request.new_members.as_deref() {
        return View::parse(&text.replace(',', "\n"))
            .map_err(|error| {
                tracing::warn!(target: crate::model::STRANGERS, %error, "reconfiguration refused: correct the request");
                code_of_text(&error, text)
            })
            .and_then(|view| {
                let observes = view.members.values().any(|member| member.role == Role::Observer);
                // Java's parser of configurations fails here, before the voters are counted.
                if view.voters().count() == 1 && observes && needs_two_voters {
                    return Err(Code::MARSHALLING_ERROR);
                }
                Ok(view)
            });
    }
    let (leaving, joining) =
        (request.leaving_servers.as_deref(), request.joining_servers.as_deref());
    now.changed(leaving.unwrap_or(""), joining.unwrap_or("")).map_err(|error| {
        tracing::warn!(target: crate::model::STRANGERS, %error, "reconfiguration refused: correct the request");
        match error {
            // Java does not expect this error.
            ChangeError::Number(_) => Code::MARSHALLING_ERROR,
            _ => Code::BAD_ARGUMENTS,
        }
    })
}

/// Java's two ways to fail: the text is refused, or parsing it throws an unexpected exception.
fn code_of_text(error: &ViewError, text: &str) -> Code {
    match error {
        ViewError::Name { .. } | ViewError::Unicode { .. } => Code::MARSHALLING_ERROR,
        ViewError::Value { key, .. } if !key.starts_with("server.") => Code::MARSHALLING_ERROR,
        ViewError::NoVoters if text.contains("observer") => Code::MARSHALLING_ERROR,
        _ => Code::BAD_ARGUMENTS,
    }
}
