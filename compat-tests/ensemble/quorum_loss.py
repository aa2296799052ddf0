"""Cases of `quorum_peer.py` about writes without a quorum and trees that are half sent: nothing of them is there afterwards."""

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

STATIC = ["reconfigEnabled=false"]  # Members may then be told of each other at different addresses.
SYNC_KILLS = 6


def first(ensemble, count, settings=()):
    """The first members, which are told of each other and run."""
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
    """What a member shows, after a sync; None where there is no such znode."""
    c = Client([member.address])
    c.sync()
    error, data, _ = c.get(path)
    c.close()
    return data if error == 0 else None


def logged(member, path):
    """Whether a member's log has a record with this in it."""
    return any(path.encode() in found.read_bytes() for found in member.files("log").values())


def write_of_a_lost_leader_is_rolled_back(ensemble):
    """testEarlyLeaderAbandonment and testHighestZxidJoinLate: what only the leader has logged is gone when it comes back."""
    three = first(ensemble, 3)
    path = write(three[0], three[1])
    ensemble.stop(*three)
    launch(*three)  # So that the session's creation is not the first transaction.
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
    assert read(others[0], path) == b"x", "what nobody committed is there"
    launch(leader)
    serve(leader)
    for member in three:
        assert read(member, path) == b"x", f"{member} shows what nobody committed"
        assert read(member, "/of-one-alone") is None, f"{member} shows what nobody committed"
        assert all(read(member, made) == b"x" for made in after), f"{member} lacks what was acknowledged"


def write_of_a_leader_that_was_replaced(ensemble):
    """testFailedTxnAsPartOfQuorumLoss: a leader that does not know it logs a write while others go on; it is gone afterwards."""
    three = ensemble.members[:3]
    network = Proxies()
    network.place(three)
    try:
        for member in three:
            lines = [f"{network.line(member, other)};127.0.0.1:{other.port}" for other in three]
            # The third one leads, and believes for a minute that it has followers.
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
        assert replaced.mode() == "leader", f"{replaced} is {replaced.mode()}: it should not know yet"
        c.send_set(path, b"of one alone", -1)
        until("it logs it", lambda: logged(replaced, "of one alone"))
        network.heal()
        until(f"{replaced} follows", lambda: replaced.mode() == "follower", 90)
        c.socket.close()
        replaced.end()
        launch(replaced)  # What its log holds is replayed.
        serve(replaced)
        for member in three:
            assert (read(member, path), read(member, after)) == (b"x", b"x"), f"{member}: {read(member, path)}"
    finally:
        network.close()
        for member in three:
            member.address = f"{member.host}:{member.port}"


def follower_killed_while_it_takes_a_tree(ensemble, often=SYNC_KILLS):
    """testInconsistentDueToNewLeaderOrder and testDiffSyncAfterSnap: a follower that was killed amid a SNAP, under writes,
    comes back with what the others have: by SNAP again, by DIFF, and from its own disk."""
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
        restart(ensemble)  # Without the setting.
        work.alike(ensemble)
        assert read(follower, "/set") == b"%d" % (sets[0] - 1)
    finally:
        for member in ensemble.members:
            member.flags = [flag for flag in member.flags if "forceSnapshotSync" not in flag]
