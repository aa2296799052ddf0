//! Elections with real Java servers. Our server takes part in the election only: it neither leads nor follows.
//!
//!     cargo test --test election [-- --golden compat-tests/golden/election/messages.txt]
//!
//! * smaller, larger: two servers, Java's and ours. Both elect the server with the larger id, so Java has counted our vote.
//! * ensemble: two Java servers have a leader already. Our server joins, first as an observer and then as a voter; then the leader
//!   is killed, and our vote elects the other Java server; then the killed server restarts and follows it, on our notification.
//!
//! With `--golden`, Java's messages are written to a file, for the tests of the decoders.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a runner starts servers, waits and counts"
)]
#![allow(clippy::print_stdout, reason = "the report of this program is its output")]

mod java;
mod ours;

use java::{Ensemble, Java};
use ours::Ours;
use oxkeeper::model::ServerId;
use oxkeeper::zab::election::{PeerState, Vote};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Java's messages by name, in hexadecimal.
type Golden = BTreeMap<&'static str, String>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--list") {
        println!("0 tests, 0 benchmarks");
        return ExitCode::SUCCESS;
    }
    let golden_file = words.iter().position(|word| word == "--golden").map(|at| &words[at + 1]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut golden = Golden::new();
    let mut sound = true;
    let mut report = |name: &str, result: io::Result<()>| {
        sound &= result.is_ok();
        println!(
            "{name}: {}",
            result.map_or_else(|error| format!("FAILED {error}"), |()| "ok".into())
        );
    };
    report("hello", hello(&mut golden));
    report("smaller", runtime.block_on(two_servers(1, 2, &mut golden)));
    report("larger", runtime.block_on(two_servers(3, 2, &mut golden)));
    report("ensemble", runtime.block_on(ensemble(&mut golden)));
    if let (true, Some(file)) = (sound, golden_file) {
        let lines: String = golden.iter().map(|(name, hex)| format!("{name} {hex}\n")).collect();
        std::fs::write(PathBuf::from(file), lines).expect("the golden file can be written");
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Listens and records the first message that Java sends on an election connection.
fn hello(golden: &mut Golden) -> io::Result<()> {
    let ensemble = Ensemble::new(&[1, 2], &[])?;
    let listener = TcpListener::bind(("127.0.0.1", ensemble.election_port(1)))?;
    let _java = Java::start(&ensemble, 2)?;
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(java::PATIENCE))?;
    let mut head = [0; 20];
    stream.read_exact(&mut head)?;
    let len = u32::from_be_bytes(head[16..].try_into().expect("four bytes"));
    let mut text = vec![0; len as usize];
    stream.read_exact(&mut text)?;
    golden.insert("hello", hex(&[&head[..], &text].concat()));
    Ok(())
}

fn check(holds: bool, what: impl Into<String>) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::other(what.into())) }
}

/// The first vote of a voter with an empty log.
fn fresh(id: i64) -> Vote {
    Vote { epoch: 0, zxid: 0, leader: ServerId(id) }
}

// rows: Q-01 Q-03 Q-04 Q-05 Q-20 Q-23 Q-24
async fn two_servers(ours: i64, javas: i64, golden: &mut Golden) -> io::Result<()> {
    let ensemble = Ensemble::new(&[ours.min(javas), ours.max(javas)], &[])?;
    let mut ours = Ours::start(&ensemble, ours, fresh(ours));
    let java = Java::start(&ensemble, javas)?;
    let elected = ours.elect().await?;
    let leader = ours.id.max(javas);
    check(elected.vote.leader.0 == leader, format!("elected {elected:?}"))?;
    check(elected.electors.len() == 2, format!("elected {elected:?}"))?;
    let state = if leader == javas { " LEADING" } else { " FOLLOWING" };
    ours.stay_until(|| java.log().contains(state)).await?;
    let counted = format!("n.sid:{}, n.state:LOOKING, n.leader:{leader}", ours.id);
    check(java.log().contains(&counted), format!("no {counted} in\n{}", java.log()))?;
    check(!java.log().contains("ERROR"), java.log())?;
    ours.note_heard(PeerState::Looking, "looking", golden);
    Ok(())
}

// rows: Q-08 Q-09 Q-10 Q-13 Q-26
async fn ensemble(golden: &mut Golden) -> io::Result<()> {
    let ensemble = Ensemble::new(&[1, 2, 3], &[9])?;
    let (one, two) = (Java::start(&ensemble, 1)?, Java::start(&ensemble, 2)?);
    one.wait_for("Mode: follower")?;
    two.wait_for("Mode: leader")?;

    let mut observer = Ours::start(&ensemble, 9, Vote::NOTHING);
    let elected = observer.elect().await?;
    check(elected.vote.leader.0 == 2, format!("the observer learned {elected:?}"))?;
    drop(observer);

    let mut ours = Ours::start(&ensemble, 3, fresh(3));
    let elected = ours.elect().await?;
    check(elected.vote.leader.0 == 2 && elected.vote.epoch == 1, format!("joined {elected:?}"))?;
    ours.note_heard(PeerState::Following, "following", golden);
    ours.note_heard(PeerState::Leading, "leading", golden);

    two.kill()?;
    let killed = Instant::now();
    ours.stay_until_down(2).await?;
    ours.look_again(fresh(3));
    let elected = ours.elect().await?;
    println!("  a new leader after {} ms", killed.elapsed().as_millis());
    check(elected.vote.leader.0 == 1, format!("elected {elected:?}"))?;
    ours.stay_until(|| one.log().contains(" LEADING")).await?;

    let two = Java::start(&ensemble, 2)?;
    ours.stay_until(|| two.mode() == "Mode: follower" && one.mode() == "Mode: leader").await?;
    let expected = "n.sid:3, n.state:FOLLOWING, n.leader:1";
    check(two.log().contains(expected), format!("no {expected} in\n{}", two.log()))
}
