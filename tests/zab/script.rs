//! Scripts: what happens to one server, and what it does about it, as text.
//!
//! A block is commands, `----`, and what the server did. `UPDATE_EXPECT=1` writes the second part anew: commit the
//! difference only when you can say why.
//!
//! | Command | Meaning |
//! |---|---|
//! | `server 1 of 1 2 3 [observers 4] accepted E current E last Z [trees] [single] [reconfigs] [relays] [oracle] [waits E R] [version Z] [knows Z [after Z] voters 1 2 [observers 4]]` | it starts; `last -`: nothing that counts; `trees`: forceSnapshotSync; `single`: one synchronisation at a time; `reconfigs`: reconfigEnabled; `relays`: observerMasterPort; `oracle`: oraclePath; `waits`: observer.election.DelayMs, observer.reconnectDelayMs; `version`: of the configuration in force; `knows`: one that was proposed, `after` which other, if its history says so |
//! | `elected N` | all other voters tell it that server N leads, which ends its election |
//! | `zxids used up` | its leadership ends for that |
//! | `oracle yes`, `oracle no` | whether it may go on without the other of two voters |
//! | `leader PACKET`, `leader gone` | from its leader |
//! | `learner L PACKET`, `learner L gone` | from the learner of connection L |
//! | `disk`, `disk N` | all that was asked of the disk is done, or the next N things |
//! | `disk can't cut, ends at Z` | instead of the cut that is next |
//! | `disk has Z`, `disk has accepted E`, `disk has current E`, `disk is cut to Z`, `disk has tree Z` | just this, whatever else was asked of it before |
//! | `learner L progress`, `leader progress` | a tree gets on |
//! | `propose Z [voters 1 2 [observers 4]]` | a transaction of its own clients; one that proposes a configuration |
//! | `tree L Z` | a tree is on its way to a learner |
//! | `log L before Z or -, entries Z Z` | what the log on disk has |
//! | `heard N STATE leader N epoch E zxid Z round R [version Z voters 1 2 [observers 4]]`, `heard N STATE nothing round R`, `link up N`, `link down N` | of the election port |
//! | `tick N` | N times 5 ms |
//! | `show votes`, `state` | prints what goes to the election port, too; prints what it holds |
//!
//! Zxids are `epoch:counter`, both as in logs to the base of 16, epochs numbers; a PACKET is its name and its zxid, epoch or, in an ACKEPOCH, both; a FOLLOWERINFO
//! may have `version Z` or `protocol N` behind that; PROPOSAL, NEWLEADER and INFORMANDACTIVATE may have `[version Z] voters 1 2 [observers 4]` behind that.

use crate::views::{VIEW, address, view_in};
use crate::votes::votes_for;
use bytes::{Bytes, BytesMut};
use oxkeeper::model::{Epoch, Member, Role as Kind, Rule, ServerId, SessionId, View, Zxid};
use oxkeeper::zab::{
    Action, Input, LearnerConnectionId, LearnerInfo, LogRead, Notification, Packet, Peer,
    PeerState, Promise, Request, Role, Settings, Vote,
};
use std::collections::VecDeque;
use std::fmt::Write;

const INFO: LearnerInfo =
    LearnerInfo { id: ServerId(0), protocol_version: 0x1_0000, view_version: 0 };

