//! Scripts: what happens to one server or to the servers of an ensemble, and what they do about it, as text.
//!
//! A block is commands, `----`, and what the servers did. `UPDATE_EXPECT=1` rewrites the second part: commit the difference only when
//! you can explain it.
//!
//! | Command | Meaning |
//! |---|---|
//! | `server 1 of 1 2 3 [observers 4] accepted E current E last Z [trees] [single] [reconfigs] [relays] [oracle] [waits E R] [lag BYTES] [version Z] [doubts] [knows Z [after Z] voters 1 2 [observers 4]] [saved Z voters 1 2 [observers 4]]` | it starts; `last -`: nothing that counts; `trees`: forceSnapshotSync; `single`: one synchronisation at a time; `reconfigs`: reconfigEnabled; `relays`: observerMasterPort; `oracle`: oraclePath; `waits`: observer.election.DelayMs, observer.reconnectDelayMs; `lag`: oxkeeper.lagBytes, of which each of a script's transactions takes about 100; `version`: of the configuration in force; `doubts`: its tree does not match the digests in its log; `knows`: a proposed configuration that the server knows; `after`: the configuration proposed before it, if the history names one; `saved`: a configuration in its file of proposed ones (`.dynamic.next`) |
//! | `elected N` | all other voters tell it that server N leads, which ends its election |
//! | `zxids used up` | the leader gives up, because its epoch has no zxid left |
//! | `restored Z [past E]` | the leader restores a tree, which gets this zxid; the next epoch is to be later than E |
//! | `oracle yes`, `oracle no` | whether it may go on without the other of two voters |
//! | `leader PACKET`, `leader gone` | from its leader |
//! | `learner L PACKET`, `learner L gone` | from the learner of connection L |
//! | `disk`, `disk N` | the disk performs all commands that it has been given, or the next N of them |
//! | `disk can't truncate, ends at Z` | instead of the next truncation |
//! | `disk has Z`, `disk has accepted E`, `disk has current E`, `disk is truncated to Z`, `disk has tree Z` | the disk reports this, and the other commands that it has been given stay pending |
//! | `learner L progress`, `leader progress` | some more of a tree was sent or received |
//! | `propose Z [voters 1 2 [observers 4]]` | a transaction of its own clients; one that proposes a configuration |
//! | `tree L Z` | a tree is on its way to a learner |
//! | `tree knows Z [after Z] voters 1 2 [observers 4]` | the configurations in the tree that the server has received, which may be several, each after its own `knows` |
//! | `sync L` | a client of learner L asks for SYNC, which is answered after the commit of all that was proposed before |
//! | `log L before Z, entries Z Z` | the log on disk is read for learner L: the zxid before the entries (`-`: none), and the entries |
//! | `heard N STATE leader N epoch E zxid Z round R [version Z voters 1 2 [observers 4]] [candidate version Z voters 1 2 [observers 4]]`, `heard N STATE nothing round R`, `election connection N up`, `election connection N down`, `election port N unreached` | from election connections; `candidate`: the proposed configuration that lets the candidate vote |
//! | `tick N` | N times 5 ms |
//! | `show votes`, `state` | prints what goes to election connections, too; prints the server's role and what it has in memory |
//! | `configurations` | prints the configurations that count at the server |
//! | `synced` | prints the servers that a leader counts as synchronised when a reconfiguration is requested |
//!
//! A script that begins with `servers` drives an ensemble: `zab` peers on virtual disks, with learner connections and election
//! connections between them. Each line of an outcome begins with the server that does it, and a learner has its server's id.
//!
//! | Command | Meaning |
//! |---|---|
//! | `servers 1 2 3 [observers 4] [trees] [single] [reconfigs] [relays] [waits E R] [lag BYTES]` | they start, with empty disks |
//! | `elect`, `elect N N` | notifications arrive and time passes until no server (none of these) looks for a leader |
//! | `elected N`, `elected N at N N` | elections of all servers that look (of these) end with leader N |
//! | `settle` | packets arrive and disks write until nothing moves; no time passes |
//! | `deliver`, `deliver A to B`, `deliver A to B COUNT` | only packets arrive: all, from A to B, the next COUNT of those |
//! | `hold A to B`, `release A to B` | what A sends to B is held back until it is released: `elect`, `settle` and `deliver` alone leave it |
//! | `partition A B from C D`, `heal` | holds back all that servers A and B send to C and D, or these to A and B; releases all that is held back |
//! | `run COUNT` | COUNT rounds, in each of which disks write and all packets and notifications arrive, except for what is held; then 5 ms pass |
//! | `disconnect A B` | the learner connection between them ends, and what was under way on it is lost |
//! | `disk N`, `disk N COUNT` | server N's disk performs all commands that it has been given, or the next COUNT of them |
//! | `hold disk N`, `release disk N` | `settle` leaves this disk alone |
//! | `propose N [voters 1 2 [observers 4]]` | leader N proposes a transaction of its clients, or a configuration |
//! | `crash N`, `crash N after COUNT` | server N loses power: the commands that its disk has not performed are lost, except for the first COUNT of them |
//! | `restart N` | a server that is down starts from its disk |
//! | `wipe N` | the history on the disk of a server that is down is lost; its epochs stay |
//! | `erase N` | a server that is down loses all that it has on disk but its configuration files |
//! | `tick COUNT`, `tick COUNT at N N` | COUNT times 5 ms pass everywhere, or at these servers |
//! | `state`, `state N` | prints what each server (server N) is, has in memory and on disk, and has applied |
//! | `configurations`, `configurations N` | prints the configurations that count at each server that is up (server N) |
//! | `quiet`, `loud`, `show votes` | only `state` and `configurations` print; all is printed again; notifications too |
//!
//! Zxids are `epoch:counter`, both hexadecimal as in logs, and epochs are decimal numbers; a PACKET is its name and its zxid, epoch or,
//! in an ACKEPOCH, both; a FOLLOWERINFO may have `version Z` or `protocol N` after that; PROPOSAL, NEWLEADER and INFORMANDACTIVATE may
//! have `[version Z] voters 1 2 [observers 4]` after that.

