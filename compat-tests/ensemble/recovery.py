"""Recovery after failures: proposed configurations, lost data, members that start late.

Each case restates one of ZooKeeper's own tests against server processes: ReconfigRecoveryTest, QuorumZxidSyncTest,
EmptiedSnapshotRecoveryTest, QuorumPeerMainTest (the rest of it: `quorum_peer.py`). A case stops all members, gives them empty disks
and new configuration files, and starts the members that it needs.
"""

import re
import shutil
import time

from change import SETTINGS, config, line
from client import Client
from members import Ensemble, Failed, free_port, until
from wire import Lost

FIRST, NEXT = "100000000", "200000000"  # Versions in hexadecimal.
SILENT_SECONDS = 6  # Longer than several elections.


class Recovery(Ensemble):
    """Five members whose zoo.cfg each case writes itself."""

    def begin(self):
        """Stops all members, deletes their data and configuration, and gives them new ports."""
        self.stop()
        for member in self.members:
            for path in [*member.folder.glob("zoo.cfg*"), *(member.folder / "data").glob("version-2")]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            member.observes = False
            renumber(member)


def renumber(member):
    member.port, member.quorum_port, member.election_port = free_port(), free_port(), free_port()
    member.address = f"127.0.0.1:{member.port}"


def configure(member, lines, version=None, settings=()):
    """Writes zoo.cfg, and a dynamic file with the servers; `settings` override those that all cases share."""
    dynamic = member.folder / ("zoo.cfg.dynamic" + (f".{version}" if version else ""))
    dynamic.write_text("".join(f"{server}\n" for server in lines))
    (member.folder / "zoo.cfg").write_text("\n".join([
        f"dataDir={member.folder / 'data'}", "tickTime=500", "initLimit=40", "syncLimit=20", "4lw.commands.whitelist=*",
        "admin.enableServer=false", *SETTINGS, *settings, f"dynamicConfigFile={dynamic}",
    ]) + "\n")


def propose(member, lines):
    """Writes `.dynamic.next`, as an unfinished reconfiguration leaves it."""
    text = "".join(f"{server}\n" for server in lines) + f"version={NEXT}"
    (member.folder / "zoo.cfg.dynamic.next").write_text(text)


def launch(*members):
    for member in members:
        member.launch()


def serve(*members):
    until(f"{members} serve", lambda: all(member.mode() for member in members), 60)


def ends(member):
    until(f"{member} ends", lambda: member.process.poll() is not None)
    code, member.process = member.process.returncode, None
    return code


def configuration_of(member):
    """The servers and the version of the configuration at a member."""
    c = Client([member.address])
    c.sync()
    found = config(c).split()
    c.close()
    return sorted(found[:-1]), found[-1]


def wait_for_configuration(members, lines, version=None):
    heard = {}

    def once():
        try:
            heard.update({member: configuration_of(member) for member in members})
        except (Lost, Failed, AssertionError) as error:
            heard["error"] = error
            return False
        return all(heard[member][0] == sorted(lines) and version in (None, heard[member][1].split("=")[1])
                   for member in members)
    try:
        until(f"{members} have {lines} {version or ''}", once, 30)
    except Failed as error:
        raise Failed(f"{error}; they have {heard}") from None


def write(at, read_at):
    """Writes through one member and reads through the other; returns the path."""
    c, other = Client([at.address]), Client([read_at.address])
    path = f"/made-{time.monotonic_ns()}"
    assert c.make(path, b"x")[0] == 0
    other.sync()
    assert other.get(path)[:2] == (0, b"x")
    c.close()
    other.close()
    return path


def silent(*members, may_end=False):
    """Checks that for some seconds none of these members serves."""
    deadline = time.monotonic() + SILENT_SECONDS
    while time.monotonic() < deadline:
        for member in members:
            mode = re.search(r"^Mode: (\w+)", member.word("srvr"), re.M)
            assert not mode, f"{member} serves: {mode.group()}"
            assert may_end or member.process.poll() is None, f"{member} exited by itself"
        time.sleep(0.1)