/// Runs a script; gives it back with what really happened.
pub fn outcome(text: &str) -> String {
    let mut stage =
        Stage { peer: None, disk: VecDeque::new(), shows_votes: false, said: String::new() };
    let (mut out, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line == "----" {
            out.push_str(&std::mem::take(&mut stage.said));
            // What was expected, up to an empty line.
            if lines.by_ref().find(|line| line.is_empty()).is_some() {
                out.push('\n');
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            stage.command(line);
        }
    }
    assert!(stage.said.is_empty(), "commands without an outcome: end them with ----");
    let text = out.trim_end().to_owned();
    text + "\n"
}

struct Stage {
    peer: Option<Peer>,
    /// What will be reported of the disk.
    disk: VecDeque<Input>,
    shows_votes: bool,
    said: String,
}

impl Stage {
    fn command(&mut self, line: &str) {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let input = match words[..] {
            ["server", ..] => return self.start(&words),
            ["show", "votes"] => return self.shows_votes = true,
            ["state"] => return self.state(),
            ["disk"] => {
                while !self.disk.is_empty() {
                    self.write_one();
                }
                return;
            }
            ["disk", "can't", "cut", "ends", "at", last] => {
                let is_cut = |asked: &Input| matches!(asked, Input::Truncated { .. });
                let at = self.disk.iter().position(is_cut).expect("no cut was asked for");
                self.disk.remove(at);
                Input::CannotTruncate { last: zxid(last) }
            }
            ["disk", "has", "accepted", epoch] => self.has(promised(Promise::Accepted, epoch)),
            ["disk", "has", "current", epoch] => self.has(promised(Promise::Current, epoch)),
            ["disk", "has", "tree", at] => self.has(Input::Installed { zxid: zxid(at) }),
            ["disk", "has", at] => self.has(Input::Flushed { through: zxid(at) }),
            ["disk", "is", "cut", "to", to] => self.has(Input::Truncated { to: zxid(to) }),
            ["disk", count] => return (0..number(count)).for_each(|_| self.write_one()),
            ["elected", id] => return self.elect(server(id)),
            ["zxids", "used", "up"] => {
                Input::StandDown { why: "the zxids of this epoch are used up".to_owned() }
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
            ["link", "up", to] => Input::ElectionConnected { to: server(to) },
            ["link", "down", to] => Input::ElectionDisconnected { to: server(to) },
            ["tick", count] => {
                return (0..number(count)).for_each(|_| self.step(Input::Tick));
            }
            _ => panic!("no such command: {line}"),
        };
        self.step(input);
    }

    fn elect(&mut self, leader: ServerId) {
        let votes = votes_for(self.peer.as_ref().expect("no server yet"), leader);
        if votes.is_empty() {
            writeln!(self.said, "= no election is under way").unwrap();
        }
        votes.into_iter().for_each(|vote| self.step(vote));
        let is_looking = |peer: &Peer| matches!(peer.role(), Role::Looking(Some(_)));
        let goes_on = self.peer.as_ref().is_some_and(is_looking);
        assert!(!goes_on || self.is_unsure(), "elected {}: the votes are not enough", leader.0);
    }

    fn is_unsure(&self) -> bool {
        self.peer.as_ref().is_some_and(|peer| peer.core.is_unsure)
    }

    /// What was asked of the disk and is done with this is not waited for any more.
    fn has(&mut self, done: Input) -> Input {
        let is_done = |asked: &Input| match (asked, &done) {
            (Input::Flushed { through: asked }, Input::Flushed { through }) => asked <= through,
            (asked, done) => asked == done,
        };
        let is_flush = matches!(done, Input::Flushed { .. });
        let mut left = if is_flush { usize::MAX } else { 1 };
        self.disk.retain(|asked| {
            let goes = left > 0 && is_done(asked);
            left -= usize::from(goes);
            !goes
        });
        done
    }

    fn start(&mut self, words: &[&str]) {
        let knows = words.iter().position(|word| *word == "knows").unwrap_or(words.len());
        let (words, known) = words.split_at(knows);
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name).map_or(words.len(), |at| at + 1);
            &words[at..]
        };
        let ids = |name: &str| after(name).iter().map_while(|word| word.parse::<i64>().ok());
        let one =
            |name: &str| *after(name).first().unwrap_or_else(|| panic!("server lacks {name}"));
        let version = after("version").first().map_or(0, |at| zxid(at).to_wire());
        let view = view_of(version, ids("of"), ids("observers"));
        let wait = |at: usize| after("waits").get(at).map_or(0, |ms| u64::from(number(ms)));
        let settings = Settings {
            tick_time_ms: 100,
            sync_limit: 5,
            always_sends_tree: words.contains(&"trees"),
            trees_max: if words.contains(&"single") { 1 } else { 10 },
            differences_max: if words.contains(&"single") { 1 } else { 10 },
            reconfigs: words.contains(&"reconfigs"),
            relays: words.contains(&"relays"),
            observer_election_delay_ms: wait(0),
            observer_reconnect_delay_ms: wait(1),
            ..Settings::DEFAULT
        };
        let epochs = (Epoch(number(one("accepted"))), Epoch(number(one("current"))));
        let me = server(words[1]);
        let mut peer = Peer::member(me, settings, view, epochs, maybe(one("last")));
        peer.core.finds_view = view_in;
        peer.core.oracle = words.contains(&"oracle").then_some(false);
        if let [_, at, members @ ..] = known {
            let (before, members) = match members {
                ["after", before, members @ ..] => (Some(zxid(before).to_wire()), members),
                members => (None, members),
            };
            let at = zxid(at);
            let next = view_in_words(at, members).expect("who belongs to it");
            peer.core.see_view(next, &mut Vec::new());
            before.into_iter().for_each(|before| peer.core.see_order(at.to_wire(), before));
        }
        self.peer = Some(peer);
        self.disk.clear();
        self.step(Input::Tick);
    }

    fn state(&mut self) {
        let peer = self.peer.as_ref().expect("no server yet");
        let core = &peer.core;
        let role = match peer.role() {
            Role::Looking(_) => "looks for a leader".to_owned(),
            Role::Leading(leader) if leader.is_broadcasting() => "leads".to_owned(),
            Role::Leading(_) => "is about to lead".to_owned(),
            Role::Learning(learner) if learner.is_serving() => "is led".to_owned(),
            Role::Learning(_) => "is about to be led".to_owned(),
        };
        let (committed, last) = (core.history.committed(), core.history.last());
        let epochs = (core.accepted.0, core.current.0);
        writeln!(
            self.said,
            "= {role}: accepted {}, current {}, committed {committed:?}, last {last:?}",
            epochs.0, epochs.1
        )
        .unwrap();
    }

    fn write_one(&mut self) {
        let input = self.disk.pop_front().expect("nothing was asked of the disk");
        match &input {
            Input::Flushed { through } => writeln!(self.said, "disk has {through:?}"),
            Input::Promised { promise, epoch } => {
                writeln!(self.said, "disk has {} {}", name_of(*promise), epoch.0)
            }
            Input::Truncated { to } => writeln!(self.said, "disk is cut to {to:?}"),
            other => writeln!(self.said, "disk: {other:?}"),
        }
        .unwrap();
        self.step(input);
    }

    fn step(&mut self, input: Input) {
        let mut actions = Vec::new();
        self.peer.as_mut().expect("no server yet").step(input, &mut actions);
        for action in actions {
            match &action {
                Action::Append { zxid, .. } => {
                    self.disk.push_back(Input::Flushed { through: *zxid });
                }
                &Action::Promise { promise, epoch } => {
                    self.disk.push_back(Input::Promised { promise, epoch });
                }
                &Action::Truncate { to } => self.disk.push_back(Input::Truncated { to }),
                &Action::Install { zxid } => self.disk.push_back(Input::Installed { zxid }),
                Action::SendNotification { .. } | Action::DialAll if !self.shows_votes => continue,
                _ => {}
            }
            self.print(&action);
        }
    }

    fn print(&mut self, action: &Action) {
        let text = match action {
            Action::Append { zxid, .. } => format!("append {zxid:?}"),
            Action::Commit { through } => format!("commit {through:?}"),
            Action::Promise { promise, epoch } => format!("save {} {}", name_of(*promise), epoch.0),
            Action::Truncate { to } => format!("cut to {to:?}"),
            Action::Install { zxid } => format!("install tree {zxid:?}"),
            Action::ToLearner { connection, bytes } => {
                let said: Vec<String> = packets(bytes).map(|packet| text_of(&packet)).collect();
                format!("to learner {}: {}", connection.0, said.join(", "))
            }
            Action::ToLeader { bytes } => {
                let said: Vec<String> = packets(bytes).map(|packet| text_of(&packet)).collect();
                format!("to leader: {}", said.join(", "))
            }
            Action::SendSnapshot { connection } => format!("send tree to learner {}", connection.0),
            Action::ReadLog { connection, from, through } => {
                format!("read log for learner {} from {from:?} through {through:?}", connection.0)
            }
            Action::CloseLearner { connection, why } => {
                format!("close learner {}: {why}", connection.0)
            }
            Action::FromLearner { connection, packet } => {
                format!("take from {}: {}", connection.0, text_of(packet))
            }
            Action::Connect { leader } => format!("connect to {}", leader.0),
            Action::FromLeader { packet } => format!("take from leader: {}", text_of(packet)),
            Action::Disconnect => "hang up".to_owned(),
            Action::Lead { epoch } => format!("LEAD epoch {}", epoch.0),
            Action::Follow { leader, epoch } => format!("FOLLOW {} in epoch {}", leader.0, epoch.0),
            Action::StopServing => "serve nobody".to_owned(),
            Action::SendNotification { to, notification: said } => {
                let Vote { epoch, zxid, leader } = said.vote;
                let zxid = Zxid::from_wire(zxid).map_or("-".to_owned(), |zxid| format!("{zxid:?}"));
                let state = format!("{:?}", said.state).to_lowercase();
                let round = said.round;
                format!(
                    "tell {}: {state} leader {} epoch {epoch} zxid {zxid} round {round}",
                    to.0, leader.0
                )
            }
            Action::DialAll => "dial all".to_owned(),
            Action::ViewProposed { view } => format!("keep for the next start: {}", members(view)),
            Action::ViewCommitted { view, is_last } => {
                let more = if *is_last { "" } else { ", and a newer one is proposed" };
                format!("in force: {}{more}", members(view))
            }
            Action::Look { why } => format!("LOOK: {why}"),
        };
        writeln!(self.said, "{text}").unwrap();
    }
}

