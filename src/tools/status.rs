//! `oxkeeper status`: the servers of an ensemble in one table, from their answers to four-letter words.

use super::four_letter_word::{connect, open};
use super::tls_options::{TlsOptions, explained};
use crate::model::{chain, without_brackets};
use rustls::ClientConfig;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limit on the time for all that one server is asked.
const PATIENCE: Duration = Duration::from_secs(5);
/// Limit on an answer: `mntr` of a busy server has some 60 KiB.
const ANSWER_MAX: u64 = 1 << 20;
const PORT: u16 = 2181;

/// Options of `status`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub tls: TlsOptions,
    /// The servers, each with its client port; 2181 if none is given. Commas may stand between them.
    #[arg(required = true, value_name = "HOST[:PORT]", value_delimiter = ',')]
    pub servers: Vec<String>,
}

/// What one server answers about itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Figures {
    mode: String,
    zxid: u64,
    connections: u64,
    znodes: u64,
    /// Smallest, average and largest latency in ms, as the server writes them.
    latency: String,
    version: String,
    /// Voters in sync with a leader; `None`: the server does not lead, or `mntr` is not in its whitelist.
    followers: Option<u64>,
    /// `None`: the server is standalone, or `conf` is not in its whitelist.
    configuration: Option<Configuration>,
    standing: Option<Standing>,
}

/// A server's own id, and the servers in the configuration that it has.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Configuration {
    id: i64,
    voters: BTreeSet<i64>,
    observers: BTreeSet<i64>,
}

/// What a learner is in a configuration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Standing {
    is_in_it: bool,
    votes: bool,
    /// The configuration is the leader's; otherwise it is the learner's own.
    is_leaders: bool,
}

impl Figures {
    fn leads(&self) -> bool {
        self.mode == "leader"
    }

    /// Judges this learner by the leader's configuration or, if that is unknown, by its own.
    fn judge(&mut self, leaders: Option<&Configuration>) {
        let (true, Some(own)) = (self.is_learner(), &self.configuration) else { return };
        let judge = leaders.unwrap_or(own);
        let votes = judge.voters.contains(&own.id);
        let is_in_it = votes || judge.observers.contains(&own.id);
        self.standing = Some(Standing { is_in_it, votes, is_leaders: leaders.is_some() });
    }

    fn is_learner(&self) -> bool {
        ["follower", "observer"].contains(&self.mode.as_str())
    }

    fn shown_mode(&self) -> String {
        let mode = &self.mode;
        match self.standing {
            Some(Standing { is_leaders: true, is_in_it: false, .. }) => {
                format!("{mode}, not in the leader's configuration")
            }
            Some(Standing { votes: false, .. }) if mode == "follower" => {
                format!("{mode}, no voter")
            }
            _ => mode.clone(),
        }
    }

    /// Whether no quorum counts this follower; `None`: another mode, or the configuration is unknown.
    fn lacks_vote(&self) -> Option<bool> {
        self.standing.filter(|_| self.mode == "follower").map(|standing| !standing.votes)
    }

    /// `None`: it is no learner, or its id or the leader's configuration is unknown.
    fn is_in_leaders_configuration(&self) -> Option<bool> {
        self.standing.filter(|standing| standing.is_leaders).map(|standing| standing.is_in_it)
    }
}

/// A server as it was named, and its figures or why there are none.
type ServerStatus = (String, Result<Figures, String>);

/// Asks all servers at the same time. Returns the text to print, and whether the ensemble is whole: each server answers, and
/// exactly one leads or is standalone.
///
/// # Errors
/// A text, if a file for TLS can't be used.
pub fn run(options: &Options) -> Result<(String, bool), String> {
    let tls = options.tls.client().map_err(|error| chain(&error))?;
    let mut asked: Vec<ServerStatus> = std::thread::scope(|scope| {
        let asking =
            options.servers.iter().map(|server| scope.spawn(|| figures(server, tls.as_ref())));
        let asking: Vec<_> = asking.collect();
        let answers = asking.into_iter().map(|thread| thread.join().expect("a panic aborts"));
        options.servers.iter().cloned().zip(answers).collect()
    });
    judge(&mut asked);
    let text = if options.json { as_json(&asked) } else { as_table(&asked) };
    Ok((text, problem(&asked).is_none()))
}