def members_complete_a_proposed_configuration(ensemble):
    """testNextConfigCompletion: members with a proposed configuration complete it; a member that never had it joins."""
    one, two, three = ensemble.members[:3]
    lines = [line(member) for member in (one, two, three)]
    for member in (one, two):
        configure(member, lines[:2], FIRST)
        propose(member, lines)
    launch(one, two)
    serve(one, two)
    leader = one if one.mode() == "leader" else two
    configure(three, [line(leader), line(three)])
    launch(three)
    serve(three)
    wait_for_configuration((one, two, three), lines)
    write(one, three)
    write(three, two)


def voters_become_observers(ensemble):
    """testCurrentServersAreObserversInNextConfig: voters that are observers in the proposed configuration complete it and become
    observers, also after their ports changed."""
    one, two, *others = ensemble.members
    before = [line(one), line(two)]
    for member in (one, two):
        configure(member, before, FIRST)
    launch(one, two)
    serve(one, two)
    write(one, two)
    ensemble.stop()
    for member in (one, two):
        renumber(member)
    lines = [line(one, "observer"), line(two, "observer"), *(line(member) for member in others)]
    for member in (one, two):
        propose(member, lines)
    for member in others:
        configure(member, [*before, line(member)])
    launch(*ensemble.members)
    serve(*ensemble.members)
    wait_for_configuration(ensemble.members, lines)
    write(one, others[0])
    write(others[2], two)


def members_wait_for_a_quorum_of_the_proposed_configuration(ensemble):
    """testNextConfigUnreachable: members don't serve without a quorum of the proposed configuration, which may be in force elsewhere."""
    one, two = ensemble.members[:2]
    lines = [line(member) for member in ensemble.members]
    for member in (one, two):
        configure(member, lines[:2], FIRST)
        propose(member, lines)
    launch(one, two)
    silent(one, two)


def old_members_join_the_new_configuration(ensemble):
    """testNextConfigAlreadyActive: members of the old configuration join the new ensemble, which keeps its leader and epoch."""
    one, two, *others = ensemble.members
    lines = [line(member) for member in ensemble.members]
    for member in others:
        configure(member, lines, NEXT)
    launch(*others)
    serve(*others)
    write(others[0], others[1])
    epoch = others[0].zxid() >> 32
    for member in (one, two):
        configure(member, lines[:2], FIRST)
        propose(member, lines)
    launch(one, two)
    serve(one, two)
    for member in ensemble.members:
        accepted = int((member.folder / "data/version-2/acceptedEpoch").read_text())
        assert accepted == epoch, f"{member} accepted epoch {accepted}, not {epoch}"
    wait_for_configuration((one, two), lines)
    write(one, others[0])
    write(others[2], two)


def observer_learns_that_it_is_a_voter(ensemble):
    """testObserverConvertedToParticipantDuringFLE: an observer learns the committed configuration from a voter's notification."""
    one, two, three, four = ensemble.members[:4]
    configure(three, [line(one), line(two), line(three, "observer")], FIRST)
    lines = [line(three), line(four)]
    configure(four, lines, NEXT)
    launch(three, four)
    serve(three, four)
    wait_for_configuration((three, four), lines, NEXT)
    write(three, three)
    write(four, three)


def ack_of_an_observer_completes_the_configuration_where_it_votes(ensemble):
    """testCurrentObserverIsParticipantInNewConfig: an observer is a voter of the proposed configuration, and its ACK completes it."""
    one, two, three, four = ensemble.members[:4]
    before = [line(one), line(two), line(three, "observer")]
    for member in (one, two, three):
        configure(member, before, FIRST)
    launch(one, two, three)
    serve(one, two, three)
    write(one, three)
    ensemble.stop()
    lines = [line(three), line(four)]
    for member in (one, two, three):
        propose(member, lines)
    configure(four, [*before, line(four)])
    launch(one, two, three, four)
    serve(three, four)
    wait_for_configuration((three, four), lines, NEXT)
    write(three, four)
    write(four, three)


def whole(ensemble):
    """Starts all five members for the first time."""
    lines = [line(member) for member in ensemble.members]
    for member in ensemble.members:
        configure(member, lines)
    launch(*ensemble.members)
    serve(*ensemble.members)


