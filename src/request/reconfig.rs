//! Judging a reconfiguration: a request becomes the transaction that proposes another configuration.
//!
//! Source: `PrepRequestProcessor.pRequest2Txn`, case `reconfig`, ZooKeeper 3.9.5.

use super::prep::Judging;
use crate::model::{ChangeError, Code, Role, View, ViewError, perms};
use crate::tree::txn::write;
use jute::proto::ReconfigRequest;

/// Where the configuration stands.
const PATH: &str = "/zookeeper/config";

impl Judging<'_> {
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
        let mut view = wanted(&ensemble.view, request, rules.needs_two_voters)?;
        let many = |member: &&crate::model::Member| member.addresses.len() > 1;
        if let Some(member) = view.members.values().find(many)
            && !rules.many_addresses
        {
            tracing::warn!(
                server = member.id.0,
                "reconfiguration refused: multiAddress.enabled is not set"
            );
            return Err(Code::BAD_ARGUMENTS);
        }
        let voters_min = if rules.needs_two_voters { 2 } else { 1 };
        if view.voters().count() < voters_min {
            tracing::warn!(
                voters_min,
                "reconfiguration refused: too few of the members would vote"
            );
            return Err(Code::BAD_ARGUMENTS);
        }
        if !view.has_quorum(&ensemble.synced) {
            let synced: Vec<i64> = ensemble.synced.iter().map(|id| id.0).collect();
            tracing::warn!(
                ?synced,
                "reconfiguration refused: who follows now is no quorum of the new voters"
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

/// The configuration that is asked for, whole or by what changes.
fn wanted(now: &View, request: &ReconfigRequest<'_>, needs_two_voters: bool) -> Result<View, Code> {
    if let Some(text) = request.new_members.as_deref() {
        return View::parse(&text.replace(',', "\n"))
            .map_err(|error| {
                tracing::warn!(%error, "reconfiguration refused");
                code_of_text(&error, text)
            })
            .and_then(|view| {
                let observes = view.members.values().any(|member| member.role == Role::Observer);
                // Java's reader of configurations fails here, before anybody counts.
                if view.voters().count() == 1 && observes && needs_two_voters {
                    return Err(Code::MARSHALLING_ERROR);
                }
                Ok(view)
            });
    }
    let (leaving, joining) =
        (request.leaving_servers.as_deref(), request.joining_servers.as_deref());
    now.changed(leaving.unwrap_or(""), joining.unwrap_or("")).map_err(|error| {
        tracing::warn!(%error, "reconfiguration refused");
        match error {
            // Java does not expect them.
            ChangeError::Number(_) => Code::MARSHALLING_ERROR,
            _ => Code::BAD_ARGUMENTS,
        }
    })
}

/// Java's two ways to fail: the text is refused, or reading it fails where nobody expects it.
fn code_of_text(error: &ViewError, text: &str) -> Code {
    match error {
        ViewError::Name { .. } | ViewError::Unicode { .. } => Code::MARSHALLING_ERROR,
        ViewError::Value { key, .. } if !key.starts_with("server.") => Code::MARSHALLING_ERROR,
        ViewError::NoVoters if text.contains("observer") => Code::MARSHALLING_ERROR,
        _ => Code::BAD_ARGUMENTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Schemes;
    use crate::model::{ServerId, SessionId, Zxid, op};
    use crate::request::Ensemble;
    use crate::request::prep::{Asker, Prep, Prepared, Rules};
    use crate::tree::txn::config_in;
    use crate::tree::{Options, Tree};
    use jute::Encode;

    const NOW: &str = "server.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3\nversion=100000000";

    fn ensemble(synced: &[i64]) -> Option<Ensemble> {
        let synced = synced.iter().map(|&id| ServerId(id)).collect();
        Some(Ensemble { view: View::parse(NOW).unwrap(), is_changing: false, synced })
    }

    struct Leader {
        tree: Tree,
        prep: Prep,
        schemes: Schemes,
    }

    impl Leader {
        fn new(rules: Rules) -> Self {
            let tree = Tree::new(Options::default());
            let prep = Prep::new(&tree, 1, Rules { reconfigs: true, ..rules });
            Self { tree, prep, schemes: Schemes::default() }
        }

        /// The configuration proposed, or why there is none.
        fn ask(
            &mut self,
            ensemble: Option<Ensemble>,
            request: &ReconfigRequest<'_>,
            skip_acl: bool,
        ) -> Result<View, Code> {
            let asker = Asker {
                session: SessionId(1),
                xid: 1,
                who: &[],
                standing: Ok(()),
                may_own: Ok(()),
                wall_ms: 7,
                skip_acl,
                schemes: &self.schemes,
                ensemble,
            };
            let (mut body, mut entry) = (Vec::new(), Vec::new());
            request.encode(&mut body);
            let prepared = self.prep.prepare(&self.tree, &asker, op::RECONFIG, &body, &mut entry);
            let Some(Prepared::Proposal(zxid)) = prepared else { panic!("{prepared:?}") };
            let Some(text) = config_in(&entry) else {
                let code = entry[entry.len() - 4..].try_into().unwrap();
                return Err(Code(i32::from_be_bytes(code)));
            };
            let view = View::parse(std::str::from_utf8(text).unwrap()).unwrap();
            assert_eq!(view.version, zxid.to_wire(), "its version is its zxid");
            Ok(view)
        }

        fn asks(&mut self, request: &ReconfigRequest<'_>) -> Result<Vec<i64>, Code> {
            let asked = self.ask(ensemble(&[1, 2, 3]), request, true);
            asked.map(|view| view.voters().map(|id| id.0).collect())
        }
    }

    const NOTHING: ReconfigRequest<'_> = ReconfigRequest {
        joining_servers: None,
        leaving_servers: None,
        new_members: None,
        cur_config_id: -1,
    };

    // rows: P-54 Q-97
    #[test]
    fn one_at_a_time_and_by_a_quorum_of_the_new() {
        let mut leader = Leader::new(Rules::DEFAULT);
        let leaving = ReconfigRequest { leaving_servers: Some("3".into()), ..NOTHING };
        assert_eq!(leader.ask(None, &leaving, true), Err(Code::UNIMPLEMENTED), "it is alone");
        let stale = ReconfigRequest { cur_config_id: 5, ..leaving.clone() };
        assert_eq!(leader.asks(&stale), Err(Code::BAD_VERSION));
        assert_eq!(leader.ask(ensemble(&[1, 3]), &leaving, true), Err(Code::NEW_CONFIG_NO_QUORUM));
        assert_eq!(leader.ask(ensemble(&[1, 2]), &leaving, false), Err(Code::NO_AUTH));
        let changing = ensemble(&[1, 2]).map(|now| Ensemble { is_changing: true, ..now });
        assert_eq!(leader.ask(changing, &leaving, true), Err(Code::RECONFIG_IN_PROGRESS));
        let current = ReconfigRequest { cur_config_id: 0x1_0000_0000, ..leaving.clone() };
        assert_eq!(leader.asks(&current), Ok(vec![1, 2]));
        assert_eq!(leader.asks(&current), Err(Code::RECONFIG_IN_PROGRESS), "it is proposed");
        leader.prep.applied(Zxid::from_wire(i64::MAX).unwrap());
        assert_eq!(leader.asks(&leaving), Ok(vec![1, 2]));
        leader.prep.rules.reconfigs = false;
        assert_eq!(leader.asks(&leaving), Err(Code::RECONFIG_DISABLED));
    }

    // rows: Q-98 G-18
    #[test]
    fn every_answer_to_what_is_asked_for() {
        let joining =
            |text: &'static str| ReconfigRequest { joining_servers: Some(text.into()), ..NOTHING };
        let leaving =
            |text: &'static str| ReconfigRequest { leaving_servers: Some(text.into()), ..NOTHING };
        let whole =
            |text: &'static str| ReconfigRequest { new_members: Some(text.into()), ..NOTHING };
        for (request, wanted) in [
            (NOTHING, Ok(vec![1, 2, 3])),
            (joining("server.3=c:1:2:observer;3"), Ok(vec![1, 2])),
            (joining("server.4=d:1:2;3"), Ok(vec![1, 2, 3, 4])),
            (joining("server.4=d:1:2"), Err(Code::BAD_ARGUMENTS)),
            (joining("server.4=d:1:2|e:1:2;3"), Err(Code::BAD_ARGUMENTS)),
            (joining("server.x=nonsense"), Err(Code::MARSHALLING_ERROR)),
            (joining("server.9=nonsense"), Err(Code::BAD_ARGUMENTS)),
            (leaving("1,2,3"), Err(Code::BAD_ARGUMENTS)),
            (leaving("1,x"), Err(Code::MARSHALLING_ERROR)),
            (leaving("1,2"), Err(Code::BAD_ARGUMENTS)),
            (whole("server.1=a:1:2;3,server.2=b:1:2;3"), Ok(vec![1, 2])),
            (whole("server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2"), Ok(vec![1, 2])),
            (whole("server.1=a:1:2"), Err(Code::BAD_ARGUMENTS)),
            (whole("server.1=a:1:2,server.2=b:1:2:observer"), Err(Code::MARSHALLING_ERROR)),
            (whole(""), Err(Code::BAD_ARGUMENTS)),
            (whole("clientPort=1"), Err(Code::BAD_ARGUMENTS)),
            (whole("server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:x"), Err(Code::MARSHALLING_ERROR)),
        ] {
            assert_eq!(Leader::new(Rules::DEFAULT).asks(&request), wanted, "{request:?}");
        }
        let alone = Rules { needs_two_voters: false, ..Rules::DEFAULT };
        assert_eq!(Leader::new(alone).asks(&leaving("1,2")), Ok(vec![3]));
        let many = Rules { many_addresses: true, ..Rules::DEFAULT };
        assert_eq!(
            Leader::new(many).asks(&joining("server.4=d:1:2|e:1:2;3")),
            Ok(vec![1, 2, 3, 4])
        );
    }
}
