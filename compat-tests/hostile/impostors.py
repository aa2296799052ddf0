"""Strangers that pretend to be members: ACKs of zxids that were never proposed, millions of syncs, forged authentication ids."""

import signal
import struct
import time

from client import GET_ACL, NO_AUTH, SET, Client, acl
from honest import Beside
from members import until
from server import free_port
from strangers import ACK, CREATE_SESSION, FOLLOWER_INFO, OBSERVER_INFO, Closed, Learner, packet, request
from target import FOLLOWER, LEADER, MIB, at, elections, lives, memory, mib
from wire import buffer

SYNC = 9
SESSION = 0x7700_0000_0000_0001
UNREAD_MAX, LEFT_MAX = 160 * MIB, 64 * MIB
UNENDING_MAX = 400 * MIB  # Several times what may be uncommitted.


def absent(ensemble):
    """Stops the voter with the largest id, and returns it."""
    member = ensemble.voters[-1]
    ensemble.stop(member)
    ensemble.wait(f"{member} stopped: the others")
    return member


def far_zxids(last):
    """Zxids that this leader has not proposed, and which neither a Java server nor ours would acknowledge by mistake."""
    epoch = last >> 32
    return [last + (1 << 20), epoch << 32 | 0x7fff_ffff, epoch << 32 | 0xffff_ffff, epoch + 1 << 32 | 1,
            0x7fff_fffe_ffff_ffff, 0x7fff_ffff_ffff_ffff, -1, -(1 << 63)]


def acknowledge(member, number, last, kind, zxids, port=None, patience=0.3):
    """Opens two connections for each zxid; returns how many were synchronised, and how many of those were closed after the ACK."""
    synchronised = closed = 0
    for zxid in zxids:
        for known in (last, 0):  # An empty DIFF, or all transactions.
            time.sleep(0.05)  # Until the server has noticed the end of the previous connection.
            learner = None
            try:
                learner = Learner(member, number, kind, accepted=last >> 32, port=port)
                learner.synchronise(known)
                synchronised += 1
                learner.send(packet(ACK, zxid))
                closed += learner.is_closed(patience)
            except (Closed, TimeoutError):
                pass
            finally:
                if learner:
                    learner.close()
    return synchronised, closed


@at(LEADER, FOLLOWER)
def false_acknowledgements(trial):
    """ACKs of zxids that were never proposed: with the server's own id, an absent voter's, an unknown observer's."""
    master = free_port()
    with trial.target([f"observerMasterPort={master}", "maxClientCnxns=0"]) as target:
        target.is_calm = False  # A voter is stopped.
        ensemble = target.ensemble
        away = absent(ensemble)
        leader = until("a leader", ensemble.leader)
        server = leader if trial.role == LEADER else next(member for member in ensemble.running() if member is not leader)
        target.server, port = server, None if trial.role == LEADER else master
        before, last = elections(ensemble.members), leader.zxid()
        if trial.role == LEADER:
            # No write is outstanding.
            patience = 1 if trial.is_java else 5
            synchronised, closed = acknowledge(server, away.number, last, FOLLOWER_INFO, [last + 1], patience=patience)
            trial.say(f"the next zxid, as an absent voter: {synchronised} of 2 connections synchronised, {closed} closed after their ACK")
            assert synchronised == closed or trial.is_java, "a connection goes on after an ACK of the next zxid"
        with Beside(server.address) as beside:
            for name, number, kind in (("its own id", server.number, FOLLOWER_INFO), ("an absent voter", away.number, FOLLOWER_INFO),
                                       ("an unknown observer", 900, OBSERVER_INFO)):
                if trial.role == FOLLOWER:
                    kind = OBSERVER_INFO  # A follower accepts observers only.
                last = leader.zxid()
                zxids = far_zxids(last)
                is_judged = name == "an absent voter" and trial.role == LEADER and not trial.is_java
                synchronised, closed = acknowledge(server, number, last, kind, zxids, port, 5 if is_judged else 0.3)
                lives(server.process)
                trial.say(f"as {name}: {synchronised} of {2 * len(zxids)} connections synchronised, {closed} closed after their ACK")
                if is_judged:
                    assert synchronised, "no connection was synchronised, so the attack tested nothing"
                    assert closed == synchronised, "a connection goes on after an ACK of a zxid that was not proposed"
        trial.say(beside.words())
        assert elections(ensemble.members) == before, f"there were elections: {before}, {elections(ensemble.members)} now"
        ensemble.start(away)


