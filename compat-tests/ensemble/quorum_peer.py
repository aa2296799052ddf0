"""ZooKeeper's QuorumPeerMainTest, method by method, against server processes; each case names the method that it restates. Cases
about writes and SNAPs that a loss of members interrupts are in `quorum_loss.py`.

testHighestZxidJoinLate is also in `recovery.py::uncommitted_write_of_a_late_leader_is_truncated`, with a leader that may notice
that it is alone.

Not restated, since they are about the inside of Java's process:
  testQuorumDefaults looks for the name of a class in the log (that members without electionAlg elect a leader is every case here);
  testMetricsProviderLifecycle and testMetricsProviderConfiguration record which methods of a class of the tests the server calls;
  testFaultyMetricsProviderOnStart, testFaultyMetricsProviderOnConfigure and testFaultyMetricsProviderOnStop name in
  metricsProvider.className such a class, which throws an exception when the server starts, configures or stops it. This server loads
  no classes: the three providers of docs/configuration.md are part of it and have no such methods, and it refuses any other name
  (testInvalidMetricsProvider);
  testLearnerRequestForwardBehavior counts requests in a queue that this server does not have (docs/parity.md, C-172).
Where a method puts a hook into the server, the case creates the same situation from outside: voters that only vote (`voter.py`),
stopped processes, a partitioned network, or SIGKILL at a moment that a seed chooses.
"""

import socket
import struct
import time

from change import line
from client import Client
from members import until
from quorum_loss import (
    STATIC, first, follower_killed_during_snap_recovers, leader_of, read, write_of_a_lost_leader_is_rolled_back,
    write_of_a_replaced_leader_is_rolled_back,
)
from recovery import configure, ends, launch, run_cases, serve, silent, write
from voter import Voter

TICK_MS = 500
SHORT = ["initLimit=6"]  # 3 s until a leader without followers gives up.


def limits(members, least, most):
    """Checks the session timeouts in `conf`, and those that clients are granted."""
    for member in members:
        shown = member.word("conf")
        assert f"minSessionTimeout={least}\n" in shown and f"maxSessionTimeout={most}\n" in shown, f"{member}: {shown}"
        for asked, wanted in [(1, least), (10_000_000, most)]:
            c = Client([member.address], asked)
            assert c.granted_ms == wanted, f"{member} grants {c.granted_ms} ms for a requested {asked}, not {wanted}"
            c.close()


def ensemble_of_two(ensemble):
    """testQuorum: both serve, with the default session timeouts for tickTime, and their ports are closed after they end."""
    pair = first(ensemble, 2)
    limits(pair, 2 * TICK_MS, 20 * TICK_MS)
    write(*pair)
    write(*pair[::-1])
    ensemble.stop(*pair)
    assert not any(member.word("ruok") for member in pair), "a client port is still open"


def ensemble_of_two_at_ipv6(ensemble):
    """testQuorumV6: the same at [::1], also for clients."""
    pair = ensemble.members[:2]
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return f"skipped: {error}"
    lines = [f"server.{member.number}=[::1]:{member.quorum_port}:{member.election_port};{member.port}" for member in pair]
    for member in pair:
        configure(member, lines)
    launch(*pair)
    serve(*pair)
    write(*pair)
    c = Client([f"::1:{pair[1].port}"])
    c.sync()
    c.close()
    return None


def elected_leader_without_followers_looks_again(ensemble):
    """testElectionFraud: two voters elect a leader and don't follow it; it goes back to LOOKING, and joins the real ensemble."""
    one, two, three = ensemble.members[:3]
    for member in (one, two, three):
        configure(member, [line(other) for other in (one, two, three)], settings=SHORT)
    voters = [Voter(member, leader=three.number) for member in (one, two)]
    launch(three)
    seen = voters[0].seen
    until("LEADING", lambda: (3, "leading") in seen or (3, "following") in seen or listens(three))
    del seen[:]
    until("LOOKING again", lambda: (3, "looking") in seen, 60)
    assert not three.mode(), "it serves without a follower"
    for voter in voters:
        voter.close()
    launch(one, two)
    serve(one, two, three)
    leader_of((one, two, three))
    write(one, three)
    write(three, two)


def listens(member):
    """Whether the member accepts learner connections: only a leader does."""
    try:
        socket.create_connection((member.host, member.quorum_port), timeout=1).close()
        return True
    except OSError:
        return False


def unresolvable_address_of_a_member_is_logged(ensemble):
    """testBadPeerAddressInQuorum: a member whose only peer has an unresolvable address does not serve, and logs the address."""
    one = ensemble.members[0]
    configure(one, [line(one), "server.2=no.such.invalid:1:2:participant;127.0.0.1:3"])
    launch(one)
    silent(one)
    assert "no.such.invalid" in one.log.read_text(errors="replace"), f"the address is not logged:\n{one.tail()}"


def server_list_overrides_peer_type(ensemble):
    """testInconsistentPeerType: the role in the list of servers counts when peerType differs or is missing."""
    one, two, three, four = ensemble.members[:4]
    lines = [line(one), line(two), line(three, "observer"), line(four, "observer")]
    for member in (one, two, three, four):
        configure(member, lines, settings=["peerType=participant"] if member is four else [])
    launch(one, two, three, four)
    serve(one, two, three, four)
    assert [three.mode(), four.mode()] == ["observer"] * 2, f"they are {three.mode()} and {four.mode()}"
    assert "peerType" in four.log.read_text(errors="replace"), f"the difference is not logged:\n{four.tail()}"
    write(one, three)
    write(four, two)


