//! How scripts write servers, zxids, packets, notifications and configurations, and what servers do.

use bytes::Bytes;
use oxkeeper::model::{Epoch, Role as Kind, ServerId, SessionId, View, Zxid};
use oxkeeper::zab::{
    Action, Input, LearnerConnectionId, LearnerInfo, Notification, Packet, Peer, PeerState,
    Promise, Request, Role, Settings, Vote,
};
use support::builders::learner_info;
use support::packets::packets;
use support::views::{VIEW, view_of};

const INFO: LearnerInfo = learner_info(0);

/// The settings of a script's servers: `trees`, `single`, `reconfigs`, `relays`, `waits E R`, `lag BYTES`.
pub fn settings(words: &[&str]) -> Settings {
    let has = |word: &str| words.contains(&word);
    let waits = words.iter().position(|word| *word == "waits");
    let wait = |at: usize| waits.map_or(0, |waits| u64::from(number(words[waits + at])));
    let lag =
        words.iter().position(|word| *word == "lag").map(|at| u64::from(number(words[at + 1])));
    let at_once_max = if has("single") { 1 } else { 10 };
    Settings {
        tick_time_ms: 100,
        sync_limit: 5,
        always_sends_tree: has("trees"),
        trees_max: at_once_max,
        differences_max: at_once_max,
        lag_bytes_max: lag.unwrap_or(Settings::DEFAULT.lag_bytes_max),
        reconfigs: has("reconfigs"),
        relays: has("relays"),
        observer_election_delay_ms: wait(1),
        observer_reconnect_delay_ms: wait(2),
        ..Settings::DEFAULT
    }
}

/// The numbers after a word.
pub fn ids(words: &[&str], name: &str) -> Vec<i64> {
    let rest = words.iter().skip_while(|word| **word != name).skip(1);
    rest.map_while(|word| word.parse().ok()).collect()
}

/// A server's role, and what it has in memory.
pub fn state_text(peer: &Peer) -> String {
    let core = &peer.core;
    let role = match peer.role() {
        Role::Looking(_) => "looks for a leader",
        Role::Leading(leader) if leader.is_broadcasting() => "leads",
        Role::Leading(_) => "is about to lead",
        Role::Learning(learner) if learner.is_serving() => "serves under a leader",
        Role::Learning(_) => "joins a leader",
    };
    let (committed, last) = (core.history.committed(), core.history.last());
    let (accepted, current) = (core.accepted.0, core.current.0);
    format!(
        "{role}: accepted {accepted}, current {current}, committed {committed:?}, last {last:?}"
    )
}

/// The configurations that count at a server.
pub fn views_text(peer: &Peer) -> String {
    let proposed = peer.core.all_views().skip(1);
    let proposed: String = proposed.map(|view| format!("; proposed: {}", members(view))).collect();
    format!("in force: {}{proposed}", members(&peer.core.view))
}

/// A report of the disk as text.
pub fn report_text(report: &Input) -> String {
    match report {
        Input::Flushed { through } => format!("disk has {through:?}"),
        Input::Promised { promise, epoch } => format!("disk has {} {}", name_of(*promise), epoch.0),
        Input::Truncated { to } => format!("disk is truncated to {to:?}"),
        other => format!("disk: {other:?}"),
    }
}

/// An action as text.
///
/// * `learner`: the name of the learner of a connection.
pub fn action_text(action: &Action, learner: impl Fn(LearnerConnectionId) -> String) -> String {
    match action {
        Action::Append { zxid, .. } => format!("append {zxid:?}"),
        Action::Commit { through } => format!("commit {through:?}"),
        Action::Promise { promise, epoch } => format!("save {} {}", name_of(*promise), epoch.0),
        Action::Truncate { to, .. } => format!("truncate to {to:?}"),
        Action::Install { zxid } => format!("install tree {zxid:?}"),
        Action::ToLearner { connection, bytes } => {
            let said: Vec<String> = packets(bytes).iter().map(text_of).collect();
            format!("to learner {}: {}", learner(*connection), said.join(", "))
        }
        Action::ToLeader { bytes } => {
            let said: Vec<String> = packets(bytes).iter().map(text_of).collect();
            format!("to leader: {}", said.join(", "))
        }
        Action::SendSnapshot { connection, .. } => {
            format!("send tree to learner {}", learner(*connection))
        }
        Action::ReadLog { connection, from, through } => {
            let learner = learner(*connection);
            format!("read log for learner {learner} from {from:?} through {through:?}")
        }
        Action::CloseLearner { connection, why } => {
            format!("close learner {}: {why}", learner(*connection))
        }
        Action::FromLearner { connection, packet } => {
            format!("pass on from learner {}: {}", learner(*connection), text_of(packet))
        }
        Action::Connect { leader, is_needed: true } => {
            format!("connect to {}, which is needed", leader.0)
        }
        Action::Connect { leader, is_needed: false } => format!("connect to {}", leader.0),
        Action::FromLeader { packet } => format!("pass on from leader: {}", text_of(packet)),
        Action::Disconnect => "disconnect from leader".to_owned(),
        Action::Lead { epoch } => format!("LEAD epoch {}", epoch.0),
        Action::Follow { leader, epoch } => format!("FOLLOW {} in epoch {}", leader.0, epoch.0),
        Action::StopServing => "stop serving".to_owned(),
        Action::SendNotification { to, notification: said } => {
            let Vote { epoch, zxid, leader } = said.vote;
            let zxid = Zxid::from_wire(zxid).map_or("-".to_owned(), |zxid| format!("{zxid:?}"));
            let state = format!("{:?}", said.state).to_lowercase();
            let round = said.round;
            let of = |text: &Bytes| View::from_bytes(text).map(|view| members(&view));
            let view =
                said.candidates_view.iter().flat_map(of).map(|view| format!(" candidate {view}"));
            let view: String = view.collect();
            format!(
                "notify {}: {state} leader {} epoch {epoch} zxid {zxid} round {round}{view}",
                to.0, leader.0
            )
        }
        Action::DialAll => "dial all".to_owned(),
        Action::Dial { to } => format!("dial {}", to.0),
        Action::ViewsProposed { views } => {
            let all: Vec<String> = views.iter().map(members).collect();
            format!("keep for the next start: {}", all.join(", "))
        }
        Action::NoteJoining => "note that a synchronisation is under way".to_owned(),
        Action::ViewForgotten => "forget what was kept for the next start".to_owned(),
        Action::ViewCommitted { view, is_last } => {
            let more = if *is_last { "" } else { ", and a newer one is proposed" };
            format!("in force: {}{more}", members(view))
        }
        Action::Look { why } => format!("LOOK: {why}"),
    }
}

