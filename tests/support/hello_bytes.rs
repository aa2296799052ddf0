//! What a fuzzer sends over new connections to the quorum port and to the election port (fuzz target `hello`).
//!
//! The input: which SASL exchanges there are, a phase, a byte of settings, and a list of moves.

use super::election_streams::ElectionStreams;
use super::learner_streams::LearnerStreams;
use super::moves::{Allowance, Moves};
use super::phases::{Phase, SaslExchanges};
use jute::put_frame;
use oxkeeper::member::QuorumPeer;
use oxkeeper::member::election_connections::ConnectionId;
use oxkeeper::member::election_hello::Hello;
use oxkeeper::model::ServerId;
use std::sync::Arc;

/// Phases in which a member accepts learners, and phases in which it does not.
const PHASES: [Phase; 5] = [
    Phase::Looking,
    Phase::LeaderAwaitsEpochs,
    Phase::LeaderBroadcasts,
    Phase::ObserverMaster,
    Phase::FollowerAwaitsLeaderInfo,
];
const IDS: [i64; 8] = [0, 1, 2, 3, 9, -1, i64::MIN, i64::MAX];
const ENTRY_MAX: usize = 2 * 0xf_ffff;
/// The member's tickTime is a twentieth of the usual one. With this the time limit of a learner's hello, 10 s, is one that takes a second.
const HASTE: u64 = 10;
/// The last two are longer than every time limit of a connection.
const PAUSES_MS: [u64; 5] = [5, 60, 500, 1100, 2500];
const TIME_MS: u64 = 2500;

struct Ports {
    learners: LearnerStreams,
    elections: ElectionStreams,
    /// Connections to the quorum port that this input made, oldest first.
    fresh: Vec<QuorumPeer>,
    allowance: Allowance,
}

/// Plays an input, and returns the streams, with the member as the input has left it.
///
/// * `exchanges`: those that inputs may choose.
///
/// # Panics
/// When the member ends, fails an assertion, or keeps more bytes than it received.
pub fn play(input: &[u8], exchanges: &[Arc<dyn SaslExchanges>]) -> LearnerStreams {
    let mut moves = Moves(input);
    let exchanges = exchanges[usize::from(moves.byte()) % exchanges.len()].clone();
    let phase = moves.choose(&PHASES).unwrap_or(Phase::Looking);
    let settings = moves.byte();
    let mut learners = phase.enter(settings, exchanges.clone(), ENTRY_MAX);
    learners.haste = HASTE;
    let elections = ElectionStreams::new(exchanges);
    let mut ports =
        Ports { learners, elections, fresh: Vec::new(), allowance: Allowance::new(TIME_MS) };
    ports.fresh.push(ports.learners.connect());
    ports.elections.accept(&mut ports.learners.member);
    while !moves.is_empty() {
        ports.one_move(&mut moves);
        let member = &ports.learners.member;
        assert!(!member.has_ended(), "{:?}", member.host.ended);
    }
    ports.elections.check();
    ports.learners.end_all();
    ports.learners
}

impl Ports {
    fn one_move(&mut self, moves: &mut Moves<'_>) {
        let choice = moves.byte();
        let which = usize::from(choice / 16);
        let learners = &mut self.learners;
        let open = self.elections.open(&learners.member);
        // The newest first.
        let caller = open.iter().rev().nth(which % open.len().max(1)).copied();
        let fresh = self.fresh.iter().rev().nth(which % self.fresh.len().max(1)).copied();
        match (choice % 16, fresh, caller) {
            (0..3, Some(peer), _) => learners.receive(peer, moves.bytes()),
            (3, Some(peer), _) => {
                // All the rest of the input.
                learners.receive(peer, moves.take(usize::MAX));
            }
            (4, Some(peer), _) => learners.open(peer),
            (5, Some(peer), _) => learners.end(peer),
            (6, ..) => self.fresh.push(learners.connect()),
            (7, _, Some(caller)) => self.elections.say_exchange(&mut learners.member, caller),
            (8, _, Some(caller)) => self.hello(caller, moves),
            (9, _, Some(caller)) => {
                self.elections.receive(&mut learners.member, caller, moves.bytes());
            }
            (10, _, Some(caller)) => {
                let mut bytes = Vec::new();
                put_frame(&mut bytes, |to| to.extend_from_slice(moves.bytes()));
                self.elections.receive(&mut learners.member, caller, &bytes);
            }
            (11, _, Some(caller)) => self.elections.end(&mut learners.member, caller),
            (12, ..) => self.elections.accept(&mut learners.member),
            (13, ..) => learners.pass(self.allowance.pause(PAUSES_MS[which % 5])),
            (14, ..) => {
                learners.member.report(false);
                learners.follow_member();
            }
            _ => learners.report_all(),
        }
    }

    fn hello(&mut self, caller: ConnectionId, moves: &mut Moves<'_>) {
        let choice = moves.byte();
        let text = String::from_utf8_lossy(moves.bytes());
        let addresses: Vec<_> = text.split('|').map(|host| (host.to_owned(), 3888)).collect();
        let id = ServerId(IDS[usize::from(choice) % IDS.len()]);
        let bytes = Hello { id, addresses }.encode(choice & 0x80 != 0);
        self.elections.receive(&mut self.learners.member, caller, &bytes);
    }
}
