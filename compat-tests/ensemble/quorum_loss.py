"""Cases of `quorum_peer.py` about writes without a quorum and interrupted SNAPs: neither may leave a trace on disk."""

import random
import signal
import threading
import time

import work
from change import line
from client import Client
from members import until
from network import Proxies
from recovery import configure, launch, restart, serve, whole, write

STATIC = ["reconfigEnabled=false"]  # Without reconfig, two members' files may name different addresses for one server.
SYNC_KILLS = 6


def first(ensemble, count, settings=()):
    """Configures the first `count` members as an ensemble, and starts them."""
    chosen = ensemble.members[:count]
    for member in chosen:
        configure(member, [line(other) for other in chosen], settings=settings)
    launch(*chosen)
    serve(*chosen)
    return chosen


def leader_of(members):
    return until(f"one leader of {members}", lambda: only([member for member in members if member.mode() == "leader"]))


def only(found):
    return found[0] if len(found) == 1 else None


def read(member, path):
    """The data of a znode at a member, after a sync; None if there is no such znode."""
    c = Client([member.address])
    c.sync()
    error, data, _ = c.get(path)
    c.close()
    return data if error == 0 else None


def logged(member, path):
    """Whether a member's log contains this text."""
    return any(path.encode() in found.read_bytes() for found in member.files("log").values())


def write_of_a_lost_leader_is_rolled_back(ensemble):
    """testEarlyLeaderAbandonment and testHighestZxidJoinLate: a write that only the leader logged is gone after it rejoins."""
    three = first(ensemble, 3)
    path = write(three[0], three[1])
    ensemble.stop(*three)
    launch(*three)  # A restart, so that the session's creation is not the epoch's first transaction.
    serve(*three)
    leader = leader_of(three)
    others = [member for member in three if member is not leader]
    c = Client([leader.address])
    for member in others:
        member.freeze()
    c.send_make("/of-one-alone")
    c.send_set(path, b"of one alone", -1)
    until("the leader logs it", lambda: logged(leader, "of one alone"))
    leader.end(signal.SIGKILL)
    for member in others:
        member.end(signal.SIGKILL)
    c.socket.close()
    launch(*others)
    serve(*others)
    after = [write(*others), write(*others[::-1])]
    assert read(others[0], path) == b"x", "an uncommitted write is there"
    launch(leader)
    serve(leader)
    for member in three:
        assert read(member, path) == b"x", f"{member} shows an uncommitted write"
        assert read(member, "/of-one-alone") is None, f"{member} shows an uncommitted write"
        assert all(read(member, made) == b"x" for made in after), f"{member} lacks an acknowledged write"


def write_of_a_replaced_leader_is_rolled_back(ensemble):
    """testFailedTxnAsPartOfQuorumLoss: a leader logs a write without knowing that it was replaced; the write is gone afterwards."""
    three = ensemble.members[:3]
    network = Proxies()
    network.place(three)
    try:
        for member in three:
            lines = [f"{network.line(member, other)};127.0.0.1:{other.port}" for other in three]
            # The third member leads, and with its syncLimit takes a minute to notice that it lost its followers.
            configure(member, lines, settings=[*STATIC, "syncLimit=" + ("120" if member is three[2] else "4")])
        launch(three[0], three[2])
        serve(three[0], three[2])
        launch(three[1])
        serve(three[1])
        replaced, others = three[2], three[:2]
        assert leader_of(three) is replaced
        path = write(*three[:2])
        c = Client([replaced.address])
        network.cut([3], [1, 2])
        leader_of(others)
        after = write(*others)
        assert replaced.mode() == "leader", f"{replaced} is {replaced.mode()}: it should not have noticed yet"
        c.send_set(path, b"of one alone", -1)
        until("the replaced leader logs the write", lambda: logged(replaced, "of one alone"))
        network.heal()
        until(f"{replaced} follows", lambda: replaced.mode() == "follower", 90)
        c.socket.close()
        replaced.end()
        launch(replaced)  # It replays its log.
        serve(replaced)
        for member in three:
            assert (read(member, path), read(member, after)) == (b"x", b"x"), f"{member}: {read(member, path)}"
    finally:
        network.close()
        for member in three:
            member.address = f"{member.host}:{member.port}"


def follower_killed_during_snap_recovers(ensemble, often=SYNC_KILLS):
    """testInconsistentDueToNewLeaderOrder and testDiffSyncAfterSnap: a follower that was killed during SNAP, under writes,
    has the others' tree after another SNAP, after a DIFF, and after a start from its own disk."""
    dice = random.Random(f"{ensemble.kinds}-snap")
    for member in ensemble.members:
        member.flags = [*member.flags, "zookeeper.forceSnapshotSync=true"]
    try:
        whole(ensemble)
        leader = leader_of(ensemble.members)
        c = Client([leader.address], 60_000)
        c.make("/tree"), c.make("/set", b"0")
        for number in range(300):
            assert c.make(f"/tree/{number}", bytes(5000))[0] == 0
        follower = next(member for member in ensemble.members if member is not leader)
        over, failed, sets = threading.Event(), [], [0]

        def write_on():
            try:
                while not over.is_set():
                    error = c.set("/set", b"%d" % sets[0], sets[0])
                    assert error == 0, f"set at version {sets[0]}: {error}"
                    sets[0] += 1
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=write_on)
        thread.start()
        follower.end()
        since = time.monotonic()
        launch(follower)
        serve(follower)
        took = time.monotonic() - since
        for number in range(often):
            follower.end(signal.SIGKILL)
            if number % 2:
                follower.forget()
            launch(follower)
            time.sleep(dice.uniform(0, took))
        follower.end(signal.SIGKILL)
        for member in ensemble.members:
            member.flags = member.flags[:-1]
        over.set()
        thread.join()
        assert not failed, failed[0]
        c.close()
        for _ in range(2):
            launch(follower)
            serve(follower)
            work.alike(ensemble)
            follower.end(signal.SIGKILL)
        launch(follower)
        restart(ensemble)  # Without forceSnapshotSync.
        work.alike(ensemble)
        assert read(follower, "/set") == b"%d" % (sets[0] - 1)
    finally:
        for member in ensemble.members:
            member.flags = [flag for flag in member.flags if "forceSnapshotSync" not in flag]
