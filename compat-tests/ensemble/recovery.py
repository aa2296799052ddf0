"""What is left after a failure: configurations that were proposed, data that is gone, servers that come late.

Each case restates a test of ZooKeeper's own from outside: ReconfigRecoveryTest, QuorumZxidSyncTest, EmptiedSnapshotRecoveryTest,
QuorumPeerMainTest (the rest of it: `quorum_peer.py`). A case stops all members, gives them empty disks and other files, and starts whom it wants.
"""

import re
import shutil
import time

from change import SETTINGS, config, line
from client import Client
from members import Ensemble, Failed, free_port, until
from wire import Lost

FIRST, NEXT = "100000000", "200000000"  # Versions in hexadecimal.
SILENT_SECONDS = 6  # Several elections long.


class Recovery(Ensemble):
    """Five members whose zoo.cfg a case writes anew."""

    def begin(self):
        """All are stopped and know nothing, at new ports."""
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
    """zoo.cfg, and the servers in its dynamic file; `settings` count above those that all cases have."""
    dynamic = member.folder / ("zoo.cfg.dynamic" + (f".{version}" if version else ""))
    dynamic.write_text("".join(f"{server}\n" for server in lines))
    (member.folder / "zoo.cfg").write_text("\n".join([
        f"dataDir={member.folder / 'data'}", "tickTime=500", "initLimit=40", "syncLimit=20", "4lw.commands.whitelist=*",
        "admin.enableServer=false", *SETTINGS, *settings, f"dynamicConfigFile={dynamic}",
    ]) + "\n")


def propose(member, lines):
    """Leaves what a reconfiguration leaves that was under way."""
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


def told(member):
    """The servers and the version that a member tells."""
    c = Client([member.address])
    c.sync()
    found = config(c).split()
    c.close()
    return sorted(found[:-1]), found[-1]


def tells(members, lines, version=None):
    heard = {}

    def once():
        try:
            heard.update({member: told(member) for member in members})
        except (Lost, Failed, AssertionError) as error:
            heard["error"] = error
            return False
        return all(heard[member][0] == sorted(lines) and version in (None, heard[member][1].split("=")[1])
                   for member in members)
    try:
        until(f"{members} tell {lines} {version or ''}", once, 30)
    except Failed as error:
        raise Failed(f"{error}; they tell {heard}") from None


def write(at, read_at):
    """What is written through one member is read through the other."""
    c, other = Client([at.address]), Client([read_at.address])
    path = f"/made-{time.monotonic_ns()}"
    assert c.make(path, b"x")[0] == 0
    other.sync()
    assert other.get(path)[:2] == (0, b"x")
    c.close()
    other.close()
    return path


def silent(*members, may_end=False):
    """For a while none of them serves anybody."""
    deadline = time.monotonic() + SILENT_SECONDS
    while time.monotonic() < deadline:
        for member in members:
            mode = re.search(r"^Mode: (\w+)", member.word("srvr"), re.M)
            assert not mode, f"{member} serves: {mode.group()}"
            assert may_end or member.process.poll() is None, f"{member} ended by itself"
        time.sleep(0.1)


def next_is_completed(ensemble):
    """testNextConfigCompletion: members with a proposed configuration complete it; who was never told of it joins."""
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
    tells((one, two, three), lines)
    write(one, three)
    write(three, two)


def voters_become_observers(ensemble):
    """testCurrentServersAreObserversInNextConfig, with other ports."""
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
    tells(ensemble.members, lines)
    write(one, others[0])
    write(others[2], two)


def next_is_out_of_reach(ensemble):
    """testNextConfigUnreachable: nobody goes on without a quorum of the proposed configuration, which may be in force elsewhere."""
    one, two = ensemble.members[:2]
    lines = [line(member) for member in ensemble.members]
    for member in (one, two):
        configure(member, lines[:2], FIRST)
        propose(member, lines)
    launch(one, two)
    silent(one, two)


def next_is_in_force(ensemble):
    """testNextConfigAlreadyActive: members of the old configuration join the new one, which goes on as it is."""
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
    tells((one, two), lines)
    write(one, others[0])
    write(others[2], two)


def observer_hears_that_it_votes(ensemble):
    """testObserverConvertedToParticipantDuringFLE: one that knows the committed configuration convinces one that does not."""
    one, two, three, four = ensemble.members[:4]
    configure(three, [line(one), line(two), line(three, "observer")], FIRST)
    lines = [line(three), line(four)]
    configure(four, lines, NEXT)
    launch(three, four)
    serve(three, four)
    tells((three, four), lines, NEXT)
    write(three, three)
    write(four, three)


