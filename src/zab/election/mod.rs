//! Who leads: one server's part in one election (Java: FastLeaderElection).
//!
//! Everyone tells everyone whom it wants, takes over what it hears and finds better, and ends once a quorum wants the
//! same. An election decides nothing about transactions: that a leader holds all committed ones is made sure of later, in
//! discovery. So a wrong outcome costs time only, and here time is what matters.
//!
//! # Where this is not Java's way, and why
//! * Java waits 200 ms for a better vote after a quorum agrees. With every voter that is not known to be dead agreeing there is nobody
//!   who could have a better one, so the wait ends at once.
//! * While it waits, Java drops what it hears but for better votes. Here votes are counted on, so that the rule above
//!   can see them; a worse vote of a later round is dropped all the same.
//! * A server that does not vote is answered with the vote of this election; Java tells that of the last, whose leader
//!   may be dead. It is answered at most every 200 ms, and only while it looks: Java's rules let two servers answer each
//!   other without end when a voter starts anew beside an observer of a later round.
//! * A voter without a link is dialed every second. Java dials as seldom as it resends: after a minute, in the end.

mod ballots;
mod current_vote;
mod machine;
#[cfg(test)]
mod network_tests;
mod notification;
#[cfg(test)]
mod tests;
mod views;

pub use current_vote::{Backing, CurrentVote};
pub use machine::{Action, Elected, Election, Input, Setup, TICK_MS};
pub use notification::{Notification, NotificationError, PeerState, Vote};
pub use views::Views;