pub fn promised(promise: Promise, epoch: &str) -> Input {
    Input::Promised { promise, epoch: Epoch(number(epoch)) }
}

/// `STATE leader N epoch E zxid Z round R`, or `STATE nothing round R`, and maybe the configuration in force, and the proposed one that
/// lets the candidate vote.
pub fn notification_of(words: &[&str]) -> Notification {
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
    let ["round", round, views @ ..] = rest else { panic!("no round: {words:?}") };
    let mut parts = views.splitn(2, |word| *word == "candidate");
    let mut text = || match parts.next() {
        Some(["version", version, members @ ..]) => {
            let view = view_in_words(zxid(version), members).expect("a version is of a view");
            Some(Bytes::from(view.to_string()))
        }
        _ => None,
    };
    let (config, candidates_view) = (text().unwrap_or_default(), text());
    let (round, config, is_ours) = (signed(round), Some(config), candidates_view.is_some());
    Notification { state, vote, round, version: 2, config, is_ours, candidates_view }
}

pub const fn name_of(promise: Promise) -> &'static str {
    match promise {
        Promise::Accepted => "accepted",
        Promise::Current => "current",
    }
}

pub fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

pub fn server(text: &str) -> ServerId {
    ServerId(i64::from(number(text)))
}

pub fn connection_of(text: &str) -> LearnerConnectionId {
    LearnerConnectionId(u64::from(number(text)))
}

pub fn zxid(text: &str) -> Zxid {
    let (epoch, counter) = text.split_once(':').unwrap_or_else(|| panic!("{text} is no zxid"));
    let number = |text: &str| {
        u32::from_str_radix(text, 16).unwrap_or_else(|_| panic!("{text} is no number"))
    };
    Zxid::new(Epoch(number(epoch)), number(counter))
}

pub fn maybe(text: &str) -> Option<Zxid> {
    (text != "-").then(|| zxid(text))
}

pub fn payload(zxid: Zxid) -> Bytes {
    Bytes::from(format!("{zxid:?}"))
}

/// A payload that proposes a configuration, if there are words for one.
pub fn payload_with(at: Zxid, words: &[&str]) -> Bytes {
    view_in_words(at, words).map_or_else(|| payload(at), |view| format!("{VIEW}{view}").into())
}

/// The configurations of `knows Z [after Y] voters 1 2` and so on, and which one each follows.
pub fn known_views(words: &[&str]) -> Vec<(View, Option<Zxid>)> {
    let known = |words: &[&str]| {
        let (at, before, members) = match words {
            [at, "after", before, members @ ..] => (at, Some(zxid(before)), members),
            [at, members @ ..] => (at, None, members),
            [] => panic!("which configuration?"),
        };
        (view_in_words(zxid(at), members).expect("its members"), before)
    };
    words.split(|word| *word == "knows").skip(1).map(known).collect()
}

/// `voters 1 2 [observers 4]`
pub fn view_in_words(version: Zxid, words: &[&str]) -> Option<View> {
    let (first, rest) = words.split_first()?;
    assert_eq!(*first, "voters", "{words:?}");
    let (voters, observers) =
        rest.split_at(rest.iter().position(|word| *word == "observers").unwrap_or(rest.len()));
    let ids = |words: &[&str]| -> Vec<i64> {
        words.iter().filter_map(|word| word.parse().ok()).collect()
    };
    Some(view_of(version.to_wire(), ids(voters), ids(observers)))
}

/// A configuration as a script writes it.
pub fn members(view: &View) -> String {
    let ids = |role: Kind| {
        let all = view.members.values().filter(move |member| member.role == role);
        all.map(|member| format!(" {}", member.id.0)).collect::<String>()
    };
    let version = Zxid::from_wire(view.version).expect("versions are zxids");
    let (voters, observers) = (ids(Kind::Participant), ids(Kind::Observer));
    let observers = if observers.is_empty() { observers } else { format!(" observers{observers}") };
    format!("version {version:?} voters{voters}{observers}")
}

pub fn packet_of(words: &[&str]) -> Packet {
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
        // Their content is for the replica.
        ["REQUEST"] => Packet::Request(Request {
            session: SessionId(1),
            xid: 1,
            op: 5,
            body: Bytes::new(),
            identities: Vec::new(),
        }),
        ["REVALIDATE"] => Packet::Revalidate { data: Bytes::new() },
        ["SYNC"] => Packet::Sync,
        ["NEWLEADER", epoch] => {
            Packet::NewLeader { epoch: Epoch(number(epoch)), view: Bytes::new() }
        }
        ["ACK", at] => Packet::Ack { zxid: zxid(at) },
        ["UPTODATE"] => Packet::UpToDate,
        ["PING"] => Packet::Ping { zxid: 0, touched: None },
        ["PING", through] => Packet::Ping { zxid: zxid(through).to_wire(), touched: None },
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
