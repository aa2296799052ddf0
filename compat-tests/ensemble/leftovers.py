"""Data directories that Java members leave, however they end, are accepted: any two of three restore every acknowledged write.

Each way to end has its own copy of the directories, from which every pair of our servers is started. Both servers of a pair have to
vote, so neither may require a file that a healthy Java server does not write.
"""

import itertools
import random
import shutil
import signal
import time

from client import Client

SETTINGS = ["snapCount=100"]  # Java takes a snapshot after 50 to 100 writes.
WRITES = 150  # More than one snapshot.


def write(ensemble, count, made):
    """Creates children of /left, and adds each to `made` once it is acknowledged."""
    c = Client(ensemble.addresses)
    c.make("/left")
    for _ in range(count):
        name = f"n{len(made)}"
        assert c.make(f"/left/{name}")[0] == 0
        made.add(name)
    c.close()


def formed(ensemble, made):
    """No client has written anything since the first election."""
    ensemble.start()
    return signal.SIGTERM


def formed_and_killed(ensemble, made):
    ensemble.start()
    return signal.SIGKILL


def never_led(ensemble, made):
    """The members ran one after the other, each without a quorum, and there was never a leader."""
    for member in ensemble.members:
        member.launch()
        time.sleep(1.5)
        member.end(signal.SIGKILL)
    return signal.SIGKILL


def written(ensemble, made):
    ensemble.start()
    write(ensemble, 20, made)
    return signal.SIGKILL


def snapshots(ensemble, made):
    ensemble.start()
    write(ensemble, WRITES, made)
    return signal.SIGTERM


def led_in_turn(ensemble, made):
    """Epochs without writes."""
    ensemble.start()
    write(ensemble, 5, made)
    for _ in range(3):
        leader = ensemble.leader()
        ensemble.stop(leader, how=signal.SIGKILL)
        ensemble.wait_for_quorum()
        ensemble.start()
    return signal.SIGKILL


def synchronised_by_snap(ensemble, made):
    """A member without data was synchronised by SNAP: its log, if there is one, begins after the snapshot."""
    ensemble.start()
    write(ensemble, WRITES, made)
    emptied = next(member for member in ensemble.members if member is not ensemble.leader())
    ensemble.stop(emptied)
    emptied.forget()
    ensemble.start(emptied)
    return signal.SIGKILL


def gap_before_a_snap(ensemble, made):
    """A member missed more than the leader's window and was synchronised by SNAP: a gap between its log and that snapshot."""
    ensemble.start()
    write(ensemble, 5, made)
    away = next(member for member in ensemble.members if member is not ensemble.leader())
    ensemble.stop(away)
    write(ensemble, 3 * WRITES, made)
    ensemble.start(away)
    write(ensemble, 3, made)
    return signal.SIGKILL


def killed_as_they_start(ensemble, made):
    """The members were killed several times during elections and synchronisations."""
    ensemble.start()
    write(ensemble, 5, made)
    ensemble.stop(how=signal.SIGKILL)
    for _ in range(4):
        for member in ensemble.members:
            member.launch()
        time.sleep(random.uniform(0.3, 2))
        ensemble.stop(how=signal.SIGKILL)
    return signal.SIGKILL


def left(member):
    """The kinds of files in a member's data directory; `snapshot.0` is a kind of its own."""
    folder = member.folder / "data/version-2"
    if not folder.exists():
        return "nothing"  # On a busy machine it was stopped before it had begun.
    names = [path.name for path in folder.iterdir()]
    return " ".join(sorted({name if name == "snapshot.0" else name.split(".")[0] for name in names}))


def taken(ensemble, pair, made):
    """Checks that two servers of ours have every acknowledged write, and accept a new one."""
    ensemble.start(*pair)
    for member in pair:
        c = Client([member.address])
        c.sync()
        missing = made - set(c.names("/left") if made else ())
        assert not missing, f"{member} lacks {sorted(missing)[:3]} of {len(made)}"
        c.close()
    c = Client([pair[0].address])
    assert c.make("/taken")[0] == 0
    c.close()


# rows: D-60
def check(ensemble, arguments):
    """Runs each way to end on fresh directories, with Java servers."""
    kinds = [member.kind for member in ensemble.members]
    ways = [formed, formed_and_killed, never_led, written, snapshots, led_in_turn, synchronised_by_snap, gap_before_a_snap, killed_as_they_start]
    shapes = set()
    ensemble.stop()
    for way in ways:
        for member, kind in zip(ensemble.members, kinds):
            member.kind = kind
            member.forget()
        made = set()
        how = way(ensemble, made)
        ensemble.stop(how=how)
        shapes.update(left(member) for member in ensemble.members)
        for member in ensemble.members:
            shutil.copytree(member.folder / "data", member.folder / f"left-{way.__name__}")
            member.kind = "o"
        for pair in itertools.combinations(ensemble.members, 2):
            taken(ensemble, pair, made)
            ensemble.stop()
            for member in ensemble.members:
                shutil.rmtree(member.folder / "data")
                shutil.copytree(member.folder / f"left-{way.__name__}", member.folder / "data")
    for member, kind in zip(ensemble.members, kinds):
        member.kind = kind
    ensemble.start()
    return f"{len(ways)} ways to end; in directories: {', '.join(sorted(shapes))}"
