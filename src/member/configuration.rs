//! What a member does when its ensemble changes: configuration files, ports, and where the other members are.

use super::dial::HostPort;
use super::election_connections::Input;
use super::{Action, ConfigChange, EnsembleSettings, ListenAddress};
use crate::model::{Member, PeerAddress, Role, ServerId, View};
use std::collections::{BTreeMap, BTreeSet};

/// Keeps configuration files, ports and addresses in step with the configuration.
pub struct Configuration {
    settings: EnsembleSettings,
    /// The line of this server by which its ports are bound.
    own: Option<Member>,
    /// The configuration in force, from which the other members' addresses were last taken.
    view: View,
}

impl Configuration {
    pub fn new(settings: EnsembleSettings) -> Self {
        let (own, view) = (settings.own.clone(), settings.view.clone());
        Self { settings, own, view }
    }

    /// * `all`: the configurations that count, as [`Core::all_views`](crate::zab::Core::all_views) gives them.
    pub fn start<'a>(&self, all: impl Iterator<Item = &'a View>, out: &mut Vec<Action>) {
        if self.settings.writes_config {
            out.push(Action::ChangeConfigFiles(ConfigChange::TestFolder));
        }
        if self.settings.backs_up_config {
            out.push(Action::ChangeConfigFiles(ConfigChange::CopyStaticFile));
        }
        let decided = &self.settings.decided;
        if self.settings.writes_config && decided.version != 0 {
            out.push(Action::ChangeConfigFiles(ConfigChange::InForce { view: decided.clone() }));
        }
        set_members(all, self.settings.my_id, out);
        self.listen(out);
    }

    fn listen(&self, out: &mut Vec<Action>) {
        out.push(Action::ListenForLearners(self.listen_addresses()));
    }

    fn listen_addresses(&self) -> BTreeSet<ListenAddress> {
        let (port, on_all) =
            (self.settings.observer_master_port, self.settings.listen_on_all_addresses);
        let own = self.own.iter();
        own.flat_map(|own| listen_addresses(own, port, on_all)).collect()
    }

    /// Proposed configurations are in the log, or NEWLEADER names them: saves them in `.dynamic.next` and dials the
    /// election ports of new members.
    ///
    /// * `views`: the configurations to keep, oldest first. `all`: the configurations that count, as
    ///   [`Core::all_views`](crate::zab::Core::all_views) gives them.
    ///
    /// Returns inputs for the election connections.
    pub fn on_proposed<'a>(
        &self,
        views: Vec<View>,
        all: impl Iterator<Item = &'a View>,
        out: &mut Vec<Action>,
    ) -> Vec<Input> {
        let all = set_members(all, self.settings.my_id, out);
        let is_new = |id: &ServerId| !self.view.members.contains_key(id);
        let ids: Vec<ServerId> = all.keys().copied().filter(is_new).collect();
        let beside = Some(&self.view).filter(|view| view.version == 0).cloned();
        out.push(Action::ChangeConfigFiles(ConfigChange::Proposed { views, beside }));
        let mut inputs = vec![Input::SetPeers(all)];
        inputs.extend(ids.into_iter().map(|to| Input::Dial { to }));
        inputs
    }

    /// The proposed configurations came to nothing.
    ///
    /// * `all`: the configurations that still count.
    ///
    /// Returns an input for the election connections.
    pub fn on_forgotten<'a>(
        &self,
        all: impl Iterator<Item = &'a View>,
        out: &mut Vec<Action>,
    ) -> Input {
        out.push(Action::ChangeConfigFiles(ConfigChange::Forgotten));
        Input::SetPeers(set_members(all, self.settings.my_id, out))
    }

    /// A configuration is in force.
    ///
    /// * `is_last`: no newer configuration was proposed. `all`: the configurations that count, this one first.
    ///
    /// Returns inputs for the election connections.
    pub fn on_committed<'a>(
        &mut self,
        view: View,
        is_last: bool,
        all: impl Iterator<Item = &'a View>,
        out: &mut Vec<Action>,
    ) -> Vec<Input> {
        let me = self.settings.my_id;
        let own = view.members.get(&me).cloned();
        let has_client = own.as_ref().is_some_and(|member| member.client.is_some());
        out.push(Action::ChangeConfigFiles(ConfigChange::Committed {
            view: view.clone(),
            has_client,
            removes_proposed: is_last,
        }));
        let mut inputs = vec![Input::SetPeers(set_members(all, me, out))];
        self.view = view;
        // A server that is left out of the configuration keeps its ports.
        let Some(own) = own else { return inputs };
        inputs.push(Input::MoveTo(election_address(&own)));
        let (before, before_at) = (self.own.clone(), self.listen_addresses());
        self.own = Some(own.clone());
        if before_at != self.listen_addresses() {
            self.listen(out);
        }
        if let Some((host, port)) = own.client.clone()
            && before.and_then(|member| member.client) != own.client
        {
            out.push(Action::MoveClientPort(ListenAddress { host, port }));
        }
        inputs
    }
}

