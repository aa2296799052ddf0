//! Turns a world that fails into a script of `tests/zab`: the inputs of each process's `zab` peer, and the state with which it started,
//! as lines that `tests/zab/script.rs` reads.
//!
//! With a bug put back (`tests/sabotage`) the script has one server, from its start to the first input that it answers otherwise than
//! without that bug: so the script's outcome differs with the bug and without it. Without a bug the script has all inputs of all
//! processes, one process after the other. The outcome is not written: `UPDATE_EXPECT=1 cargo test --test zab scripts` writes it.

use super::plan::Micros;
use crate::model::{Epochs, Member, PeerAddress, Role, ServerId, View, Zxid};
use crate::replica::Replica;
use crate::tree::txn::config_in;
use crate::zab::{self, Action, Input, Notification, Packet, Peer, Promise, Settings, Vote};
use bytes::Bytes;
use std::fmt::Debug;

/// The prefix of a payload that proposes a configuration, as scripts have it.
const VIEW: &str = "view ";

/// The state with which a process's `zab` peer started.
#[derive(Clone, Debug)]
struct Start {
    me: ServerId,
    settings: Settings,
    view: View,
    /// Oldest first.
    proposed: Vec<View>,
    next_follows: Option<i64>,
    epochs: Epochs,
    last: Option<Zxid>,
    doubts: bool,
    has_oracle: bool,
}

/// The recorded inputs of one process's `zab` peer.
#[derive(Clone, Debug)]
pub struct Tape {
    start: Start,
    /// As a script has them: payloads are reduced to their zxids, or to the configuration that they propose.
    inputs: Vec<(Micros, Input)>,
}

/// The script of a world that failed.
///
/// * `title`: lines that say where the script is from. `spoil`: puts a bug back, or takes it out again.
///
/// `None` in three cases: no tape was kept; the actions of every `zab` peer are the same with and without the bug; or the world limits
/// how many bytes a follower may lack, and a script has no sizes of transactions.
pub fn script(title: &str, tapes: &[Tape], spoil: Option<&dyn Fn(bool)>) -> Option<String> {
    let lag_max = Settings::DEFAULT.lag_bytes_max;
    if tapes.is_empty() || tapes.iter().any(|tape| tape.start.settings.lag_bytes_max != lag_max) {
        return None;
    }
    let mut text: String = title.lines().map(|line| format!("# {line}\n")).collect();
    let Some(spoil) = spoil else {
        for tape in tapes {
            text.push('\n');
            tape.write(&mut text);
        }
        return Some(text);
    };
    let differ = tapes.iter().filter_map(|tape| {
        let tape = tape.as_played();
        let at = tape.first_difference(spoil)?;
        Some((tape.inputs[at].0, Tape { inputs: tape.inputs[..=at].to_vec(), ..tape }))
    });
    let (_, first) = differ.min_by_key(|(at_us, _)| *at_us)?;
    let terse = first.terse();
    let is_enough = terse.is_possible() && terse.first_difference(spoil).is_some();
    text.push('\n');
    (if is_enough { terse } else { first }).write(&mut text);
    Some(text)
}

impl Tape {
    /// The tape of a process that has just begun.
    pub fn begin(replica: &mut Replica) -> Self {
        replica.tape();
        let core = &replica.peer().core;
        let start = Start {
            me: core.me,
            // The settings of scripts, which don't show how often a notification is sent again.
            settings: Settings { resend_min_ms: 200, resend_max_ms: 60_000, ..core.settings },
            view: plain(&core.view),
            proposed: core.all_views().skip(1).map(plain).collect(),
            next_follows: core.next_follows(),
            epochs: Epochs { accepted: core.accepted, current: core.current },
            last: (!core.is_unsure || core.is_doubted()).then_some(core.history.last()),
            doubts: core.is_doubted(),
            has_oracle: core.oracle.is_some(),
        };
        Self { start, inputs: Vec::new() }
    }

    pub const fn server(&self) -> usize {
        self.start.me.0 as usize
    }

    /// Records inputs of the `zab` peer.
    pub fn keep(&mut self, now_us: Micros, inputs: Vec<Input>) {
        self.inputs.extend(inputs.into_iter().map(|input| (now_us, said(input))));
    }

    /// Without a first tick: a script's server begins with one.
    fn as_played(&self) -> Self {
        let has_tick = self.inputs.first().is_some_and(|(_, input)| *input == Input::Tick);
        let inputs = self.inputs[usize::from(has_tick)..].to_vec();
        Self { start: self.start.clone(), inputs }
    }

