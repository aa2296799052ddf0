"""ZooKeeper's QuorumPeerMainTest, method by method, from outside; each case names the method that it restates. Those about
writes and trees that a loss of members leaves unfinished are in `quorum_loss.py`.

Elsewhere: testHighestZxidJoinLate also in `recovery.py::the_newest_comes_late`, with a leader that may know that it is alone.

Not restated, since they are about the inside of Java's process:
  testQuorumDefaults looks for the name of a class in the log (that members without electionAlg elect a leader is every case here);
  testMetricsProviderLifecycle, testMetricsProviderConfiguration and testFaultyMetricsProviderOnStop, -OnStart, -OnConfigure load
  classes of the tests into the server, of which there can be none here;
  testLearnerRequestForwardBehavior counts requests in a queue that this server does not have (docs/parity.md, C-172).
Where a method puts a hook into the server, the case makes the same situation from outside: voters that only vote (`voter.py`),
stopped processes, a network that loses everything, or SIGKILL at a moment that a seed chooses.
"""

import socket
import struct
import time

from change import line
from client import Client
from members import until
from quorum_loss import (
    STATIC, first, follower_killed_while_it_takes_a_tree, leader_of, read, write_of_a_leader_that_was_replaced,
    write_of_a_lost_leader_is_rolled_back,
)
from recovery import configure, ends, launch, run_cases, serve, silent, write
from voter import Voter

TICK_MS = 500
SHORT = ["initLimit=6"]  # 3 s until a leader that nobody follows gives up.


def limits(members, least, most):
    """Session timeouts as `conf` tells them and as clients get them."""
    for member in members:
        told = member.word("conf")
        assert f"minSessionTimeout={least}\n" in told and f"maxSessionTimeout={most}\n" in told, f"{member}: {told}"
        for asked, wanted in [(1, least), (10_000_000, most)]:
            c = Client([member.address], asked)
            assert c.granted_ms == wanted, f"{member} grants {c.granted_ms} ms to who asks for {asked}, not {wanted}"
            c.close()


def ensemble_of_two(ensemble):
    """testQuorum: both serve, with the session timeouts that follow from tickTime, and are gone when they are ended."""
    pair = first(ensemble, 2)
    limits(pair, 2 * TICK_MS, 20 * TICK_MS)
    write(*pair)
    write(*pair[::-1])
    ensemble.stop(*pair)
    assert not any(member.word("ruok") for member in pair), "a port serves that nobody should listen at"


def ensemble_of_two_at_ipv6(ensemble):
    """testQuorumV6: the same at [::1], also for clients."""
    pair = ensemble.members[:2]
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        return f"left out: {error}"
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


def leader_by_fraud_gives_up(ensemble):
    """testElectionFraud: two voters elect a leader and don't follow it; it looks for a leader again, and joins the others."""
    one, two, three = ensemble.members[:3]
    for member in (one, two, three):
        configure(member, [line(other) for other in (one, two, three)], settings=SHORT)
    voters = [Voter(member, leader=three.number) for member in (one, two)]
    launch(three)
    seen = voters[0].seen
    until("it leads", lambda: (3, "leading") in seen or (3, "following") in seen or listens(three))
    del seen[:]
    until("it looks for a leader again", lambda: (3, "looking") in seen, 60)
    assert not three.mode(), "it serves without a follower"
    for voter in voters:
        voter.close()
    launch(one, two)
    serve(one, two, three)
    leader_of((one, two, three))
    write(one, three)
    write(three, two)


def listens(member):
    """Whether it takes learners: only a leader does."""
    try:
        socket.create_connection((member.host, member.quorum_port), timeout=1).close()
        return True
    except OSError:
        return False


def address_that_cannot_be_resolved(ensemble):
    """testBadPeerAddressInQuorum: one of two whose other one is nowhere does not serve, and says where it looked."""
    one = ensemble.members[0]
    configure(one, [line(one), "server.2=no.such.invalid:1:2:participant;127.0.0.1:3"])
    launch(one)
    silent(one)
    assert "no.such.invalid" in one.log.read_text(errors="replace"), f"nothing is said of the address:\n{one.tail()}"