/// Tells the ports which servers, and which hosts, are members of a configuration that counts. Returns their election addresses.
fn set_members<'a>(
    views: impl Iterator<Item = &'a View>,
    me: ServerId,
    out: &mut Vec<Action>,
) -> BTreeMap<ServerId, Vec<HostPort>> {
    let views: Vec<&View> = views.collect();
    let mut members = BTreeMap::<ServerId, BTreeSet<String>>::new();
    for (&id, member) in views.iter().flat_map(|view| &view.members) {
        let hosts = member.addresses.iter().map(|address| address.host.clone());
        members.entry(id).or_default().extend(hosts);
    }
    out.push(Action::SetMembers(members));
    all_election_addresses(views.into_iter(), me)
}

/// The addresses where a member accepts learners, without duplicates: with `on_all`, two addresses with one port are one socket.
///
/// * `observer_port`: `observerMasterPort`, of a member that votes.
fn listen_addresses(
    own: &Member,
    observer_port: Option<u16>,
    on_all: bool,
) -> BTreeSet<ListenAddress> {
    let observer_port = observer_port.filter(|_| own.role == Role::Participant);
    let ports = |at: &PeerAddress| [Some(at.quorum_port), observer_port].into_iter().flatten();
    let host = |at: &PeerAddress| (!on_all).then(|| at.host.clone());
    let all = own.addresses.iter();
    all.flat_map(|at| ports(at).map(move |port| ListenAddress { host: host(at), port })).collect()
}

/// The addresses of a member's election ports.
pub fn election_address(member: &Member) -> Vec<HostPort> {
    member.addresses.iter().map(|at| (at.host.clone(), at.election_port)).collect()
}

/// The election ports of every member but `me`.
pub fn election_addresses(view: &View, me: ServerId) -> BTreeMap<ServerId, Vec<HostPort>> {
    let others = view.members.values().filter(|member| member.id != me);
    others.map(|member| (member.id, election_address(member))).collect()
}

/// The election ports of the members of all configurations that count. The addresses of a member of several configurations
/// are those of the first.
pub fn all_election_addresses<'a>(
    views: impl Iterator<Item = &'a View>,
    me: ServerId,
) -> BTreeMap<ServerId, Vec<HostPort>> {
    let mut all = BTreeMap::new();
    for (id, addresses) in views.flat_map(|view| election_addresses(view, me)) {
        all.entry(id).or_insert(addresses);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: Q-30 C-28
    #[test]
    fn member_listens_for_learners_at_all_its_addresses() {
        let addresses = |line: &str, observers, on_all| {
            let member = Member::parse("server.1", line).unwrap();
            let all = listen_addresses(&member, observers, on_all).into_iter();
            all.map(|address| address.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(addresses("a:1:2|b:3:4", None, false), "a:1 b:3");
        assert_eq!(addresses("a:1:2|b:1:2", None, true), "*:1");
        assert_eq!(addresses("a:1:2|b:3:4", Some(9), false), "a:1 a:9 b:3 b:9");
        assert_eq!(addresses("a:1:2:observer", Some(9), false), "a:1", "no observers of its own");
    }
}