def observer_is_to_vote(ensemble):
    """testCurrentObserverIsParticipantInNewConfig: the observer's acknowledgement completes the proposed configuration."""
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
    tells((three, four), lines, NEXT)
    write(three, four)
    write(four, three)


def whole(ensemble):
    """All five as they would be started for the first time."""
    lines = [line(member) for member in ensemble.members]
    for member in ensemble.members:
        configure(member, lines)
    launch(*ensemble.members)
    serve(*ensemble.members)


def restart(ensemble, *members):
    ensemble.stop()
    launch(*(members or ensemble.members))
    serve(*(members or ensemble.members))


def one_is_ahead(ensemble):
    """QuorumZxidSyncTest.testBehindLeader: who has more than all others together is not let in, and takes nothing from them."""
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
    assert c.exists(path), "what was acknowledged is gone"
    c.close()
    last.end()
    last.forget()  # As its log says.
    launch(last)
    serve(last)
    write(last, others[0])


def logs_are_gone(ensemble):
    """QuorumZxidSyncTest.testLateLogs: the snapshots are what counts, and what is written after that stays."""
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
    assert c.exists(path), "what was written is gone"
    c.close()


def snapshots_are_gone(ensemble):
    """EmptiedSnapshotRecoveryTest: followers that start without a snapshot, as they are told to, take one."""
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
    restart(ensemble)  # Without it.
    for member in ensemble.members:
        c = Client([member.address])
        c.sync()
        assert all(c.exists(path) for path in paths), f"{member} has lost something"
        c.close()


def snapshots_are_gone_where_one_is_alone(ensemble):
    """EmptiedSnapshotRecoveryTest: with snapshots that are empty or gone a server alone does not start on its log, unless it is told to.

    Its first log file is gone meanwhile: of a log that has everything ours needs no snapshot (docs/deviations.md).
    """
    alone = ensemble.members[0]
    (alone.folder / "zoo.cfg").write_text(
        f"dataDir={alone.folder / 'data'}\nclientPort={alone.port}\n4lw.commands.whitelist=*\nadmin.enableServer=false\n")
    alone.flags = [*alone.flags, "zookeeper.snapCount=20"]
    launch(alone)
    serve(alone)
    paths = [write(alone, alone) for _ in range(20)]
    ensemble.stop(alone)
    assert len(alone.files("log")) > 1, "snapshots begin new log files"
    first_log = next(iter(alone.files("log").values()))
    kept = first_log.rename(first_log.with_name("kept"))
    for make_useless in [lambda path: path.write_bytes(b""), lambda path: path.unlink()]:
        for path in alone.files("snapshot").values():
            make_useless(path)
        launch(alone)
        assert ends(alone) != 0, f"{alone} starts without its snapshots"
        assert not any(path.stat().st_size for path in alone.files("snapshot").values()), "it has made a snapshot"
    kept.rename(first_log)
    alone.flags = [*alone.flags, "zookeeper.snapshot.trust.empty=true"]
    launch(alone)
    serve(alone)
    alone.flags = alone.flags[:-2]
    c = Client([alone.address])
    assert all(c.exists(path) for path in paths), "something is lost"
    c.close()


def the_newest_comes_late(ensemble):
    """QuorumPeerMainTest.testHighestZxidJoinLate: what one member alone has logged is taken back when others went on without it."""
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
    try:  # The leader may log this before it finds out that it is alone.
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
        assert c.exists(path), f"{member} lacks what was acknowledged"
        found.append(bool(c.exists("/of-one-alone")))
        c.close()
    assert not any(found), f"some have what nobody committed: {found}"


CASES = [
    next_is_completed, voters_become_observers, next_is_out_of_reach, next_is_in_force, observer_hears_that_it_votes,
    observer_is_to_vote, one_is_ahead, logs_are_gone, snapshots_are_gone, snapshots_are_gone_where_one_is_alone,
    the_newest_comes_late,
]


# rows: Q-97 Q-98 C-63
def check(ensemble, arguments):
    return run_cases(CASES, ensemble, arguments)


def run_cases(cases, ensemble, arguments):
    """Each case, and then the ensemble as it was; a case may return why it was left out."""
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
    for member, text in original.items():  # At other ports than before.
        (member.folder / "zoo.cfg").write_text(re.sub(r"(?m)^(server\.|clientPort=).*\n", "", text)
                                               + f"clientPort={member.port}\n"
                                               + "".join(f"{other.line()}\n" for other in ensemble.members))
    ensemble.start()
    return ", ".join(done)
