//! One server's part in one election of a leader (Java: FastLeaderElection).
//!
//! Every voter sends its vote to all others, adopts a better vote that it receives, and ends its election once a quorum
//! has the same vote. An election decides nothing about transactions: discovery makes sure that a leader holds all
//! committed ones. So a wrong outcome costs time only, and here time is what matters.
//!
//! # Where this differs from Java, and why
//! * Java waits 200 ms for a better vote after a quorum agrees. When all voters that are not known to be dead agree, no
//!   voter can have a better vote, so the wait ends at once.
//! * While it waits, Java drops notifications without a better vote. Here they are still counted, for the rule above; a
//!   worse vote of a later round is dropped nevertheless.
//! * A server that does not vote is answered with the vote of this election; Java sends the vote of the last election,
//!   whose leader may be dead. Such a server is answered at most every 200 ms, and only while it looks: Java's rules let
//!   two servers answer each other without end when a voter restarts beside an observer of a later round.
//! * A voter without an election connection is dialed every second. Java dials only when it resends: in the end once a
//!   minute.
//! * A server that has doubted its tree (digests) votes for any other with as much history, and stands after 400 ms without one.

mod ballots;
mod candidates;
mod current_vote;
mod machine;
mod notification;
mod pair;
mod unknown_candidates;
mod views;
mod yielding;

pub use current_vote::{CurrentVote, Electors};
pub use machine::{Action, Elected, Election, Input, Setup, TICK_MS};
pub use notification::{Notification, NotificationError, PeerState, Vote};
pub use views::Views;
