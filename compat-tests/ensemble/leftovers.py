"""What members of Java leave in their directories, however they end, is taken: any two of three go on with all that was acknowledged.

Each way to end has its copy of the directories, on which every pair of servers of ours is started. Two of three have to count both
for that, so neither may miss a file which a healthy Java server does not write.
"""

import itertools
import random
import shutil
import signal
import time

from client import Client

SETTINGS = ["snapCount=100"]  # Java takes one after 50 to 100 writes.
WRITES = 150  # More than one snapshot.


def write(ensemble, count, made):
    """Children of /left, added to `made` once they are acknowledged."""
    c = Client(ensemble.addresses)
    c.make("/left")
    for _ in range(count):
        name = f"n{len(made)}"
        assert c.make(f"/left/{name}")[0] == 0
        made.add(name)
    c.close()


def formed(ensemble, made):
    """Nothing was written since the first leader was elected."""
    ensemble.start()
    return signal.SIGTERM


def formed_and_killed(ensemble, made):
    ensemble.start()
    return signal.SIGKILL


def never_led(ensemble, made):
    """Each was alone, one after the other, and never heard of a leader."""
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
    """Epochs go on, and nothing is written in them."""
    ensemble.start()
    write(ensemble, 5, made)
    for _ in range(3):
        leader = ensemble.leader()
        ensemble.stop(leader, how=signal.SIGKILL)
        ensemble.wait_for_quorum()
        ensemble.start()
    return signal.SIGKILL


def synchronised_by_tree(ensemble, made):
    """One was emptied, and got the leader's tree: its log begins after it, if it has one."""
    ensemble.start()
    write(ensemble, WRITES, made)
    emptied = next(member for member in ensemble.members if member is not ensemble.leader())
    ensemble.stop(emptied)
    emptied.forget()
    ensemble.start(emptied)
    return signal.SIGKILL


def behind_by_a_tree(ensemble, made):
    """One was away for longer than its leader keeps in memory: a gap between its log and the tree it got."""
    ensemble.start()
    write(ensemble, 5, made)
    away = next(member for member in ensemble.members if member is not ensemble.leader())
    ensemble.stop(away)
    write(ensemble, 3 * WRITES, made)
    ensemble.start(away)
    write(ensemble, 3, made)
    return signal.SIGKILL


def killed_as_they_start(ensemble, made):
    """In the middle of elections and of synchronisations, some times over."""
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
    """The kinds of its files; a snapshot of nothing is one of its own."""
    names = [path.name for path in (member.folder / "data/version-2").iterdir()]
    return " ".join(sorted({name if name == "snapshot.0" else name.split(".")[0] for name in names}))


def taken(ensemble, pair, made):
    """These two, of ours, serve all that was acknowledged, and take a write."""
    ensemble.start(*pair)
    for member in pair:
        c = Client([member.address])
        c.sync()
        missing = made - set(c.names("/left") if made else ())
        assert not missing, f"{member} has not {sorted(missing)[:3]} of {len(made)}"
        c.close()
    c = Client([pair[0].address])
    assert c.make("/taken")[0] == 0
    c.close()


# rows: D-60
def check(ensemble, arguments):
    """Way by way on fresh directories; `kinds` are Java's."""
    kinds = [member.kind for member in ensemble.members]
    ways = [formed, formed_and_killed, never_led, written, snapshots, led_in_turn, synchronised_by_tree, behind_by_a_tree, killed_as_they_start]
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