def huge_length_at_election_ports_is_harmless(ensemble):
    """testBadPackets: members keep their roles when a stranger sends the length of a gigabyte to their election ports."""
    pair = first(ensemble, 2)
    for member in pair:
        with socket.create_connection((member.host, member.election_port)) as stranger:
            stranger.sendall(struct.pack(">i", 1 << 30))
    write(*pair)
    assert sorted(member.mode() for member in pair) == ["follower", "leader"], "they have lost their roles"


def member_without_a_leader_exits_on_sigterm(ensemble):
    """testQuorumPeerExitTime: a member that found no leader exits on SIGTERM."""
    one, two = ensemble.members[:2]
    configure(one, [line(one), line(two)])
    launch(one)
    silent(one)
    one.end()


def configured_session_timeouts_apply(ensemble):
    """testMinMaxSessionTimeOut"""
    limits(first(ensemble, 2, ["minSessionTimeout=3000", "maxSessionTimeout=7000"]), 3000, 7000)


def configured_minimum_session_timeout_applies(ensemble):
    """testWithOnlyMinSessionTimeout"""
    limits(first(ensemble, 2, ["minSessionTimeout=3000"]), 3000, 20 * TICK_MS)


def member_does_not_follow_a_leader_outside_its_view(ensemble):
    """testLeaderOutOfView: a member whose zoo.cfg lacks the leader does not follow it."""
    one, two, three = ensemble.members[:3]
    whole_view = [line(member) for member in (one, two, three)]
    configure(one, whole_view[:2], settings=STATIC)
    for member in (two, three):
        configure(member, whole_view, settings=STATIC)
    launch(one)
    silent(one)
    launch(three)
    time.sleep(1)
    launch(two)
    serve(two, three)
    if two.mode() == "leader":  # Elected by the vote of the first member, whose zoo.cfg names it.
        serve(one)
        assert [one.mode(), three.mode()] == ["follower"] * 2
    else:
        assert [two.mode(), three.mode()] == ["follower", "leader"]
        silent(one)
    write(two, three)


def logs_and_snapshots_use_their_folders(ensemble):
    """testDataDirAndDataLogDir: logs are in dataLogDir, snapshots in dataDir."""
    pair = ensemble.members[:2]
    for member in pair:
        configure(member, [line(other) for other in pair], settings=[f"dataLogDir={member.folder / 'logs'}"])
    for _ in range(2):
        launch(*pair)
        serve(*pair)
        path = write(*pair)
        ensemble.stop(*pair)
    for member in pair:
        data, logs = ({path.name.split(".")[0] for path in (member.folder / name / "version-2").iterdir()}
                      for name in ("data", "logs"))
        assert "log" in logs and "snapshot" in data and "snapshot" not in logs and "log" not in data, f"{data}, {logs}"
    launch(*pair)
    serve(*pair)
    assert read(pair[0], path) == b"x"
    ensemble.stop(*pair)


def disloyal_voter(ensemble, started):
    members = ensemble.members[:started]
    for member in ensemble.members:
        configure(member, [line(other) for other in ensemble.members], settings=SHORT)
    disloyal, *loyal = members
    voter = Voter(disloyal)
    launch(*loyal)
    if len(loyal) > len(ensemble.members) // 2:
        serve(*loyal)
    else:  # A quorum needs the voter that has voted and does not follow.
        until("the election ends", lambda: any(listens(member) for member in loyal))
        silent(*loyal)
    voter.close()
    launch(disloyal)
    serve(*members)
    leader_of(members)
    write(members[0], members[1])
    write(members[2], members[0])


def quorum_waits_for_a_needed_voter_that_does_not_follow(ensemble):
    """testLeaderElectionWithDisloyalVoter: three of five, one of which votes and does not follow: they serve once it follows."""
    disloyal_voter(ensemble, 3)


def quorum_serves_without_an_unneeded_voter_that_does_not_follow(ensemble):
    """testLeaderElectionWithDisloyalVoter_stillHasMajority: four of five don't wait for a fifth that votes and does not follow."""
    disloyal_voter(ensemble, 5)


def unknown_metrics_provider_stops_the_start(ensemble):
    """testInvalidMetricsProvider: the server does not start, and logs the name of the class."""
    one, two = ensemble.members[:2]
    configure(one, [line(one), line(two)], settings=["metricsProvider.className=BadClass"])
    launch(one)
    assert ends(one) != 0, "it exits with status 0"
    assert "BadClass" in one.log.read_text(errors="replace"), one.tail()


CASES = [
    ensemble_of_two, ensemble_of_two_at_ipv6, write_of_a_lost_leader_is_rolled_back, elected_leader_without_followers_looks_again,
    unresolvable_address_of_a_member_is_logged, server_list_overrides_peer_type, huge_length_at_election_ports_is_harmless,
    member_without_a_leader_exits_on_sigterm, configured_session_timeouts_apply, configured_minimum_session_timeout_applies,
    write_of_a_replaced_leader_is_rolled_back, member_does_not_follow_a_leader_outside_its_view,
    logs_and_snapshots_use_their_folders, follower_killed_during_snap_recovers,
    quorum_waits_for_a_needed_voter_that_does_not_follow, quorum_serves_without_an_unneeded_voter_that_does_not_follow,
    unknown_metrics_provider_stops_the_start,
]


# rows: Q-05 Q-21 Q-73 C-13 C-22 C-23 C-29
def check(ensemble, arguments):
    return run_cases(CASES, ensemble, arguments)