    /// Without packets that only keep a connection alive, or are for clients' requests and sessions.
    fn terse(&self) -> Self {
        let is_kept = |input: &Input| match input {
            Input::Leader { packet } | Input::Learner { packet, .. } => !matches!(
                packet,
                Packet::Ping { .. }
                    | Packet::Request(_)
                    | Packet::Revalidate { .. }
                    | Packet::Sync
                    | Packet::SessionMoved { .. }
            ),
            Input::Progress { .. } => false,
            _ => true,
        };
        let inputs = self.inputs.iter().filter(|(_, input)| is_kept(input)).cloned().collect();
        Self { start: self.start.clone(), inputs }
    }

    fn peer(&self) -> Peer {
        let Start { me, settings, view, proposed, next_follows, epochs, last, doubts, has_oracle } =
            self.start.clone();
        let mut peer = Peer::member(me, settings, view, epochs, last);
        if doubts {
            peer.doubt();
        }
        peer.core.oracle = has_oracle.then_some(false);
        peer.core.finds_view = view_in;
        if let Some(version) = proposed.last().map(|next| next.version) {
            proposed.into_iter().for_each(|view| peer.core.see_logged_view(view));
            next_follows.into_iter().for_each(|before| peer.core.see_order(version, before));
        }
        visible(&mut peer, Input::Tick);
        peer
    }

    /// The first input that a server with the bug answers otherwise than one without it.
    fn first_difference(&self, spoil: &dyn Fn(bool)) -> Option<usize> {
        spoil(false);
        let mut sound = self.peer();
        spoil(true);
        let mut spoilt = self.peer();
        let at = self.inputs.iter().position(|(_, input)| {
            spoil(false);
            let wanted = visible(&mut sound, input.clone());
            spoil(true);
            wanted != visible(&mut spoilt, input.clone())
        });
        spoil(false);
        at
    }

    /// Whether a server can get these inputs. Without pings a learner leaves its leader, and then its disk reports what the learner never
    /// asked for.
    fn is_possible(&self) -> bool {
        let mut peer = self.peer();
        self.inputs.iter().all(|(_, input)| {
            let (last, accepted) = (peer.core.history.last(), peer.core.accepted);
            let fits = match input {
                Input::Flushed { through: zxid } | Input::Installed { zxid } => *zxid <= last,
                Input::Promised { promise: Promise::Accepted, epoch } => accepted <= *epoch,
                Input::Promised { promise: Promise::Current, epoch } => *epoch <= accepted,
                Input::Propose { zxid, .. } => {
                    let leads = matches!(peer.role(), zab::Role::Leading(leader) if leader.is_broadcasting());
                    leads && last < *zxid
                }
                _ => true,
            };
            fits && {
                visible(&mut peer, input.clone());
                true
            }
        })
    }

    fn write(&self, to: &mut String) {
        let (mut peer, mut ticks) = (self.peer(), 0);
        to.push_str(&self.first_line());
        for (_, input) in &self.inputs {
            if *input == Input::Tick {
                ticks += 1;
            } else {
                put_ticks(&mut ticks, to);
                *to += &format!("{}\n", line(input));
            }
            if !visible(&mut peer, input.clone()).is_empty() {
                put_ticks(&mut ticks, to);
                to.push_str("----\n\n");
            }
        }
        put_ticks(&mut ticks, to);
        if !to.ends_with("----\n\n") {
            to.push_str("----\n");
        }
    }

    fn first_line(&self) -> String {
        let Start { me, settings, view, proposed, next_follows, epochs, last, doubts, has_oracle } =
            &self.start;
        let (accepted, current) = (epochs.accepted.0, epochs.current.0);
        let members = members(view);
        let members = members.strip_prefix(" voters").unwrap_or(&members);
        let mut line = format!("server {} of{members}", me.0);
        line += &format!(" accepted {accepted} current {current} last {}", or_dash(*last));
        for (is_on, name) in [
            (settings.always_sends_tree, " trees"),
            (settings.reconfigs, " reconfigs"),
            (settings.relays, " relays"),
            (*has_oracle, " oracle"),
            (*doubts, " doubts"),
        ] {
            line += if is_on { name } else { "" };
        }
        line += &version(view.version);
        line += &known(proposed, *next_follows);
        line + "\n"
    }
}

fn put_ticks(ticks: &mut u32, to: &mut String) {
    if *ticks > 0 {
        *to += &format!("tick {ticks}\n");
        *ticks = 0;
    }
}

/// The actions of a `zab` peer after an input, as far as a script shows them.
fn visible(peer: &mut Peer, input: Input) -> Vec<Action> {
    let mut actions = Vec::new();
    peer.step(input, &mut actions);
    actions.retain(|action| !matches!(action, Action::SendNotification { .. } | Action::DialAll));
    actions
}