/// Judges the learners by the configuration of their leader, if exactly one server leads and says what it has.
fn judge(asked: &mut [ServerStatus]) {
    let leaders: Vec<&Figures> = answered(asked).filter(|figures| figures.leads()).collect();
    let leaders = if let [leader] = leaders[..] { leader.configuration.clone() } else { None };
    for (_, answer) in asked {
        if let Ok(figures) = answer {
            figures.judge(leaders.as_ref());
        }
    }
}

fn answered(asked: &[ServerStatus]) -> impl Iterator<Item = &Figures> + Clone {
    asked.iter().filter_map(|(_, answer)| answer.as_ref().ok())
}

/// Why the servers do not make up a whole ensemble; `None`: they do.
fn problem(asked: &[ServerStatus]) -> Option<String> {
    let leads = |figures: &&Figures| figures.leads() || figures.mode == "standalone";
    let answered = answered(asked);
    let down = asked.iter().filter_map(|(server, answer)| Some((server, answer.as_ref().err()?)));
    let down = down.clone().next().map(|(server, why)| match down.count() {
        1 => format!("{server}: {why}"),
        count => {
            format!(
                "{count} of {} servers do not serve clients; the first, {server}: {why}",
                asked.len()
            )
        }
    });
    match answered.clone().filter(leads).count() {
        0 if answered.clone().count() == 0 => down,
        0 => Some(down.map_or_else(
            || "none of these servers leads: name all servers of the ensemble, or look into their logs".to_owned(),
            |down| format!("none of these servers leads; {down}"),
        )),
        1 => down,
        leaders => {
            let id = |figures: &Figures| Some(figures.configuration.as_ref()?.id);
            let ids: Vec<Option<i64>> = answered.filter(leads).map(id).collect();
            let (first, is_known) = (ids[0], ids.iter().all(Option::is_some));
            let why = match first.filter(|_| ids.iter().all(|id| *id == first)) {
                Some(id) => format!("all have server id {id}, so one was named {leaders} times, or they are of different ensembles"),
                None if is_known => "they are of different ensembles, or of one that is split".to_owned(),
                None => "they are of different ensembles, or of one that is split, or one was named twice".to_owned(),
            };
            Some(format!("{leaders} of these servers lead: {why}"))
        }
    }
}

fn figures(server: &str, tls: Option<&Arc<ClientConfig>>) -> Result<Figures, String> {
    let (host, port) = host_and_port(server)?;
    let end = Instant::now() + PATIENCE;
    let asked = |word| ask(host, port, word, tls.cloned(), end);
    let answer = asked("srvr")
        .map_err(|error| format!("not reachable: {}", explained(&error, tls.is_some())))?;
    let mut figures = parse_srvr(&answer)?;
    // A server need not have `mntr` and `conf` in its whitelist.
    if figures.leads()
        && let Ok(answer) = asked("mntr")
    {
        figures.followers = parse_followers(&answer);
    }
    if (figures.leads() || figures.is_learner())
        && let Ok(answer) = asked("conf")
    {
        figures.configuration = parse_configuration(&answer);
    }
    Ok(figures)
}

fn host_and_port(server: &str) -> Result<(&str, u16), String> {
    // An IPv6 address without brackets has several colons and no port.
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => return Ok((without_brackets(server), PORT)),
    };
    let port = port.parse().map_err(|_| format!("{port:?} is not a port"))?;
    Ok((without_brackets(host), port))
}