fn promised(promise: Promise, epoch: &str) -> Input {
    Input::Promised { promise, epoch: Epoch(number(epoch)) }
}

/// `STATE leader N epoch E zxid Z round R`, or `STATE nothing round R`, and maybe a configuration.
fn notification_of(words: &[&str]) -> Notification {
    let state = match words[0] {
        "looking" => PeerState::Looking,
        "following" => PeerState::Following,
        "leading" => PeerState::Leading,
        "observing" => PeerState::Observing,
        other => panic!("{other} is no state"),
    };
    let signed = |text: &str| text.parse::<i64>().unwrap_or_else(|_| panic!("{text} is no number"));
    let (vote, rest) = match words[1..] {
        ["leader", leader, "epoch", epoch, "zxid", at, ref rest @ ..] => {
            let zxid = maybe(at).map_or(-1, Zxid::to_wire);
            (Vote { epoch: signed(epoch), zxid, leader: ServerId(signed(leader)) }, rest)
        }
        ["nothing", ref rest @ ..] => (Vote::NOTHING, rest),
        _ => panic!("no such vote: {words:?}"),
    };
    let ["round", round, config @ ..] = rest else { panic!("no round: {words:?}") };
    let config = match config {
        ["version", version, members @ ..] => {
            let view = view_in_words(zxid(version), members).expect("a version is of a view");
            view.to_string().into()
        }
        _ => Bytes::new(),
    };
    let (round, config) = (signed(round), Some(config));
    Notification { state, vote, round, version: 2, config, is_ours: false }
}

