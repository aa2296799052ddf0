//! What a member does when its ensemble changes: files, ports, and whom it can reach.

use super::config_files::ConfigFiles;
use crate::config::Ensemble;
use crate::model::{Member, PeerAddress, Role, ServerId, View};
use crate::net::ClientPlace;
use crate::net::election::{self, ElectionNet};
use crate::net::quorum::{self, Bind, PeerEvent};
use crate::store::RealDisk;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

/// Keeps what depends on the configuration in step with it.
pub struct Membership {
    me: ServerId,
    files: ConfigFiles<RealDisk>,
    on_all_addresses: bool,
    /// Where this server takes observers when it follows.
    observer_port: Option<u16>,
    /// This server's line, as its ports are bound.
    own: Option<Member>,
    /// Ends the listening for learners at the present addresses.
    deaf: CancellationToken,
    links: Arc<AtomicU64>,
    learners: UnboundedSender<PeerEvent>,
    clients: UnboundedSender<ClientPlace>,
    /// Where the others were at last.
    view: View,
}

impl Membership {
    /// Listens for learners. Needs a runtime around it.
    ///
    /// * `changes`: whether the ensemble may change while it runs.
    /// * `clients`: told where clients are to be served.
    pub fn new(
        ensemble: &Ensemble,
        changes: bool,
        learners: UnboundedSender<PeerEvent>,
        clients: UnboundedSender<ClientPlace>,
    ) -> Self {
        let files = ConfigFiles::new(RealDisk, ensemble.config_file.clone());
        if changes && ensemble.dynamic_file.is_none() {
            tell("copy the file of settings", files.back_up());
        }
        let membership = Self {
            me: ensemble.my_id,
            files,
            on_all_addresses: ensemble.listen_on_all_addresses,
            observer_port: ensemble.observer_master_port,
            own: ensemble.view.members.get(&ensemble.my_id).cloned(),
            deaf: CancellationToken::new(),
            links: Arc::default(),
            learners,
            clients,
            view: ensemble.view.clone(),
        };
        membership.listen();
        membership
    }

    fn listen(&self) {
        let own = self.own.iter();
        let places: BTreeSet<Place> =
            own.flat_map(|own| places(own, self.observer_port, self.on_all_addresses)).collect();
        for (host, port) in places {
            let bind = Bind { host, port };
            let listening = quorum::listen(bind, self.links.clone(), self.learners.clone());
            let deaf = self.deaf.clone();
            tokio::spawn(async move { deaf.run_until_cancelled(listening).await });
        }
    }

    /// A configuration was proposed: it is kept for the next start, and its members are called.
    pub fn on_proposed(&self, view: &View, elections: &ElectionNet) {
        tell("keep the configuration that was proposed", self.files.propose(view));
        let mut all = election_addresses(&self.view, self.me);
        let mut new = election_addresses(view, self.me);
        new.retain(|id, _| !all.contains_key(id));
        let ids: Vec<ServerId> = new.keys().copied().collect();
        all.extend(new);
        elections.set_peers(all);
        ids.into_iter().for_each(|id| elections.dial(id));
    }

    /// A configuration is in force.
    ///
    /// * `is_last`: none that was proposed is newer.
    pub fn on_decided(&mut self, view: View, is_last: bool, elections: &mut ElectionNet) {
        let own = view.members.get(&self.me).cloned();
        let has_client = own.as_ref().is_some_and(|member| member.client.is_some());
        tell(
            "make the configuration that of the next start",
            self.files.decide(&view, has_client, is_last),
        );
        elections.set_peers(election_addresses(&view, self.me));
        self.view = view;
        // One that is left out stays where it is.
        let Some(own) = own else { return };
        elections.move_to(election_address(&own));
        let before = self.own.replace(own.clone());
        let ports = |member: &Member| -> Vec<(String, u16)> {
            member.addresses.iter().map(|at| (at.host.clone(), at.quorum_port)).collect()
        };
        if before.as_ref().map(ports) != Some(ports(&own)) {
            self.deaf.cancel();
            self.deaf = CancellationToken::new();
            self.listen();
        }
        if let Some(client) = &own.client
            && before.and_then(|member| member.client).as_ref() != Some(client)
        {
            let _stopping = self.clients.send(client.clone());
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.deaf.cancel();
    }
}

/// Host, or every address; and port.
type Place = (Option<String>, u16);

/// Where a member takes learners, each place once: at every address a port can be had only once.
///
/// * `observer_port`: `observerMasterPort`, of one that votes.
fn places(own: &Member, observer_port: Option<u16>, on_all_addresses: bool) -> BTreeSet<Place> {
    let observer_port = observer_port.filter(|_| own.role == Role::Participant);
    let ports = |at: &PeerAddress| [Some(at.quorum_port), observer_port].into_iter().flatten();
    let host = |at: &PeerAddress| (!on_all_addresses).then(|| at.host.clone());
    let all = own.addresses.iter();
    all.flat_map(|at| ports(at).map(move |port| (host(at), port))).collect()
}

/// A folder of settings that cannot be written to is no reason to stop a server whose data is safe.
fn tell(what: &str, done: io::Result<()>) {
    if let Err(error) = done {
        tracing::error!(%error, "cannot {what}: after a restart this server may know an older one");
    }
}

/// Where a member's election ports are.
pub fn election_address(member: &Member) -> Vec<election::Address> {
    member.addresses.iter().map(|at| (at.host.clone(), at.election_port)).collect()
}

/// Of everyone but `me`.
pub fn election_addresses(view: &View, me: ServerId) -> election::Peers {
    let others = view.members.values().filter(|member| member.id != me);
    others.map(|member| (member.id, election_address(member))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: Q-30 C-28
    #[test]
    fn learners_are_taken_at_all_addresses() {
        let places = |line: &str, observers, on_all| {
            let member = Member::parse("server.1", line).unwrap();
            let all = places(&member, observers, on_all).into_iter();
            all.map(|(host, port)| format!("{}:{port}", host.as_deref().unwrap_or("*")))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(places("a:1:2|b:3:4", None, false), "a:1 b:3");
        assert_eq!(places("a:1:2|b:1:2", None, true), "*:1");
        assert_eq!(places("a:1:2|b:3:4", Some(9), false), "a:1 a:9 b:3 b:9");
        assert_eq!(places("a:1:2:observer", Some(9), false), "a:1", "it leads nobody");
    }
}
