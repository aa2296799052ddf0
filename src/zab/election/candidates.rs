//! Candidates that only a proposed configuration lets vote, which came with another server's vote for one of them.

use super::{Notification, PeerState, Views, Vote};
use crate::model::{ServerId, View};
use bytes::Bytes;

/// Bytes of a configuration that may come with a vote: that of some hundred servers.
const TEXT_MAX: usize = 32 * 1024;

/// The servers of a proposed configuration that came with a vote.
#[derive(Clone, Debug)]
pub struct Candidates {
    pub view: View,
    pub text: Bytes,
    /// The tick at which this server votes without them again.
    pub until: u64,
}

impl Candidates {
    /// The configuration that lets the candidate of a vote vote which no configuration known here does, if server `me` is to vote for that
    /// candidate: it has more than this server, and this server votes or would vote by that configuration.
    ///
    /// Such a candidate may have what was committed by that configuration, and then no other server can lead: without this server's vote
    /// there might be no quorum of the configuration in force, or of the other one.
    ///
    /// * `own`: this server's vote for itself; `history`: the vote that it would have if it voted.
    pub fn of_vote(
        (from, heard): (ServerId, &Notification),
        me: ServerId,
        (own, history): (Vote, Vote),
        views: &Views,
        until: u64,
    ) -> Option<Self> {
        let candidate = heard.vote.leader;
        let has_more = (history.epoch, history.zxid) < (heard.vote.epoch, heard.vote.zxid);
        let may = history.zxid != -1 && heard.state == PeerState::Looking;
        let text = heard.candidates_view.clone().filter(|text| text.len() <= TEXT_MAX)?;
        let view = view_in(from, &text).filter(|_| may && has_more)?;
        let votes = own != Vote::NOTHING || view.is_voter(me);
        let is_newer = views.current.version < view.version;
        let lets_vote = view.is_voter(candidate) && view.weight(candidate) != 0;
        (votes && is_newer && lets_vote).then_some(Self { view, text, until })
    }

    /// Whether a server may be voted for.
    pub fn has(&self, id: ServerId) -> bool {
        self.view.is_voter(id)
    }
}

/// The configuration in a notification; text that is none is ignored, as in Java.
pub fn view_in(from: ServerId, text: &[u8]) -> Option<View> {
    let parsed = View::parse(&String::from_utf8_lossy(text));
    parsed
        .inspect_err(|error| tracing::warn!(target: crate::model::STRANGERS, server_id = from.0, %error, "the configuration in a notification can't be read and is ignored: check the version of that server"))
        .ok()
}
