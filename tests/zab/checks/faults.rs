//! Planted faults, one for each check: the check finds it, and no other check does.

use super::Event;
use bytes::Bytes;
use oxkeeper::model::{Epoch, View, Zxid};
use oxkeeper::zab::Packet;
use support::disk::{Disk, Entry};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The checks are shown that a follower begins to serve with another last transaction.
    OtherTransaction,
    /// The checks are shown that a server in no configuration had established each epoch first.
    SecondLeader,
    /// The checks are shown that each server serves one transaction less than before.
    StepBack,
    /// The checks are shown that a later epoch is established right after each one, so that commits come late.
    LaterEpoch,
    /// The checks are shown that what a leader commits is on one disk less than a quorum.
    FewDisks,
    /// The checks are shown that the disk of a learner is empty whenever it sends a packet.
    EmptyDisk,
    /// The checks are shown that a configuration is in force that no leader has proposed.
    UndecidedView,
    /// The checks are shown that the last transaction is on no disk when all servers have settled.
    ShortDisk,
    /// The checks are shown that each epoch was chosen with one voter less than a quorum.
    UnaskedEpoch,
    /// The checks are shown that each learner acknowledges a proposal right after its ACKEPOCH.
    EarlyAck,
}

impl Fault {
    /// Shows the checks an event, and a false event instead of it, before it or after it.
    pub fn show(
        self,
        event: Event<'_>,
        look: &mut dyn FnMut(Event<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        match (self, event) {
            (Self::OtherTransaction, Event::Follows { at, tree }) => {
                let mut other = tree.to_vec();
                if let Some((_, payload)) = other.last_mut() {
                    *payload = Bytes::from_static(b"other");
                }
                look(Event::Follows { at, tree: &other })?;
                look(Event::Follows { at, tree })
            }
            (Self::SecondLeader, Event::Leads { at, epoch, tree, holders, quorum }) => {
                look(Event::Leads { at: usize::MAX, epoch, tree, holders, quorum })?;
                look(Event::Leads { at, epoch, tree, holders, quorum })
            }
            (Self::LaterEpoch, Event::Leads { at, epoch, tree, holders, quorum }) => {
                look(Event::Leads { at, epoch, tree, holders, quorum })?;
                let epoch = Epoch(epoch.0 + 1_000_000);
                look(Event::Leads { at, epoch, tree, holders, quorum })
            }
            (Self::StepBack, Event::Applied { at, tree, leads }) => {
                look(Event::Applied { at, tree, leads })?;
                look(Event::Follows { at, tree: without_last(tree) })
            }
            (Self::FewDisks, Event::Applied { at, tree, leads: Some((_, quorum)) }) => {
                look(Event::Applied { at, tree, leads: Some((quorum - 1, quorum)) })
            }
            (Self::EmptyDisk, Event::ToLeader { at, packet, epoch, votes, .. }) => {
                let (disk, known) = (&Disk::default(), &mut std::iter::empty());
                look(Event::ToLeader { at, packet, disk, epoch, votes, known })
            }
            (Self::UnaskedEpoch, Event::Chooses { at, epoch, quorum, .. }) => {
                look(Event::Chooses { at, epoch, answered: quorum - 1, quorum })
            }
            (Self::EarlyAck, Event::ToLeader { at, packet, disk, epoch, votes, known }) => {
                look(Event::ToLeader { at, packet, disk, epoch, votes, known })?;
                if !matches!(packet, Packet::AckEpoch { .. }) {
                    return Ok(());
                }
                let (packet, known) =
                    (&Packet::Ack { zxid: Zxid::new(epoch, 1) }, &mut std::iter::empty());
                look(Event::ToLeader { at, packet, disk, epoch, votes, known })
            }
            (Self::UndecidedView, Event::InForce { at, view, leads }) => {
                look(Event::InForce { at, view, leads })?;
                let other = View { version: view.version + 1, ..view.clone() };
                look(Event::InForce { at, view: &other, leads: false })
            }
            (Self::ShortDisk, Event::Calm { at, tree, disk, view }) => {
                look(Event::Calm { at, tree, disk: without_last(disk), view })
            }
            (_, event) => look(event),
        }
    }
}

fn without_last(entries: &[Entry]) -> &[Entry] {
    entries.split_last().map_or(entries, |(_, before)| before)
}