const fn name_of(promise: Promise) -> &'static str {
    match promise {
        Promise::Accepted => "accepted",
        Promise::Current => "current",
    }
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

fn server(text: &str) -> ServerId {
    ServerId(i64::from(number(text)))
}

fn connection_of(text: &str) -> LearnerConnectionId {
    LearnerConnectionId(u64::from(number(text)))
}

fn zxid(text: &str) -> Zxid {
    let (epoch, counter) = text.split_once(':').unwrap_or_else(|| panic!("{text} is no zxid"));
    let number = |text: &str| {
        u32::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text} is no number"))
    };
    Zxid::new(Epoch(number(epoch)), number(counter))
}

fn maybe(text: &str) -> Option<Zxid> {
    (text != "-").then(|| zxid(text))
}

fn payload(zxid: Zxid) -> Bytes {
    Bytes::from(format!("{zxid:?}"))
}

/// A payload that proposes a configuration, if there are words for one.
fn payload_with(at: Zxid, words: &[&str]) -> Bytes {
    view_in_words(at, words).map_or_else(|| payload(at), |view| format!("{VIEW}{view}").into())
}

/// `voters 1 2 [observers 4]`
fn view_in_words(version: Zxid, words: &[&str]) -> Option<View> {
    let (first, rest) = words.split_first()?;
    assert_eq!(*first, "voters", "{words:?}");
    let (voters, observers) =
        rest.split_at(rest.iter().position(|word| *word == "observers").unwrap_or(rest.len()));
    let ids = |words: &[&str]| -> Vec<i64> {
        words.iter().filter_map(|word| word.parse().ok()).collect()
    };
    Some(view_of(version.to_wire(), ids(voters).into_iter(), ids(observers).into_iter()))
}