def restart(ensemble, *members):
    ensemble.stop()
    launch(*(members or ensemble.members))
    serve(*(members or ensemble.members))


def member_with_a_later_epoch_does_not_join(ensemble):
    """QuorumZxidSyncTest.testBehindLeader: a member with a later epoch than all others does not join them, and they keep their data."""
    whole(ensemble)
    for _ in range(2):
        write(ensemble.members[0], ensemble.members[1])
        restart(ensemble)
    write(ensemble.members[0], ensemble.members[1])
    ensemble.stop()
    *others, last = ensemble.members
    for member in others:
        member.forget()
    launch(*others)
    serve(*others)
    path = write(others[0], others[1])
    launch(last)
    silent(last)
    c = Client([others[2].address])
    c.sync()
    assert c.exists(path), "an acknowledged write is lost"
    c.close()
    last.end()
    last.forget()  # The remedy that its log names.
    launch(last)
    serve(last)
    write(last, others[0])


def older_data_beside_newer_logs_refuses_to_start(ensemble):
    """A member's dataDir goes back to an older copy, and its dataLogDir does not: it has forgotten which epochs it accepted."""
    three = ensemble.members[:3]
    for member in three:
        configure(member, [line(other) for other in three], settings=[f"dataLogDir={member.folder / 'logs'}"])
    restart(ensemble, *three)
    restored, data, copied = three[0], three[0].folder / "data/version-2", three[0].folder / "copied"
    ensemble.stop()
    shutil.copytree(data, copied)
    launch(*three)
    serve(*three)
    path = write(*three[:2])
    ensemble.stop()
    shutil.rmtree(data)
    copied.rename(data)
    launch(restored)
    assert ends(restored) != 0, f"{restored} starts"
    shutil.rmtree(data)
    shutil.rmtree(restored.folder / "logs")
    launch(*three)
    serve(*three)
    c = Client([restored.address])
    c.sync()
    assert c.exists(path), "an acknowledged write is lost"
    c.close()
    ensemble.stop()
    for member in three:
        shutil.rmtree(member.folder / "logs")


def members_without_logs_restart_from_snapshots(ensemble):
    """QuorumZxidSyncTest.testLateLogs: without logs members start from their snapshots, and later writes survive a restart."""
    whole(ensemble)
    for _ in range(2):
        write(ensemble.members[0], ensemble.members[1])
        restart(ensemble)
    ensemble.stop()
    for member in ensemble.members:
        for path in member.files("log").values():
            path.unlink()
    launch(*ensemble.members)
    serve(*ensemble.members)
    path = write(ensemble.members[0], ensemble.members[1])
    restart(ensemble)
    c = Client([ensemble.members[0].address])
    assert c.exists(path), "an acknowledged write is lost"
    c.close()


def followers_without_snapshots_take_one(ensemble):
    """EmptiedSnapshotRecoveryTest: followers that start without snapshots, with snapshot.trust.empty, take a snapshot."""
    whole(ensemble)
    paths = [write(ensemble.members[0], ensemble.members[1]) for _ in range(20)]
    leader = ensemble.leader()
    ensemble.stop()
    followers = [member for member in ensemble.members if member is not leader]
    for member in followers:
        for path in member.files("snapshot").values():
            path.unlink()
        member.flags = [*member.flags, "zookeeper.snapshot.trust.empty=true"]
    restart(ensemble)
    for member in followers:
        until(f"a snapshot of {member}", lambda m=member: m.files("snapshot"))
        member.flags = member.flags[:-1]
    restart(ensemble)  # Without snapshot.trust.empty.
    for member in ensemble.members:
        c = Client([member.address])
        c.sync()
        assert all(c.exists(path) for path in paths), f"{member} has lost an acknowledged write"
        c.close()