@at(LEADER, FOLLOWER)
def unread_syncs(trial):
    """A fake voter, or observer of a follower, forwards millions of syncs and reads no answer: memory stays bounded, an honest client is served."""
    master = free_port()
    with trial.target([f"observerMasterPort={master}", "maxClientCnxns=0"]) as target:
        target.is_calm = False
        ensemble = target.ensemble
        away = absent(ensemble)
        leader = until("a leader", ensemble.leader)
        server = leader if trial.role == LEADER else next(member for member in ensemble.running() if member is not leader)
        target.server, last, count = server, leader.zxid(), trial.of(2_000_000, 12_600_000)
        number, kind, port = (away.number, FOLLOWER_INFO, None) if trial.role == LEADER else (900, OBSERVER_INFO, master)
        learner = Learner(server, number, kind, accepted=last >> 32, port=port, receive_bytes=4096).synchronise(last)
        learner.send(request(SESSION, 0, CREATE_SESSION, struct.pack(">i", 30_000)))
        one = request(SESSION, 1, SYNC, buffer(b"/"))
        piece, wanted, taken, peak, is_closed = one * 8192, count * len(one), 0, 0, False
        before, counts, began = memory(server.process), elections(ensemble.members), time.monotonic()
        learner.socket.settimeout(0.5)
        sent_at = began
        with Beside(server.address) as beside:
            while taken < wanted and time.monotonic() < began + trial.of(15, 120):
                try:
                    taken, sent_at = taken + learner.socket.send(piece[taken % len(one):]), time.monotonic()
                except TimeoutError:
                    if time.monotonic() > sent_at + 6:
                        break  # The server does not read this connection any more.
                except OSError:
                    is_closed = True
                    break
                peak = max(peak, memory(server.process) - before)
            time.sleep(1)
            peak = max(peak, memory(server.process) - before)
            seconds = time.monotonic() - began
            learner.close()
            deadline = time.monotonic() + 10
            while (left := memory(server.process) - before) > LEFT_MAX // 2 and time.monotonic() < deadline:
                time.sleep(0.2)
        trial.say(f"{taken // len(one):,} syncs read in {seconds:.1f} s{', then closed' if is_closed else ''}; memory at most {mib(peak)} more,"
                  f" {mib(left)} after the connection's end; {beside.words()}")
        lives(server.process)
        assert elections(ensemble.members) == counts, "there was an election"
        if not trial.is_java:
            assert peak < UNREAD_MAX, "unread answers take memory without a bound"
            assert left < LEFT_MAX, "memory is not freed"
            assert beside.longest() < 5, "one learner's syncs block other clients' writes"
        ensemble.start(away)


@at(LEADER)
def unending_requests(trial):
    """A fake observer forwards writes of 1 MB while nothing is committed: its connection is closed, memory stays bounded."""
    with trial.target() as target:
        target.is_calm = False  # The followers are stopped for a while.
        ensemble = target.ensemble
        leader = until("a leader", ensemble.leader)
        target.server, last = leader, leader.zxid()
        owner = Client([leader.address])
        assert owner.make("/flooded", b"")[0] == 0
        learner = Learner(leader, 900, OBSERVER_INFO, accepted=last >> 32, receive_bytes=4096).synchronise(leader.zxid())
        learner.send(request(SESSION, 0, CREATE_SESSION, struct.pack(">i", 30_000)))
        write = request(SESSION, 1, SET, buffer(b"/flooded") + buffer(bytes(1_000_000)) + struct.pack(">i", -1))
        followers = [member for member in ensemble.running() if member is not leader]
        before, sizes, began = memory(leader.process), [0], time.monotonic()
        learner.socket.settimeout(0.5)
        try:
            for member in followers:
                member.process.send_signal(signal.SIGSTOP)
            taken, is_closed = learner.press(write, trial.of(4, 6), lambda: sizes.append(memory(leader.process) - before))
        finally:
            for member in followers:
                member.process.send_signal(signal.SIGCONT)
        seconds, peak = time.monotonic() - began, max(sizes)
        learner.close()
        trial.say(f"{mib(taken)} taken in {seconds:.1f} s{', then closed' if is_closed else ''}; memory at most {mib(peak)} more")
        lives(leader.process)
        until("a leader", ensemble.leader)
        if not trial.is_java:
            assert is_closed, "requests of a learner pile up at the leader without a bound"
            assert peak < UNENDING_MAX, "requests of a learner take too much memory"