fn view_of(
    version: i64,
    voters: impl Iterator<Item = i64>,
    observers: impl Iterator<Item = i64>,
) -> View {
    let member = |id: i64, role: Kind| {
        let addresses = vec![address(id as usize)];
        (ServerId(id), Member { id: ServerId(id), addresses, role, client: None })
    };
    let voters = voters.map(|id| member(id, Kind::Participant));
    let members = voters.chain(observers.map(|id| member(id, Kind::Observer))).collect();
    View { version, members, rule: Rule::Majority }
}

/// As a script writes it.
fn members(view: &View) -> String {
    let ids = |role: Kind| {
        let all = view.members.values().filter(move |member| member.role == role);
        all.map(|member| format!(" {}", member.id.0)).collect::<String>()
    };
    let version = Zxid::from_wire(view.version).expect("versions are zxids");
    let (voters, observers) = (ids(Kind::Participant), ids(Kind::Observer));
    let observers = if observers.is_empty() { observers } else { format!(" observers{observers}") };
    format!("version {version:?} voters{voters}{observers}")
}

fn packet_of(words: &[&str]) -> Packet {
    match *words {
        ["FOLLOWERINFO", id, "accepted", epoch, "version", version] => Packet::FollowerInfo {
            accepted: Epoch(number(epoch)),
            info: LearnerInfo { id: server(id), view_version: zxid(version).to_wire(), ..INFO },
        },
        ["FOLLOWERINFO", id, "accepted", epoch, "protocol", protocol] => Packet::FollowerInfo {
            accepted: Epoch(number(epoch)),
            info: LearnerInfo { id: server(id), protocol_version: number(protocol) as i32, ..INFO },
        },
        ["FOLLOWERINFO", id, "accepted", epoch] => Packet::FollowerInfo {
            accepted: Epoch(number(epoch)),
            info: LearnerInfo { id: server(id), ..INFO },
        },
        ["OBSERVERINFO", id, "accepted", epoch] => Packet::ObserverInfo {
            accepted: Epoch(number(epoch)),
            info: LearnerInfo { id: server(id), ..INFO },
        },
        ["OBSERVERINFO", id, "accepted", epoch, "version", version] => Packet::ObserverInfo {
            accepted: Epoch(number(epoch)),
            info: LearnerInfo { view_version: zxid(version).to_wire(), id: server(id), ..INFO },
        },
        ["LEADERINFO", epoch] => Packet::LeaderInfo { epoch: Epoch(number(epoch)) },
        ["ACKEPOCH", "current", epoch, "last", last] => Packet::AckEpoch {
            current: (epoch != "-").then(|| Epoch(number(epoch))),
            last: maybe(last),
        },
        ["DIFF", at] => Packet::Diff { zxid: zxid(at) },
        ["TRUNC", at] => Packet::Trunc { zxid: zxid(at) },
        ["SNAP", at] => Packet::Snap { zxid: zxid(at) },
        ["PROPOSAL", at, ref view @ ..] => {
            Packet::Proposal { zxid: zxid(at), entry: payload_with(zxid(at), view) }
        }
        ["COMMITANDACTIVATE", at, "leader", id] => {
            Packet::CommitAndActivate { zxid: zxid(at), leader: server(id) }
        }
        ["INFORMANDACTIVATE", at, "leader", id, ref view @ ..] => Packet::InformAndActivate {
            zxid: zxid(at),
            leader: server(id),
            entry: payload_with(zxid(at), view),
        },
        ["NEWLEADER", epoch, "version", version, ref view @ ..] => {
            let view = view_in_words(zxid(version), view).expect("a version is of a view");
            Packet::NewLeader { epoch: Epoch(number(epoch)), view: view.to_string().into() }
        }
        ["COMMIT", at] => Packet::Commit { zxid: zxid(at) },
        ["INFORM", at, ref view @ ..] => {
            Packet::Inform { zxid: zxid(at), entry: payload_with(zxid(at), view) }
        }
        // What is in them is for others.
        ["REQUEST"] => Packet::Request(Request {
            session: SessionId(1),
            xid: 1,
            op: 5,
            body: Bytes::new(),
            who: Vec::new(),
        }),
        ["REVALIDATE"] => Packet::Revalidate { data: Bytes::new() },
        ["SYNC"] => Packet::Sync,
        ["NEWLEADER", epoch] => {
            Packet::NewLeader { epoch: Epoch(number(epoch)), view: Bytes::new() }
        }
        ["ACK", at] => Packet::Ack { zxid: zxid(at) },
        ["UPTODATE"] => Packet::UpToDate,
        ["PING"] => Packet::Ping { zxid: 0, touched: None },
        _ => panic!("no such packet: {words:?}"),
    }
}