def standalone_server_without_snapshots_refuses_to_start(ensemble):
    """EmptiedSnapshotRecoveryTest: a standalone server whose snapshots are empty or missing starts only with snapshot.trust.empty.

    Its first log file is missing too: with a complete log our server needs no snapshot (docs/deviations.md).
    """
    alone = ensemble.members[0]
    (alone.folder / "zoo.cfg").write_text(
        f"dataDir={alone.folder / 'data'}\nclientPort={alone.port}\n4lw.commands.whitelist=*\nadmin.enableServer=false\n")
    alone.flags = [*alone.flags, "zookeeper.snapCount=20"]
    launch(alone)
    serve(alone)
    paths = [write(alone, alone) for _ in range(20)]
    ensemble.stop(alone)
    assert len(alone.files("log")) > 1, "a snapshot must begin a new log file"
    first_log = next(iter(alone.files("log").values()))
    kept = first_log.rename(first_log.with_name("kept"))
    for make_useless in [lambda path: path.write_bytes(b""), lambda path: path.unlink()]:
        for path in alone.files("snapshot").values():
            make_useless(path)
        launch(alone)
        assert ends(alone) != 0, f"{alone} starts without its snapshots"
        assert not any(path.stat().st_size for path in alone.files("snapshot").values()), "it has taken a snapshot"
    kept.rename(first_log)
    alone.flags = [*alone.flags, "zookeeper.snapshot.trust.empty=true"]
    launch(alone)
    serve(alone)
    alone.flags = alone.flags[:-2]
    c = Client([alone.address])
    assert all(c.exists(path) for path in paths), "an acknowledged write is lost"
    c.close()


def uncommitted_write_of_a_late_leader_is_truncated(ensemble):
    """QuorumPeerMainTest.testHighestZxidJoinLate: a write that only the old leader logged is truncated when it joins the others late."""
    lines = [line(member) for member in ensemble.members[:3]]
    three = ensemble.members[:3]
    for member in three:
        configure(member, lines)
    launch(*three)
    serve(*three)
    write(three[0], three[1])
    leader = ensemble.leader()
    others = [member for member in three if member is not leader]
    c = Client([leader.address])
    ensemble.stop(*others)
    try:  # The leader may log this before it notices that it is alone.
        c.make("/of-one-alone")
    except (Lost, Failed):
        pass
    c.socket.close()
    ensemble.stop()
    launch(*others)
    serve(*others)
    path = write(others[0], others[1])
    launch(leader)
    serve(leader)
    found = []
    for member in three:
        c = Client([member.address])
        c.sync()
        assert c.exists(path), f"{member} lacks an acknowledged write"
        found.append(bool(c.exists("/of-one-alone")))
        c.close()
    assert not any(found), f"some members have an uncommitted write: {found}"


CASES = [
    members_complete_a_proposed_configuration, voters_become_observers, members_wait_for_a_quorum_of_the_proposed_configuration,
    old_members_join_the_new_configuration, observer_learns_that_it_is_a_voter,
    ack_of_an_observer_completes_the_configuration_where_it_votes, member_with_a_later_epoch_does_not_join,
    older_data_beside_newer_logs_refuses_to_start, members_without_logs_restart_from_snapshots, followers_without_snapshots_take_one,
    standalone_server_without_snapshots_refuses_to_start, uncommitted_write_of_a_late_leader_is_truncated,
]


# rows: Q-97 Q-98 C-63
def check(ensemble, arguments):
    return run_cases(CASES, ensemble, arguments)


def run_cases(cases, ensemble, arguments):
    """Runs each case, then restores the ensemble's original zoo.cfg files; a case may return why it was skipped."""
    original = {member: (member.folder / "zoo.cfg").read_text() for member in ensemble.members}
    done = []
    for case in cases:
        if arguments.case and arguments.case != case.__name__:
            continue
        ensemble.begin()
        since = time.monotonic()
        left_out = case(ensemble)
        done.append(f"{re.sub('_', ' ', case.__name__)} {left_out or f'{time.monotonic() - since:.0f} s'}")
    ensemble.begin()
    for member, text in original.items():  # With new ports.
        (member.folder / "zoo.cfg").write_text(re.sub(r"(?m)^(server\.|clientPort=).*\n", "", text)
                                               + f"clientPort={member.port}\n"
                                               + "".join(f"{other.line()}\n" for other in ensemble.members))
    ensemble.start()
    return ", ".join(done)