@at(LEADER, long=(FOLLOWER,))
def forged_super(trial):
    """Identities that a learner forwards with a write are trusted, as in Java, also through a follower: only members may reach these ports."""
    master = free_port()
    with trial.target([f"observerMasterPort={master}"]) as target:
        target.is_calm = False
        ensemble = target.ensemble
        owner = Client([target.address])
        owner.auth("digest", "user:secret")
        assert struct.unpack_from(">iqi", owner.read())[2] == 0
        assert owner.make("/guarded", b"0", lists=acl((31, "auth", "")))[0] == 0
        stranger = Client([target.address])
        assert stranger.set("/guarded", b"1") == NO_AUTH, "the ACL does not protect the znode"
        away = absent(ensemble)
        leader = until("a leader", ensemble.leader)
        target.server = leader if trial.role == LEADER else next(member for member in ensemble.running() if member is not leader)
        number, kind, port = (away.number, FOLLOWER_INFO, None) if trial.role == LEADER else (900, OBSERVER_INFO, master)
        owner = Client([target.address])
        owner.auth("digest", "user:secret")
        owner.read()
        body = lambda data: buffer(b"/guarded") + buffer(data) + struct.pack(">i", -1)  # noqa: E731
        by_identity = []
        for name, identities in (("no id", []), ("super", [("super", "")]), ("x509 and super", [("x509", "CN=a"), ("super", "")])):
            last = leader.zxid()
            learner = Learner(target.server, number, kind, accepted=last >> 32, port=port).synchronise(last)
            data = name.encode()
            learner.send(request(SESSION, 0, CREATE_SESSION, struct.pack(">i", 30_000)))
            learner.send(request(SESSION, 1, SET, body(data), identities))
            until_taken = time.monotonic() + 1.5
            while (found := owner.get("/guarded")[1]) != data and time.monotonic() < until_taken:
                time.sleep(0.02)
            by_identity.append((name, found == data))
            learner.send(request(SESSION, 2, GET_ACL, buffer(b"/guarded"), identities))  # No learner forwards a read.
            learner.close()
            lives(target.server.process)
        trial.say(f"accepted: {by_identity}")
        assert dict(by_identity) == {"no id": False, "super": True, "x509 and super": True}, "unlike Java's leader"
        ensemble.start(away)


@at(FOLLOWER)
def requests_through_a_follower(trial):
    """A fake observer forwards writes of 1 MB through a follower while nothing is committed: the follower keeps its leader and clients."""
    master = free_port()
    with trial.members("oooo", [f"observerMasterPort={master}", "maxClientCnxns=0"]) as ensemble:
        leader = until("a leader", ensemble.leader)
        follower, *others = [member for member in ensemble.voters if member is not leader]
        client = Client([follower.address])
        assert client.make("/flooded", b"")[0] == 0
        body = lambda data: buffer(b"/flooded") + buffer(data) + struct.pack(">i", -1)  # noqa: E731
        strangers = []
        for number in (900, 901, 902):
            learner = Learner(follower, number, OBSERVER_INFO, accepted=leader.zxid() >> 32, port=master).synchronise(leader.zxid())
            learner.send(request(SESSION + number, 0, CREATE_SESSION, struct.pack(">i", 30_000)))
            strangers.append((learner, request(SESSION + number, 1, SET, body(bytes(1_000_000)))))
        before, counts = [memory(member.process) for member in (leader, follower)], elections([leader, follower])
        taken = closed = 0
        for member in others:  # Half of the voters: the leader stays, and commits nothing.
            member.freeze()
        began = time.monotonic()
        try:
            client.send(SET, body(b"honest"))
            for learner, write in strangers:
                learner.socket.settimeout(0.3)
                sent, is_closed = learner.press(write, trial.of(2, 2.5))
                taken, closed = taken + sent, closed + is_closed
            client.send(SET, body(b"honest too"))
            time.sleep(0.5)
            grown = [memory(member.process) - old for member, old in zip((leader, follower), before)]
        finally:
            for member in others:
                member.thaw()
        seconds = time.monotonic() - began
        try:
            answers = [client.receive()[0] for _ in range(2)]
        except Exception as error:  # Reported below.
            answers = [repr(error)]
        now = elections([leader, follower])
        trial.say(f"{mib(taken)} taken in {seconds:.1f} s, {closed} of 3 connections closed; memory of the leader and the follower"
                  f" {' and '.join(map(mib, grown))} more; elections of both {now}, before {counts}; the client's answers {answers}")
        for learner, _ in strangers:
            learner.close()
        lives(follower.process)
        ensemble.wait()
        if not trial.is_java:
            assert now == counts, "a follower leaves its leader because of the strangers connected to it"
            assert answers == [0, 0], "a follower's client loses its connection because of the strangers connected to that follower"
            assert closed == 3, "a follower forwards requests of strangers without a bound"
            assert max(grown) < UNREAD_MAX, "requests of the strangers connected to a follower take too much memory"
