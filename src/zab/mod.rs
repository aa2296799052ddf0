//! Agreement: the election of a leader, and the order in which transactions are committed.
//!
//! [`Peer`] is the machine of one server. It looks for a leader (`election`), leads ([`Leader`]) or learns
//! ([`Learner`], a follower with its observers in `observer_master.rs`); all three share its [`Core`]: the view, the epochs
//! it promised, and the [`History`]. Leader and observer master share `learner_handlers.rs`. Payloads are opaque bytes. A
//! standalone server is a leader too: its own disk is the quorum, and a proposal takes the same steps as in an ensemble:
//! append, flush, count, commit.
//!
//! # Invariants
//! 1. `committed <= logged <= proposed`. While a leader broadcasts, it commits what a quorum of each configuration that counts has
//!    acknowledged, and nothing else.
//! 2. An epoch is on disk before a packet names it, and a history before the currentEpoch that stands for it.
//! 3. A learner commits nothing of a synchronisation before UPTODATE. A leader commits its own history once its epoch is open,
//!    so that a tree can be sent, and serves no client before a quorum has acknowledged NEWLEADER.
//! 4. Election begins once all that was appended is durable.
//!
//! After each step every machine asserts its invariants (`assert_invariants`), in release builds too: each assertion takes
//! the same time in an ensemble of any size. Assertions that look at every learner are for tests and the simulator. No packet or
//! notification can break one: those of other servers are checked before they change the state.
//!
//! # Not here
//! What a payload means (`tree`), what it answers (`request`), how it is stored (`store`).

mod actions;
mod awaited_electors;
mod awaited_leader;
mod bring_up;
mod broadcast;
mod configurations;
mod core;
mod doubt;
mod early_learners;
pub mod election;
mod election_links;
mod entry_error;
mod history;
mod inputs;
mod invariants;
mod lag;
mod later_promises;
mod leader;
mod leader_link;
mod learner;
mod learner_handler;
mod learner_handlers;
mod learner_phase;
mod left_behind;
mod notes;
mod observer_master;
mod oracle;
mod packet;
mod peer;
mod quiet;
mod reconfig;
mod relaying;
mod restore;
mod seen_views;
mod sync;
mod waiting_syncs;

pub use actions::Action;
pub use core::{Core, Settings};
pub use election::{Notification, PeerState, Views, Vote};
pub use entry_error::EntryError;
pub use history::History;
pub use inputs::{Input, LearnerConnectionId, Promise};
pub use leader::Leader;
pub use learner::Learner;
pub use learner_handlers::SAME_MYID;
pub use notes::{Learners, Note, PeerLag, Stats, Sync, SyncType};
pub use packet::{LearnerInfo, Packet, PacketError, PacketLimits, Request, SIGNATURE};
pub use peer::{Peer, Role};
pub use sync::LogRead;
pub use waiting_syncs::WAITING_SYNCS_MAX;