fn text_of(packet: &Packet) -> String {
    let name = packet.name();
    match packet {
        Packet::FollowerInfo { accepted, info } | Packet::ObserverInfo { accepted, info } => {
            format!("{name} {} accepted {}", info.id.0, accepted.0)
        }
        Packet::LeaderInfo { epoch } => format!("{name} {}", epoch.0),
        Packet::NewLeader { epoch, view } => {
            let view = std::str::from_utf8(view).ok().and_then(|text| View::parse(text).ok());
            match view.filter(|view| view.version != 0) {
                Some(view) => format!("{name} {} {}", epoch.0, members(&view)),
                None => format!("{name} {}", epoch.0),
            }
        }
        Packet::CommitAndActivate { zxid, leader }
        | Packet::InformAndActivate { zxid, leader, .. } => {
            format!("{name} {zxid:?} leader {}", leader.0)
        }
        Packet::AckEpoch { current, last } => {
            let current = current.map_or("-".to_owned(), |epoch| epoch.0.to_string());
            let last = last.map_or("-".to_owned(), |last| format!("{last:?}"));
            format!("{name} current {current} last {last}")
        }
        Packet::Diff { zxid }
        | Packet::Trunc { zxid }
        | Packet::Snap { zxid }
        | Packet::Proposal { zxid, .. }
        | Packet::Ack { zxid }
        | Packet::Commit { zxid }
        | Packet::Inform { zxid, .. } => format!("{name} {zxid:?}"),
        _ => name.to_owned(),
    }
}

fn packets(bytes: &Bytes) -> impl Iterator<Item = Packet> {
    let mut bytes = BytesMut::from(&bytes[..]);
    std::iter::from_fn(move || Packet::decode(&mut bytes).expect("peers speak well"))
}