fn ask(
    host: &str,
    port: u16,
    word: &str,
    tls: Option<Arc<ClientConfig>>,
    end: Instant,
) -> io::Result<String> {
    let left = || {
        let left = end.saturating_duration_since(Instant::now());
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        Some(left).filter(|left| !left.is_zero()).ok_or_else(late)
    };
    let mut stream = open(connect(host, port, left()?)?, host, word, tls)?;
    let (mut answer, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        left()?;
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(len) => answer.extend_from_slice(&bytes[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
            }
            // Servers end TLS without saying so.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !answer.is_empty() => {
                break;
            }
            Err(error) => return Err(error),
        }
        if ANSWER_MAX < answer.len() as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer has no end"));
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The figures in an answer to `srvr`.
fn parse_srvr(answer: &str) -> Result<Figures, String> {
    let value = |name: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::trim)
    };
    let Some(mode) = value("Mode") else {
        let first: String = answer.lines().next().unwrap_or_default().chars().take(80).collect();
        return Err(match answer {
            "" => "it closed the connection: is this a client port, and does it want TLS (--tls-ca) or none?".to_owned(),
            _ if answer.contains("not currently serving") => "it runs, and serves no clients: it has no leader, as its log says".to_owned(),
            _ if answer.contains("whitelist") => {
                "srvr is not in its 4lw.commands.whitelist".to_owned()
            }
            _ => format!("it is no ZooKeeper server, as it answers {first:?}"),
        });
    };
    let number = |name| value(name).and_then(|text| text.parse().ok()).unwrap_or(0);
    let zxid =
        value("Zxid").and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    let version = value("Zookeeper version").unwrap_or_default();
    Ok(Figures {
        mode: mode.to_owned(),
        zxid: zxid.unwrap_or(0),
        connections: number("Connections"),
        znodes: number("Node count"),
        latency: value("Latency min/avg/max").unwrap_or_default().to_owned(),
        version: shown_version(version),
        followers: None,
        configuration: None,
        standing: None,
    })
}

/// `oxkeeper 0.2.0` for a server of this project, the number alone for ZooKeeper's.
fn shown_version(version: &str) -> String {
    let (number, build) = version.split_once('-').unwrap_or((version, ""));
    match build.strip_prefix("oxkeeper.") {
        Some(own) => format!("oxkeeper {}", own.split(['-', ',']).next().unwrap_or(own)),
        None => number.split(',').next().unwrap_or(number).to_owned(),
    }
}

/// The configuration in an answer to `conf`; `None`: there is none in it.
fn parse_configuration(answer: &str) -> Option<Configuration> {
    let id = answer.lines().find_map(|line| line.strip_prefix("serverId="))?.trim().parse().ok()?;
    let (_, members) = answer.split_once("\nmembership:")?;
    let mut found = Configuration { id, ..Configuration::default() };
    for (id, line) in
        members.lines().filter_map(|line| line.strip_prefix("server.")?.split_once('='))
    {
        let is_observer = line.contains(":observer");
        let servers = if is_observer { &mut found.observers } else { &mut found.voters };
        servers.extend(id.parse::<i64>());
    }
    Some(found)
}

/// The number of followers in sync in an answer to `mntr`, without those that don't vote, such as a removed server that runs.
fn parse_followers(answer: &str) -> Option<u64> {
    let value = |name: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))?;
        line.trim().parse::<f64>().ok().map(|number| number as u64)
    };
    let without_vote = value("zk_synced_non_voting_followers").unwrap_or(0);
    Some(value("zk_synced_followers")?.saturating_sub(without_vote))
}

fn as_table(asked: &[ServerStatus]) -> String {
    let head = [
        "SERVER",
        "MODE",
        "ZXID",
        "EPOCH",
        "CONNECTIONS",
        "SYNCED FOLLOWERS",
        "LATENCY",
        "VERSION",
    ];
    let mut rows: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    for (server, answer) in asked {
        rows.push(match answer {
            Err(why) => vec![server.clone(), why.clone()],
            Ok(figures) => vec![
                server.clone(),
                figures.shown_mode(),
                format!("{:#x}", figures.zxid),
                (figures.zxid >> 32).to_string(),
                figures.connections.to_string(),
                figures.followers.map_or_else(|| "-".to_owned(), |number| number.to_string()),
                figures.latency.clone(),
                figures.version.clone(),
            ],
        });
    }
    let whole = |row: &&Vec<String>| row.len() == head.len();
    let width = |column: usize| rows.iter().filter(whole).map(|row| row[column].len()).max();
    let first = rows.iter().map(|row| row[0].len()).max();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| if column == 0 { first } else { width(column) }.unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            _ = write!(line, "{cell:width$}  "); // Writing to a string can't fail.
        }
        text += line.trim_end();
        text.push('\n');
    }
    text.extend(problem(asked).map(|problem| problem + "\n"));
    text
}