/// A configuration, with the addresses that scripts have.
fn plain(view: &View) -> View {
    let member = |(&id, member): (&ServerId, &Member)| {
        let host = format!("host{}", id.0);
        let addresses = vec![PeerAddress { host, quorum_port: 2888, election_port: 3888 }];
        (id, Member { id, addresses, role: member.role, client: None })
    };
    View { members: view.members.iter().map(member).collect(), ..view.clone() }
}

fn plain_text(text: &[u8]) -> Bytes {
    let view = View::from_bytes(text).ok().filter(|view| view.version != 0);
    view.map_or(Bytes::new(), |view| plain(&view).to_string().into())
}

fn view_in(payload: &[u8]) -> Option<View> {
    View::parse(std::str::from_utf8(payload).ok()?.strip_prefix(VIEW)?).ok()
}

fn payload(zxid: Zxid, entry: &[u8]) -> Bytes {
    let view = config_in(entry).and_then(|text| View::from_bytes(text).ok());
    let text = view.map_or_else(|| format!("{zxid:?}"), |view| format!("{VIEW}{}", plain(&view)));
    text.into()
}

/// An input reduced to what a script says.
fn said(mut input: Input) -> Input {
    match &mut input {
        Input::Propose { zxid, payload: entry } => *entry = payload(*zxid, entry),
        Input::LogRead { read, .. } => {
            read.entries.iter_mut().for_each(|(zxid, entry)| *entry = payload(*zxid, b""));
        }
        Input::Learner { packet, .. } | Input::Leader { packet } => say_packet(packet),
        Input::TreeViews { views } => views.iter_mut().for_each(|view| *view = plain(view)),
        Input::Notification { notification, .. } => {
            let config = notification.config.as_deref().unwrap_or_default();
            notification.config = Some(plain_text(config));
            let of_candidate = notification.candidates_view.take();
            notification.candidates_view = of_candidate.map(|text| plain_text(&text));
            notification.is_ours = notification.candidates_view.is_some();
        }
        _ => {}
    }
    input
}

fn say_packet(packet: &mut Packet) {
    match packet {
        Packet::FollowerInfo { info, .. } | Packet::ObserverInfo { info, .. } => {
            info.protocol_version = 0x1_0000;
        }
        Packet::Proposal { zxid, entry }
        | Packet::Inform { zxid, entry }
        | Packet::InformAndActivate { zxid, entry, .. } => *entry = payload(*zxid, entry),
        Packet::NewLeader { view, .. } => *view = plain_text(view),
        Packet::Ping { zxid, touched } => (*zxid, *touched) = (0, None),
        _ => {}
    }
}

fn or_dash(value: Option<impl Debug>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:?}"))
}

fn zxid(raw: i64) -> String {
    or_dash(Zxid::from_wire(raw))
}

/// ` version Z` of a configuration that has one.
fn version(raw: i64) -> String {
    if raw == 0 { String::new() } else { format!(" version {}", zxid(raw)) }
}

/// ` voters 1 2 observers 4`
fn members(view: &View) -> String {
    let ids = |role: Role| {
        let all = view.members.values().filter(|member| member.role == role);
        all.map(|member| format!(" {}", member.id.0)).collect::<String>()
    };
    let observers = ids(Role::Observer);
    let observers = if observers.is_empty() { observers } else { format!(" observers{observers}") };
    format!(" voters{}{observers}", ids(Role::Participant))
}

/// ` knows Z voters 1 2` of each configuration.
///
/// * `follows`: version of the configuration that the last of these follows.
fn known(views: &[View], follows: Option<i64>) -> String {
    let newest = views.last().map(|view| view.version);
    let known = |view: &View| {
        let before = follows.filter(|_| newest == Some(view.version));
        let after = before.map(|before| format!(" after {}", zxid(before))).unwrap_or_default();
        format!(" knows {}{after}{}", zxid(view.version), members(view))
    };
    views.iter().map(known).collect()
}

/// The members that a payload proposes, if it does.
fn proposed(payload: &[u8]) -> String {
    view_in(payload).map_or(String::new(), |view| members(&view))
}

/// The version and members of a configuration, if it is one.
fn configuration(text: &[u8]) -> String {
    let view = View::from_bytes(text).ok();
    view.map_or(String::new(), |view| version(view.version) + &members(&view))
}

