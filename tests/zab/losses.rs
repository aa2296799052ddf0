//! Files that are missing or old when a server restarts, and machines that are lost for good.
//!
//! The rule of `src/sim/lost_data.rs`: a loss that the server itself notices leaves it without a vote until a leader has sent its
//! tree, so a minority may lose so much at any time. A loss that it can't notice the operator has to avoid: a server may vote with
//! less than it had only while a quorum of other servers has all of it, in each configuration that any server believes in.

use super::checks::Event;
use super::world::World;
use oxkeeper::model::{Epoch, Rule, ServerId, View};
use oxkeeper::zab::{Peer, Role};
use support::disk::{Disk, last_of};
use support::quorums::is_quorum;

/// What a server does not find as it was when it restarts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Loss {
    AcceptedEpoch,
    CurrentEpoch,
    BothEpochs,
    Log,
    Tree,
    /// `.dynamic.next`
    ProposedView,
    /// `.dynamic`: the operator replaces it by another member's.
    View,
    /// Both epochs and the history; configuration files stay.
    Everything,
    /// All files are as they were when they were copied.
    OlderDisk,
    /// The machine, for good: the operator removes its server from the ensemble.
    Machine,
}

impl Loss {
    pub const ALL: [Self; 10] = [
        Self::AcceptedEpoch,
        Self::CurrentEpoch,
        Self::BothEpochs,
        Self::Log,
        Self::Tree,
        Self::ProposedView,
        Self::View,
        Self::Everything,
        Self::OlderDisk,
        Self::Machine,
    ];
    const FILES: &[Self] = Self::ALL.split_last().expect("there are some").1;
}

/// A server's disk after a loss.
struct Left {
    disk: Disk,
    /// The server notices the loss, so that it does not vote.
    is_noticed: bool,
}

impl World {
    /// Now and then an event of this world's situations happens; all other events do not depend on it.
    pub fn lose_some(&mut self) {
        let conditions = &self.witness.conditions;
        let (loses_files, loses_machine) = (conditions.loses_files, conditions.loses_machine);
        if !loses_files && !loses_machine {
            return;
        }
        let count = self.servers.len();
        let at = self.witness.rare.pick(count);
        match self.witness.rare.below(300) {
            0..3 if loses_files => self.back_up(at),
            3..6 if loses_files => {
                self.cut_power(at);
                // The file seldom exists.
                let is_saved = !self.servers[at].disk.next.is_empty();
                let loss = match is_saved && self.witness.rare.one_in(3) {
                    true => Loss::ProposedView,
                    false => Loss::FILES[self.witness.rare.pick(Loss::FILES.len())],
                };
                self.lose(at, loss);
            }
            6 if loses_machine => self.lose_machine(at),
            7..40 if loses_machine => self.remove_lost(),
            _ => {}
        }
    }

    /// Copies a disk as a power cut would leave it: an operator may restore it later.
    fn back_up(&mut self, at: usize) {
        let mut disk = self.servers[at].disk.clone();
        disk.asked.clear();
        self.witness.backups.insert(at, disk);
    }

    /// A server that is down loses files, if the other servers can do without them.
    pub fn lose(&mut self, at: usize, loss: Loss) {
        if self.servers[at].peer.is_some() || self.servers[at].is_gone {
            return;
        }
        let Some(Left { disk, is_noticed }) = self.left_by(at, loss) else { return };
        // What a server without a vote had before its last loss, and promised, can't be compared any more: it gets no vote by losing more.
        // Without currentEpoch it votes if its history is of the epoch that it has accepted (world 135000021857).
        let is_doubtful = |disk: &Disk| last_of(disk.whole()).epoch() < disk.accepted;
        let votes = |disk: &Disk| !(disk.is_unsure || disk.lacks_current && is_doubtful(disk));
        if votes(&disk) && !votes(&self.servers[at].disk) {
            return;
        }
        let mut views = self.believed_views();
        views.extend(self.views_on(at, &disk));
        views.extend(disk.view.iter().chain(&disk.next).cloned());
        let others =
            |id: ServerId| self.can_do_without(id, at) && (is_noticed || self.makes_up_for(id, at));
        let is_free = loss == Loss::View || self.witness.conditions.loses_needed;
        if !is_free && !views.iter().all(|view| is_quorum(view, others)) {
            return;
        }
        self.witness.note(|| format!("{at} loses {loss:?}"));
        *self.witness.losses.entry(loss).or_default() += 1;
        if is_noticed || !self.witness.conditions.loses_needed {
            // Other servers make up for what it can't notice, in the configurations that count now: not in an older one.
            let had = self.servers[at].disk.whole().to_vec();
            self.witness.lost.push((ServerId(at as i64), had));
        }
        if loss == Loss::OlderDisk {
            self.witness.check(Event::OlderView { at });
        }
        self.witness.forget_acknowledged(at);
        self.servers[at].disk = disk;
    }

