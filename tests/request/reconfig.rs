//! What a leader proposes, or answers, when a client sends reconfig.

use jute::proto::{ReconfigRequest, SetAclRequest};
use jute::{Encode, Vector};
use oxkeeper::auth::Schemes;
use oxkeeper::model::{Acl, Code, Epoch, Identity, ServerId, SessionId, View, Zxid, op, perms};
use oxkeeper::request::Ensemble;
use oxkeeper::request::prep::{Asker, Prep, Prepared, Rules};
use oxkeeper::tree::txn::{Entry, Txn, config_in};
use oxkeeper::tree::{Options, Tree};

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
        Self::with(Rules { reconfigs: true, ..rules })
    }

    fn with(rules: Rules) -> Self {
        let tree = Tree::new(Options::default());
        let prep = Prep::leading(&tree, Epoch(2), u32::MAX, 1, rules);
        Self { tree, prep, schemes: Schemes::default() }
    }

    /// The configuration that is proposed, or the error code.
    fn ask(
        &mut self,
        ensemble: Option<Ensemble>,
        request: &ReconfigRequest<'_>,
        skip_acl: bool,
    ) -> Result<View, Code> {
        self.ask_as(&[], ensemble, request, skip_acl)
    }

    /// The transaction that a request is proposed as.
    fn propose(
        &mut self,
        identities: &[Identity],
        ensemble: Option<Ensemble>,
        (kind, request): (i32, &dyn Encode),
        skip_acl: bool,
    ) -> (Zxid, Vec<u8>) {
        let asker = Asker {
            session: SessionId(1),
            xid: 1,
            identities,
            standing: Ok(()),
            may_own: Ok(()),
            wall_ms: 7,
            skip_acl,
            schemes: &self.schemes,
            ensemble,
        };
        let (mut body, mut entry) = (Vec::new(), Vec::new());
        request.encode(&mut body);
        let prepared = self.prep.prepare(&self.tree, &asker, kind, &body, &mut entry);
        let Some(Prepared::Proposal(zxid)) = prepared else { panic!("{prepared:?}") };
        (zxid, entry)
    }

    /// /zookeeper/config gets this list.
    fn set_config_acl(&mut self, acl: &Acl) {
        let acl = Vector::Owned(vec![acl.to_record()]);
        let path = Some("/zookeeper/config".into());
        let request = SetAclRequest { path, acl, version: -1 };
        let (zxid, entry) = self.propose(&[], None, (op::SET_ACL, &request), true);
        let entry = Entry::decode(&entry).unwrap();
        assert_eq!(self.tree.apply(&entry.header, &entry.txn, &mut Vec::new()).code, Code::OK);
        self.prep.applied(zxid);
    }

    /// * `identities`: the identities of the client that asks.
    fn ask_as(
        &mut self,
        identities: &[Identity],
        ensemble: Option<Ensemble>,
        request: &ReconfigRequest<'_>,
        skip_acl: bool,
    ) -> Result<View, Code> {
        let (zxid, entry) = self.propose(identities, ensemble, (op::RECONFIG, request), skip_acl);
        let Some(text) = config_in(&entry) else {
            let code = entry[entry.len() - 4..].try_into().unwrap();
            return Err(Code(i32::from_be_bytes(code)));
        };
        let view = View::parse(std::str::from_utf8(text).unwrap()).unwrap();
        let txn = Entry::decode(&entry).unwrap().txn;
        assert!(matches!(txn, Txn::SetData { version: -1, .. }), "it has no version: {txn:?}");
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

// rows: P-54 Q-97 G-14
#[test]
fn reconfig_is_refused_while_another_is_pending_or_without_a_quorum() {
    let mut leader = Leader::new(Rules::DEFAULT);
    let leaving = ReconfigRequest { leaving_servers: Some("3".into()), ..NOTHING };
    assert_eq!(leader.ask(None, &leaving, true), Err(Code::UNIMPLEMENTED), "a standalone server");
    let stale = ReconfigRequest { cur_config_id: 5, ..leaving.clone() };
    assert_eq!(leader.asks(&stale), Err(Code::BAD_VERSION));
    assert_eq!(leader.ask(ensemble(&[1, 3]), &leaving, true), Err(Code::NEW_CONFIG_NO_QUORUM));
    assert_eq!(leader.ask(ensemble(&[1, 2]), &leaving, false), Err(Code::NO_AUTH));
    let changing = ensemble(&[1, 2]).map(|now| Ensemble { is_changing: true, ..now });
    assert_eq!(leader.ask(changing, &leaving, true), Err(Code::RECONFIG_IN_PROGRESS));
    let later = NOW.replace("version=1", "version=4");
    let later = View::parse(&later).unwrap();
    let reset = ensemble(&[1, 2]).map(|now| Ensemble { view: later, ..now });
    assert_eq!(
        leader.ask(reset, &leaving, true),
        Err(Code::RECONFIG_IN_PROGRESS),
        "it would count for older"
    );
    let current = ReconfigRequest { cur_config_id: 0x1_0000_0000, ..leaving.clone() };
    assert_eq!(leader.asks(&current), Ok(vec![1, 2]));
    assert_eq!(leader.asks(&current), Err(Code::RECONFIG_IN_PROGRESS), "it is proposed");
    leader.prep.applied(Zxid::from_wire(i64::MAX).unwrap());
    let next = leader.ask(ensemble(&[1, 2, 3]), &leaving, true).expect("nothing is under way");
    assert_eq!(leader.asks(&leaving), Err(Code::RECONFIG_IN_PROGRESS));
    leader.prep.applied(Zxid::from_wire(next.version).unwrap());
    assert_eq!(leader.asks(&leaving), Ok(vec![1, 2]), "it was the last one applied");
    let mut fixed = Leader::with(Rules { reconfigs: false, ..Rules::DEFAULT });
    assert_eq!(fixed.asks(&leaving), Err(Code::RECONFIG_DISABLED));
}

/// /zookeeper/config guards reconfigurations: of its list's bits WRITE alone allows one, and super needs none.
// rows: P-54 U-23
#[test]
fn reconfiguration_asks_for_write_on_the_configuration_and_no_other_bit() {
    let leaving = ReconfigRequest { leaving_servers: Some("3".into()), ..NOTHING };
    let of = Identity::new("ip", "10.0.0.1");
    let bits = [perms::READ, perms::WRITE, perms::CREATE, perms::DELETE, perms::ADMIN];
    for perms in bits.into_iter().flat_map(|bit| [bit, perms::ALL & !bit]) {
        let mut leader = Leader::new(Rules::DEFAULT);
        leader.set_config_acl(&Acl { perms, who: of.clone() });
        let is_allowed = perms & perms::WRITE != 0;
        let expected = if is_allowed { Ok(vec![1, 2]) } else { Err(Code::NO_AUTH) };
        let asked = leader.ask_as(std::slice::from_ref(&of), ensemble(&[1, 2, 3]), &leaving, false);
        let voters = asked.map(|view| view.voters().map(|id| id.0).collect::<Vec<_>>());
        assert_eq!(voters, expected, "{perms:#b}");
        leader.prep.applied(Zxid::from_wire(i64::MAX).unwrap());
        let stranger = [Identity::new("ip", "10.0.0.2")];
        let asked = leader.ask_as(&stranger, ensemble(&[1, 2, 3]), &leaving, false);
        assert_eq!(asked.map(|view| view.version), Err(Code::NO_AUTH), "{perms:#b}");
    }
}

// rows: Q-98 G-18
#[test]
fn every_reconfig_request_gets_its_configuration_or_error_code() {
    let joining =
        |text: &'static str| ReconfigRequest { joining_servers: Some(text.into()), ..NOTHING };
    let leaving =
        |text: &'static str| ReconfigRequest { leaving_servers: Some(text.into()), ..NOTHING };
    let whole = |text: &'static str| ReconfigRequest { new_members: Some(text.into()), ..NOTHING };
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
    assert_eq!(Leader::new(many).asks(&joining("server.4=d:1:2|e:1:2;3")), Ok(vec![1, 2, 3, 4]));
}