fn as_json(asked: &[ServerStatus]) -> String {
    let servers = asked.iter().map(|(server, answer)| match answer {
        Err(why) => serde_json::json!({"server": server, "error": why}),
        Ok(figures) => serde_json::json!({
            "server": server,
            "mode": figures.mode,
            "lacksVote": figures.lacks_vote(),
            "inLeadersConfiguration": figures.is_in_leaders_configuration(),
            "zxid": format!("{:#x}", figures.zxid),
            "epoch": figures.zxid >> 32,
            "connections": figures.connections,
            "znodes": figures.znodes,
            "followers": figures.followers,
            "latencyMs": figures.latency,
            "version": figures.version,
        }),
    });
    let whole = serde_json::json!({
        "servers": servers.collect::<Vec<_>>(),
        "whole": problem(asked).is_none(),
        "problem": problem(asked),
    });
    format!("{whole:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpListener;

    const LEADER: &str = "Zookeeper version: 3.9.5-abc, built on 2026-01-01 00:00 UTC\nLatency min/avg/max: 0/1.5/30\n\
        Received: 7\nSent: 6\nConnections: 2\nOutstanding: 0\nZxid: 0x50000000a\nMode: leader\nNode count: 5\n\
        Proposal sizes last/min/max: 1/1/2\n";

    #[test]
    fn answers_become_figures_or_a_reason() {
        let figures = parse_srvr(LEADER).unwrap();
        let wanted = Figures {
            mode: "leader".to_owned(),
            zxid: 0x5_0000_000a,
            connections: 2,
            znodes: 5,
            latency: "0/1.5/30".to_owned(),
            version: "3.9.5".to_owned(),
            followers: None,
            configuration: None,
            standing: None,
        };
        assert_eq!(figures, wanted);
        let answer = "zk_x\t1\nzk_synced_followers\t2.0\n";
        assert_eq!(parse_followers(answer), Some(2));
        let with_removed = format!("zk_synced_non_voting_followers\t1\n{answer}");
        assert_eq!(parse_followers(&with_removed), Some(1));
        for (answer, why) in [
            ("", "does it want TLS"),
            ("This ZooKeeper instance is not currently serving requests\n", "serves no clients"),
            ("srvr is not executed because it is not in the whitelist.\n", "whitelist"),
            ("HTTP/1.1 400 Bad Request\r\n", "no ZooKeeper"),
        ] {
            assert!(parse_srvr(answer).unwrap_err().contains(why), "{answer}");
        }
        assert_eq!(parse_srvr("Mode: follower\nZxid: x\n").unwrap().zxid, 0);
        for (version, shown) in [
            ("3.9.5-oxkeeper.0.2.0-1a2b3c, built on 2026-01-01", "oxkeeper 0.2.0"),
            ("3.9.5-oxkeeper.0.2.0, built on 2026-01-01", "oxkeeper 0.2.0"),
            ("3.4.14-4c25d480e66aadd371de8bd2fd8da255ac140bcf, built on x", "3.4.14"),
            ("3.4.14, built on x", "3.4.14"),
        ] {
            assert_eq!(shown_version(version), shown);
        }
    }

    #[test]
    fn servers_are_named_with_and_without_ports() {
        assert_eq!(host_and_port("zk1"), Ok(("zk1", 2181)));
        assert_eq!(host_and_port("zk1:5"), Ok(("zk1", 5)));
        assert_eq!(host_and_port("::1"), Ok(("::1", 2181)));
        assert_eq!(host_and_port("[::1]:5"), Ok(("::1", 5)));
        assert!(host_and_port("zk1:x").is_err());
    }

    fn is_whole(asked: &[ServerStatus]) -> bool {
        problem(asked).is_none()
    }

    #[test]
    fn table_is_whole_with_one_leader_and_an_answer_of_each_server() {
        let leader = || ("a:1".to_owned(), parse_srvr(LEADER));
        let follower = || ("bb:1".to_owned(), parse_srvr("Mode: follower\nZxid: 0x500000009\n"));
        let down = || ("c:1".to_owned(), Err("not reachable: Connection refused".to_owned()));
        assert!(is_whole(&[leader(), follower()]));
        assert!(!is_whole(&[follower()]));
        assert!(!is_whole(&[leader(), leader()]));
        assert!(!is_whole(&[leader(), down()]));
        assert_eq!(
            as_table(&[leader(), follower(), down()]),
            "SERVER  MODE      ZXID         EPOCH  CONNECTIONS  SYNCED FOLLOWERS  LATENCY   VERSION\n\
             a:1     leader    0x50000000a  5      2            -                 0/1.5/30  3.9.5\n\
             bb:1    follower  0x500000009  5      0            -\n\
             c:1     not reachable: Connection refused\n\
             c:1: not reachable: Connection refused\n"
        );
        let none = as_table(&[follower(), down()]);
        assert!(
            none.ends_with(
                "refused\nnone of these servers leads; c:1: not reachable: Connection refused\n"
            ),
            "{none}"
        );
        assert_eq!(
            problem(&[leader(), leader()]).unwrap(),
            "2 of these servers lead: they are of different ensembles, or of one that is split, or one was named twice"
        );
        let leader_with = |id| {
            let configuration = Some(Configuration { id, ..Configuration::default() });
            ("a:1".to_owned(), parse_srvr(LEADER).map(|found| Figures { configuration, ..found }))
        };
        assert_eq!(
            problem(&[leader_with(7), leader_with(7)]).unwrap(),
            "2 of these servers lead: all have server id 7, so one was named 2 times, or they are of different ensembles"
        );
        assert_eq!(
            problem(&[leader_with(7), leader_with(8)]).unwrap(),
            "2 of these servers lead: they are of different ensembles, or of one that is split"
        );
        let alone = problem(&[follower()]).unwrap();
        assert_eq!(
            alone,
            "none of these servers leads: name all servers of the ensemble, or look into their logs"
        );
        let two = problem(&[down(), down()]).unwrap();
        assert_eq!(
            two,
            "2 of 2 servers do not serve clients; the first, c:1: not reachable: Connection refused"
        );
        let json: serde_json::Value = serde_json::from_str(&as_json(&[leader(), down()])).unwrap();
        assert_eq!(json["servers"][0]["epoch"], 5);
        assert_eq!(json["servers"][1]["error"], "not reachable: Connection refused");
        assert_eq!(json["whole"], false);
    }

    /// An answer to `conf` of server `id`.
    fn conf(id: i64, members: &str) -> String {
        format!("tickTime=2000\nserverId={id}\nquorumPort=1\nmembership: \n{members}\nversion=5")
    }

    fn line(id: i64, role: &str) -> String {
        format!("server.{id}=zk:1:2:{role};0.0.0.0:2181\n")
    }

    /// A server that answers `conf` with `answer`.
    fn learner(name: &str, mode: &str, answer: &str) -> ServerStatus {
        let figures = parse_srvr(&format!("Mode: {mode}\nZxid: 0x7\n"));
        let configuration = parse_configuration(answer);
        (name.to_owned(), figures.map(|figures| Figures { configuration, ..figures }))
    }

    fn modes(mut asked: Vec<ServerStatus>) -> Vec<(String, Option<bool>)> {
        judge(&mut asked);
        answered(&asked)
            .map(|found| (found.shown_mode(), found.is_in_leaders_configuration()))
            .collect()
    }

    #[test]
    fn follower_that_its_own_configuration_has_as_no_voter_is_shown_as_one_without_a_leader() {
        let others = line(1, "participant") + &line(33, "participant");
        for (answer, mode, lacks_vote) in [
            (conf(3, &others), "follower, no voter", Some(true)),
            (conf(3, &(others.clone() + &line(3, "participant"))), "follower", Some(false)),
            (conf(3, &(others + &line(3, "observer"))), "follower, no voter", Some(true)),
            ("serverId=0\n".to_owned(), "follower", None),
            (
                "conf is not executed because it is not in the whitelist.\n".to_owned(),
                "follower",
                None,
            ),
        ] {
            let mut asked = [learner("zk3", "follower", &answer)];
            judge(&mut asked);
            let figures = asked[0].1.as_ref().unwrap();
            assert_eq!(
                (figures.shown_mode().as_str(), figures.lacks_vote()),
                (mode, lacks_vote),
                "{answer}"
            );
            assert_eq!(figures.is_in_leaders_configuration(), None);
        }
    }

    #[test]
    fn learners_are_judged_by_the_configuration_of_their_leader() {
        let leaders = line(1, "participant") + &line(2, "participant") + &line(3, "observer");
        let own = |id| leaders.clone() + &line(id, "participant");
        let asked = |leader: &str| {
            vec![
                learner("a", "leader", leader),
                learner("b", "follower", &conf(2, &leaders)),
                learner("c", "follower", &conf(3, &leaders)),
                // A server that has its own line in its own zoo.cfg alone.
                learner("d", "follower", &conf(4, &own(4))),
                learner("e", "observer", &conf(3, &leaders)),
                learner("f", "observer", &conf(5, &own(5))),
                learner("g", "follower", "conf is not in the whitelist"),
            ]
        };
        let outside =
            |mode: &str| (format!("{mode}, not in the leader's configuration"), Some(false));
        assert_eq!(
            modes(asked(&conf(1, &leaders))),
            [
                ("leader".to_owned(), None),
                ("follower".to_owned(), Some(true)),
                ("follower, no voter".to_owned(), Some(true)),
                outside("follower"),
                ("observer".to_owned(), Some(true)),
                outside("observer"),
                ("follower".to_owned(), None),
            ]
        );
        // Its configuration is unknown, or there are two: each learner is judged by its own.
        let mut two = asked(&conf(1, &leaders));
        two.push(learner("h", "leader", &conf(9, &leaders)));
        for asked in [asked("no answer"), two] {
            let (mode, is_in_leaders) = modes(asked).swap_remove(3);
            assert_eq!((mode.as_str(), is_in_leaders), ("follower", None));
        }
    }

    #[test]
    fn follower_is_asked_for_its_configuration_over_the_network() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let serving = std::thread::spawn(move || {
            for answer in ["Mode: follower\nZxid: 0x7\n".to_owned(), conf(3, "")] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 4]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut asked = [("zk3".to_owned(), figures(&server, None))];
        serving.join().unwrap();
        judge(&mut asked);
        let table = as_table(&asked);
        assert!(table.contains("zk3     follower, no voter  0x7 "), "{table}");
        let json: serde_json::Value = serde_json::from_str(&as_json(&asked)).unwrap();
        let server = &json["servers"][0];
        assert_eq!((&server["mode"], &server["lacksVote"]), (&"follower".into(), &true.into()));
        assert_eq!(server["inLeadersConfiguration"], serde_json::Value::Null);
    }

    #[test]
    fn servers_are_asked_over_the_network_within_a_limit_of_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = std::thread::spawn(move || {
            for answer in [LEADER, "zk_synced_followers\t1\n", "serverId=0\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut word = [0; 4];
                stream.read_exact(&mut word).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
            listener.accept().unwrap() // And is silent.
        });
        assert_eq!(figures(&format!("127.0.0.1:{port}"), None).unwrap().followers, Some(1));
        let end = Instant::now() + Duration::from_millis(50);
        let late = ask("127.0.0.1", port, "srvr", None, end).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(serving.join().unwrap());
    }
}