def observer_by_the_list_alone(ensemble):
    """testInconsistentPeerType: what the list of servers says counts when peerType says something else or nothing."""
    one, two, three, four = ensemble.members[:4]
    lines = [line(one), line(two), line(three, "observer"), line(four, "observer")]
    for member in (one, two, three, four):
        configure(member, lines, settings=["peerType=participant"] if member is four else [])
    launch(one, two, three, four)
    serve(one, two, three, four)
    assert [three.mode(), four.mode()] == ["observer"] * 2, f"they are {three.mode()} and {four.mode()}"
    assert "peerType" in four.log.read_text(errors="replace"), f"nothing is said of the difference:\n{four.tail()}"
    write(one, three)
    write(four, two)


def huge_length_at_election_ports(ensemble):
    """testBadPackets: members go on when somebody announces a gigabyte at their election ports and leaves."""
    pair = first(ensemble, 2)
    for member in pair:
        with socket.create_connection((member.host, member.election_port)) as stranger:
            stranger.sendall(struct.pack(">i", 1 << 30))
    write(*pair)
    assert sorted(member.mode() for member in pair) == ["follower", "leader"], "they have lost their roles"


def one_of_two_ends(ensemble):
    """testQuorumPeerExitTime: a member that has looked in vain for a leader ends when it is told to."""
    one, two = ensemble.members[:2]
    configure(one, [line(one), line(two)])
    launch(one)
    silent(one)
    one.end()


def session_timeouts_as_set(ensemble):
    """testMinMaxSessionTimeOut"""
    limits(first(ensemble, 2, ["minSessionTimeout=3000", "maxSessionTimeout=7000"]), 3000, 7000)


def only_the_least_session_timeout_is_set(ensemble):
    """testWithOnlyMinSessionTimeout"""
    limits(first(ensemble, 2, ["minSessionTimeout=3000"]), 3000, 20 * TICK_MS)


def leader_that_one_member_is_not_told_of(ensemble):
    """testLeaderOutOfView: a member whose file lacks the leader does not follow it."""
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
    if two.mode() == "leader":  # By the vote of the first one, which is told of it.
        serve(one)
        assert [one.mode(), three.mode()] == ["follower"] * 2
    else:
        assert [two.mode(), three.mode()] == ["follower", "leader"]
        silent(one)
    write(two, three)


def data_and_log_folders(ensemble):
    """testDataDirAndDataLogDir: logs in one folder, snapshots in the other."""
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
    else:  # One is missing, which has voted.
        until("they agree", lambda: any(listens(member) for member in loyal))
        silent(*loyal)
    voter.close()
    launch(disloyal)
    serve(*members)
    leader_of(members)
    write(members[0], members[1])
    write(members[2], members[0])


def voter_that_is_needed_does_not_follow(ensemble):
    """testLeaderElectionWithDisloyalVoter: three of five, one of which voted and left: they serve when it is back."""
    disloyal_voter(ensemble, 3)


def voter_that_is_not_needed_does_not_follow(ensemble):
    """testLeaderElectionWithDisloyalVoter_stillHasMajority: four of five need not wait for the one that voted and left."""
    disloyal_voter(ensemble, 5)


def metrics_provider_that_is_none(ensemble):
    """testInvalidMetricsProvider: the server does not start, and names it."""
    one, two = ensemble.members[:2]
    configure(one, [line(one), line(two)], settings=["metricsProvider.className=BadClass"])
    launch(one)
    assert ends(one) != 0, "it ends as if all were well"
    assert "BadClass" in one.log.read_text(errors="replace"), one.tail()


CASES = [
    ensemble_of_two, ensemble_of_two_at_ipv6, write_of_a_lost_leader_is_rolled_back, leader_by_fraud_gives_up,
    address_that_cannot_be_resolved, observer_by_the_list_alone, huge_length_at_election_ports, one_of_two_ends,
    session_timeouts_as_set, only_the_least_session_timeout_is_set, write_of_a_leader_that_was_replaced,
    leader_that_one_member_is_not_told_of, data_and_log_folders, follower_killed_while_it_takes_a_tree,
    voter_that_is_needed_does_not_follow, voter_that_is_not_needed_does_not_follow, metrics_provider_that_is_none,
]


# rows: Q-05 Q-21 Q-73 C-13 C-22 C-23 C-29
def check(ensemble, arguments):
    return run_cases(CASES, ensemble, arguments)