use super::notation::{
    action_text, connection_of, ids, known_views, maybe, notification_of, number, packet_of,
    payload, payload_with, promised, report_text, server, settings, state_text, view_in_words,
    views_text, zxid,
};
use super::script_ensemble::EnsembleStage;
use oxkeeper::model::{Epoch, Epochs, ServerId};
use oxkeeper::zab::{Action, Input, LogRead, Peer, Promise, Role};
use std::fmt::Write as _;
use support::disk::Write;
use support::peer::PeerOnDisk;
use support::views::{view_in, view_of};

/// Runs a script; returns it with what the servers did.
pub fn outcome(text: &str) -> String {
    let mut stage: Box<dyn Stage> = Box::new(OneServer::default());
    let (mut out, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line == "----" {
            out.push_str(&std::mem::take(stage.said()));
            // Skips what was expected, up to an empty line.
            if lines.by_ref().find(|line| line.is_empty()).is_some() {
                out.push('\n');
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            if words[0] == "servers" {
                stage = Box::new(EnsembleStage::new(&words));
            } else {
                stage.command(&words);
            }
        }
    }
    assert!(stage.said().is_empty(), "commands without an outcome: end them with ----");
    let text = out.trim_end().to_owned();
    text + "\n"
}

/// What performs a script's commands: one server, or an ensemble.
pub trait Stage {
    fn command(&mut self, words: &[&str]);

    /// What the servers did and is not yet in the outcome, a line each.
    fn said(&mut self) -> &mut String;
}

/// One server; the script stands for its disk, connections and clock.
#[derive(Default)]
struct OneServer {
    server: Option<PeerOnDisk>,
    shows_votes: bool,
    said: String,
}

impl Stage for OneServer {
    fn said(&mut self) -> &mut String {
        &mut self.said
    }

    fn command(&mut self, words: &[&str]) {
        let input = match words[..] {
            ["server", ..] => return self.start(words),
            ["show", "votes"] => return self.shows_votes = true,
            ["state"] => return self.state(),
            ["configurations"] => return self.views(),
            ["synced"] => return self.synced(),
            ["disk"] => {
                while !self.server().disk.asked.is_empty() {
                    self.write_one();
                }
                return;
            }
            ["disk", "can't", "truncate", "ends", "at", last] => {
                let asked = &mut self.server().disk.asked;
                let is_cut = |write: &Write| matches!(write, Write::Truncate { .. });
                let at = asked.iter().position(is_cut).expect("no cut was asked for");
                asked.remove(at);
                Input::CannotTruncate { last: zxid(last) }
            }
            ["disk", "has", "accepted", epoch] => self.has(promised(Promise::Accepted, epoch)),
            ["disk", "has", "current", epoch] => self.has(promised(Promise::Current, epoch)),
            ["disk", "has", "tree", at] => self.has(Input::Installed { zxid: zxid(at) }),
            ["disk", "has", at] => self.has(Input::Flushed { through: zxid(at) }),
            ["disk", "is", "truncated", "to", to] => self.has(Input::Truncated { to: zxid(to) }),
            ["disk", count] => return (0..number(count)).for_each(|_| self.write_one()),
            ["elected", id] => return self.elect(server(id)),
            ["zxids", "used", "up"] => {
                Input::StandDown { why: "the zxids of this epoch are used up".to_owned() }
            }
            ["restored", at] => Input::Restore { zxid: zxid(at), past: None },
            ["restored", at, "past", past] => {
                let past = number(past);
                Input::Restore { zxid: zxid(at), past: Some(Epoch(past)) }
            }
            ["oracle", answer] => Input::Oracle { agrees: answer == "yes" },
            ["leader", "gone"] => Input::LeaderGone,
            ["leader", "progress"] => Input::Progress { connection: None },
            ["learner", connection, "progress"] => {
                Input::Progress { connection: Some(connection_of(connection)) }
            }
            ["leader", ref packet @ ..] => Input::Leader { packet: packet_of(packet) },
            ["learner", connection, "gone"] => {
                Input::LearnerGone { connection: connection_of(connection) }
            }
            ["learner", connection, ref packet @ ..] => {
                Input::Learner { connection: connection_of(connection), packet: packet_of(packet) }
            }
            ["propose", at, ref view @ ..] => {
                Input::Propose { zxid: zxid(at), payload: payload_with(zxid(at), view) }
            }
            ["tree", "knows", ..] => {
                let views = known_views(&words[1..]).into_iter().map(|(view, _)| view).collect();
                Input::TreeViews { views }
            }
            ["sync", connection] => Input::Sync { connection: connection_of(connection) },
            ["tree", connection, at] => {
                Input::SnapshotBegun { connection: connection_of(connection), zxid: zxid(at) }
            }
            ["log", connection, "before", before, "entries", ref entries @ ..] => {
                let entries = entries.iter().map(|at| (zxid(at), payload(zxid(at)))).collect();
                let read = LogRead { before: maybe(before), entries };
                Input::LogRead { connection: connection_of(connection), read }
            }
            ["heard", from, ref said @ ..] => {
                Input::Notification { from: server(from), notification: notification_of(said) }
            }
            ["election", "connection", to, "up"] => Input::ElectionConnected { to: server(to) },
            ["election", "connection", to, "down"] => {
                Input::ElectionDisconnected { to: server(to) }
            }
            ["election", "port", to, "unreached"] => Input::ElectionUnreached { to: server(to) },
            ["tick", count] => {
                return (0..number(count)).for_each(|_| self.step(Input::Tick));
            }
            _ => panic!("no such command: {words:?}"),
        };
        self.step(input);
    }
}

impl OneServer {
    fn server(&mut self) -> &mut PeerOnDisk {
        self.server.as_mut().expect("no server yet")
    }

    fn elect(&mut self, leader: ServerId) {
        let votes = self.server().votes_for(leader.0);
        if votes.is_empty() {
            writeln!(self.said, "= no election is under way").unwrap();
        }
        votes.into_iter().for_each(|vote| self.step(vote));
        let peer = &self.server().peer;
        let goes_on = matches!(peer.role(), Role::Looking(Some(_))) && !peer.core.is_unsure;
        assert!(!goes_on, "elected {}: the votes are not enough", leader.0);
    }

    /// Removes the pending disk commands that `done` reports.
    fn has(&mut self, done: Input) -> Input {
        let is_done = |asked: &Write| match (asked, &done) {
            (Write::Append((asked, _)), Input::Flushed { through }) => asked <= through,
            (asked, done) => asked.report().as_ref() == Some(done),
        };
        let is_flush = matches!(done, Input::Flushed { .. });
        let mut left = if is_flush { usize::MAX } else { 1 };
        self.server().disk.asked.retain(|asked| {
            let goes = left > 0 && is_done(asked);
            left -= usize::from(goes);
            !goes
        });
        done
    }

    fn start(&mut self, words: &[&str]) {
        let place = |name: &str| words.iter().position(|word| *word == name).unwrap_or(words.len());
        let (words, saved) = words.split_at(place("saved"));
        let (words, known) = words.split_at(place("knows").min(words.len()));
        let one = |name: &str| {
            let at = words.iter().position(|word| *word == name);
            words[at.unwrap_or_else(|| panic!("server lacks {name}")) + 1]
        };
        let has_version = words.contains(&"version");
        let version = if has_version { zxid(one("version")).to_wire() } else { 0 };
        let view = view_of(version, ids(words, "of"), ids(words, "observers"));
        let epoch = |word| Epoch(number(one(word)));
        let epochs = Epochs { accepted: epoch("accepted"), current: epoch("current") };
        let me = server(words[1]);
        let mut peer = Peer::member(me, settings(words), view, epochs, maybe(one("last")));
        peer.core.finds_view = view_in;
        if words.contains(&"doubts") {
            peer.doubt();
        }
        peer.core.oracle = words.contains(&"oracle").then_some(false);
        for (view, before) in known_views(known) {
            let version = view.version;
            peer.core.see_logged_view(view);
            before.into_iter().for_each(|before| peer.core.see_order(version, before.to_wire()));
        }
        if let ["saved", version, members @ ..] = saved {
            let view = view_in_words(zxid(version), members).expect("its members");
            peer.core.see_saved_views(vec![view], true);
        }
        self.server = Some(PeerOnDisk::new(peer));
        self.step(Input::Tick);
    }

    fn state(&mut self) {
        let state = state_text(&self.server().peer);
        writeln!(self.said, "= {state}").unwrap();
    }

    fn views(&mut self) {
        let views = views_text(&self.server().peer);
        writeln!(self.said, "= {views}").unwrap();
    }

    /// The servers that a leader counts as synchronised when a reconfiguration is requested.
    fn synced(&mut self) {
        let peer = &self.server().peer;
        let Role::Leading(leader) = peer.role() else { panic!("it does not lead") };
        let synced: Vec<_> = leader.synced(&peer.core).iter().map(ServerId::to_string).collect();
        writeln!(self.said, "= synced {}", synced.join(" ")).unwrap();
    }

    fn write_one(&mut self) {
        let done = self.server().written().expect("nothing was asked of the disk");
        writeln!(self.said, "{}", report_text(&done)).unwrap();
        self.step(done);
    }

    fn step(&mut self, input: Input) {
        for action in self.server().step(input) {
            if self.shows_votes
                || !matches!(action, Action::SendNotification { .. } | Action::DialAll)
            {
                let text = action_text(&action, |connection| connection.0.to_string());
                writeln!(self.said, "{text}").unwrap();
            }
        }
    }
}