    /// What a loss leaves of a disk: nothing, if no server can start from what is left. `None`: there is nothing to lose.
    fn left_by(&self, at: usize, loss: Loss) -> Option<Left> {
        let mut disk = self.servers[at].disk.clone();
        let is_new = self.witness.conditions.marks_new;
        let mut is_noticed = false;
        match loss {
            // The server does not start, and its operator empties the directory.
            Loss::AcceptedEpoch if shows_lost_promise(&disk) => {
                return self.left_by(at, Loss::Everything);
            }
            Loss::AcceptedEpoch => disk.lose_epochs(true, false),
            Loss::CurrentEpoch => {
                is_noticed = last_of(disk.whole()).epoch() < disk.accepted;
                disk.lose_epochs(false, true);
            }
            Loss::BothEpochs => disk.lose_epochs(true, true),
            Loss::Log => disk.lose_log(),
            // The data is quarantined if only epochs are left, and no server could start from a log alone.
            Loss::Tree if disk.log.is_empty() && Epoch(0) < disk.current => {
                is_noticed = true;
                disk.lose();
            }
            Loss::Tree => return self.left_by(at, Loss::Everything),
            Loss::ProposedView if disk.next.is_empty() => return None,
            Loss::ProposedView => disk.next.clear(),
            Loss::View => {
                disk.view.take()?;
                disk.view = Some(self.newest_view());
                is_noticed = true;
            }
            Loss::Everything => {
                disk.lose();
                disk.lose_epochs(true, true);
                (disk.is_unsure, is_noticed) = (is_new, is_new);
            }
            Loss::OlderDisk => disk = self.witness.backups.get(&at)?.clone(),
            Loss::Machine => return None,
        }
        Some(Left { disk, is_noticed })
    }

    /// A machine is lost, if the other servers can do without it.
    fn lose_machine(&mut self, at: usize) {
        let newest = self.newest_view();
        // An observer acknowledges no proposal of a reconfiguration that makes it a voter, so it does not help to remove the machine.
        let others = |id: ServerId| self.can_do_without(id, at) && !newest.is_observer(id);
        let left = self.servers.iter().filter(|server| !server.is_gone).count();
        if left < 3 || !self.believed_views().iter().all(|view| is_quorum(view, others)) {
            return;
        }
        self.cut_power(at);
        self.witness.note(|| format!("the machine of {at} is lost"));
        *self.witness.losses.entry(Loss::Machine).or_default() += 1;
        let had = self.servers[at].disk.whole().to_vec();
        self.witness.lost.push((ServerId(at as i64), had));
        self.servers[at].is_gone = true;
    }

    /// The operator has a leader propose the configuration without the lost members, if it can be committed.
    pub fn remove_lost(&mut self) {
        let Some(at) = self.servers.iter().position(|server| server.leads.is_some()) else {
            return;
        };
        let core = &self.servers[at].peer.as_ref().expect("the server leads").core;
        let Some(view) = self.without_lost(&core.view).filter(|_| core.next.is_none()) else {
            return;
        };
        let Some(Role::Leading(leader)) = self.servers[at].peer.as_ref().map(Peer::role) else {
            return;
        };
        let synced = leader.synced(core);
        if is_quorum(&view, |id| synced.contains(&id)) {
            self.propose_view(at, view);
        }
    }

    /// The configuration without the lost members. `None`: no member is lost, or no quorum of voters is left.
    fn without_lost(&self, view: &View) -> Option<View> {
        let is_gone = |id: &ServerId| self.servers[id.0 as usize].is_gone;
        let mut left = view.clone();
        left.members.retain(|id, _| !is_gone(id));
        if let Rule::Hierarchical { groups, weights } = &mut left.rule {
            groups.values_mut().for_each(|group| group.retain(|id| !is_gone(id)));
            groups.retain(|_, group| !group.is_empty());
            weights.retain(|id, _| !is_gone(id));
        }
        let is_less = left.members.len() < view.members.len();
        (is_less && is_quorum(&left, |id| left.is_voter(id))).then_some(left)
    }

    /// Whether the ensemble has a member whose machine is lost, and can do without it.
    pub fn has_lost(&self) -> bool {
        self.without_lost(&self.newest_view()).is_some()
    }

    /// Whether another server than `at` has all that it ever had, as far as that server knows, and keeps it: its leader may have truncated
    /// its log, and the disk has not done so yet (world 41000028931).
    fn can_do_without(&self, other: ServerId, at: usize) -> bool {
        let Some(server) = self.servers.get(other.0 as usize) else { return false };
        let knows = server.peer.as_ref().is_none_or(|peer| !peer.core.is_unsure);
        let Disk { is_unsure, lacks_current, .. } = server.disk;
        let is_whole = !is_unsure && !lacks_current && knows && !server.disk.is_to_be_cut();
        other.0 as usize != at && is_whole && !server.is_gone
    }

    /// Whether server `other` has all that server `at` has promised, and all that `at` may have helped to commit.
    pub fn makes_up_for(&self, other: ServerId, at: usize) -> bool {
        let (has, lost) = (&self.servers[other.0 as usize].disk, &self.servers[at].disk);
        // A transaction that is not in the history of a later epoch was never committed.
        let is_over = last_of(lost.whole()).epoch() < has.current;
        lost.accepted <= has.accepted
            && lost.current <= has.current
            && has.whole().starts_with(self.witness.checks().committed())
            && (is_over || has.whole().starts_with(lost.whole()))
    }

    /// All configurations that count at any server, or would after a restart.
    fn believed_views(&self) -> Vec<View> {
        let disks = self.servers.iter().map(|server| &server.disk);
        let saved = disks.flat_map(|disk| disk.view.iter().chain(&disk.next)).cloned();
        let views = (0..self.servers.len()).flat_map(|at| self.views_of(at));
        views.chain(saved).collect()
    }

    /// The newest configuration that any server has or had in force.
    fn newest_view(&self) -> View {
        let views = self.servers.iter().filter_map(|server| server.disk.view.as_ref());
        let newest = views.max_by_key(|view| view.version).cloned();
        newest.unwrap_or_else(|| self.witness.conditions.first_view())
    }
}

/// Whether a disk without acceptedEpoch shows by its currentEpoch, or by that and its history, that the server has promised an epoch.
fn shows_lost_promise(disk: &Disk) -> bool {
    let is_ahead = !disk.is_unsure && Epoch(0) < last_of(disk.whole()).epoch();
    Epoch(0) < disk.current || disk.joins || !disk.lacks_current && is_ahead
}