/// An input as a script has it.
fn line(input: &Input) -> String {
    match input {
        Input::Tick => "tick 1".to_owned(),
        Input::StandDown { .. } => "zxids used up".to_owned(),
        Input::Restore { zxid, past } => {
            let past = past.map(|epoch| format!(" past {}", epoch.0)).unwrap_or_default();
            format!("restored {zxid:?}{past}")
        }
        Input::Oracle { agrees } => format!("oracle {}", if *agrees { "yes" } else { "no" }),
        Input::Notification { from, notification } => {
            format!("heard {} {}", from.0, vote(notification))
        }
        Input::ElectionConnected { to } => format!("election connection {} up", to.0),
        Input::ElectionDisconnected { to } => format!("election connection {} down", to.0),
        Input::ElectionUnreached { to } => format!("election port {} unreached", to.0),
        Input::Propose { zxid, payload } => format!("propose {zxid:?}{}", proposed(payload)),
        Input::Flushed { through } => format!("disk has {through:?}"),
        Input::Promised { promise, epoch } => {
            format!("disk has {} {}", format!("{promise:?}").to_lowercase(), epoch.0)
        }
        Input::Truncated { to } => format!("disk is truncated to {to:?}"),
        Input::CannotTruncate { last } => format!("disk can't truncate, ends at {last:?}"),
        Input::Installed { zxid } => format!("disk has tree {zxid:?}"),
        Input::TreeViews { views } => format!("tree{}", known(views, None)),
        Input::Learner { connection, packet } => {
            format!("learner {} {}", connection.0, words(packet))
        }
        Input::LearnerGone { connection } => format!("learner {} gone", connection.0),
        Input::Progress { connection } => {
            let learner = connection.map(|connection| format!("learner {}", connection.0));
            learner.unwrap_or("leader".to_owned()) + " progress"
        }
        Input::Sync { connection } => format!("sync {}", connection.0),
        Input::SnapshotBegun { connection, zxid } => format!("tree {} {zxid:?}", connection.0),
        Input::LogRead { connection, read } => {
            let entries = read.entries.iter().map(|(zxid, _)| format!(" {zxid:?}"));
            let (before, entries) = (or_dash(read.before), entries.collect::<String>());
            format!("log {} before {before}, entries{entries}", connection.0)
        }
        Input::Leader { packet } => format!("leader {}", words(packet)),
        Input::LeaderGone => "leader gone".to_owned(),
    }
}

fn vote(said: &Notification) -> String {
    let state = format!("{:?}", said.state).to_lowercase();
    let Vote { epoch, zxid: last, leader } = said.vote;
    let wanted = match said.vote {
        Vote::NOTHING => "nothing".to_owned(),
        _ => format!("leader {} epoch {epoch} zxid {}", leader.0, zxid(last)),
    };
    let config = said.config.as_deref().map(configuration).unwrap_or_default();
    let candidates = said.candidates_view.as_deref().map(configuration).unwrap_or_default();
    let candidates =
        if candidates.is_empty() { candidates } else { format!(" candidate{candidates}") };
    format!("{state} {wanted} round {}{config}{candidates}", said.round)
}

fn words(packet: &Packet) -> String {
    let name = packet.name();
    match packet {
        Packet::FollowerInfo { accepted, info } | Packet::ObserverInfo { accepted, info } => {
            format!("{name} {} accepted {}{}", info.id.0, accepted.0, version(info.view_version))
        }
        Packet::LeaderInfo { epoch } => format!("{name} {}", epoch.0),
        Packet::AckEpoch { current, last } => {
            let current = or_dash(current.map(|epoch| epoch.0));
            format!("{name} current {current} last {}", or_dash(*last))
        }
        Packet::NewLeader { epoch, view } => format!("{name} {}{}", epoch.0, configuration(view)),
        Packet::Proposal { zxid, entry } | Packet::Inform { zxid, entry } => {
            format!("{name} {zxid:?}{}", proposed(entry))
        }
        Packet::CommitAndActivate { zxid, leader } => {
            format!("{name} {zxid:?} leader {}", leader.0)
        }
        Packet::InformAndActivate { zxid, leader, entry } => {
            format!("{name} {zxid:?} leader {}{}", leader.0, proposed(entry))
        }
        Packet::Diff { zxid }
        | Packet::Trunc { zxid }
        | Packet::Snap { zxid }
        | Packet::Ack { zxid }
        | Packet::Commit { zxid } => format!("{name} {zxid:?}"),
        Packet::UpToDate
        | Packet::Ping { .. }
        | Packet::Revalidate { .. }
        | Packet::Request(_)
        | Packet::Sync
        | Packet::SessionMoved { .. } => name.to_owned(),
    }
}
