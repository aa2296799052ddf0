"""Connections without a session or a FOLLOWERINFO, at every port, and what they cost the server."""

import collections
import pathlib
import re
import select
import signal
import socket
import struct
import time

from client import Client
from members import until
from server import free_port
from strangers import FOLLOWER_INFO, OBSERVER_INFO, PING, election_hello, hello, packet_head, quorum_port
from target import ALONE, FOLLOWER, LEADER, MIB, OBSERVER, at, ends, lives, memory, pour


def learner_ports(trial, target, master):
    """Ports at which a server in that role listens for learners. A Java follower listens at observerMasterPort only."""
    if trial.role == LEADER:
        return {"learner port": target.server.quorum_port}
    ports = {"observerMasterPort": master}
    return ports if trial.is_java else {**ports, "learner port": target.server.quorum_port}


@at(LEADER, FOLLOWER)
def before_the_hello(trial):
    """Four connections announce 900 MB and send it; another sends a byte a second. The server closes the four after some MB, the fifth after some seconds."""
    master = free_port()
    with trial.target([f"observerMasterPort={master}"]) as target:
        server = target.server
        for name, port in learner_ports(trial, target, master).items():
            before = target.memory()
            peers = [quorum_port(server, port) for _ in range(4)]
            for peer in peers:
                peer.sendall(packet_head(OBSERVER_INFO, 900_000_000))
            taken, closed = pour(peers, bytes(MIB), 24 * MIB)
            grown = target.memory() - before
            trial.say(f"{name}: {taken // MIB} MiB sent, memory grew by {grown // MIB} MiB, {len(closed)} of 4 closed")
            assert grown < 16 * MIB and len(closed) == 4, "bytes of connections without a FOLLOWERINFO are kept"
        if trial.role != LEADER and not trial.long:
            return  # The rest takes 10 s and tests the same code as for a leader.
        slow = quorum_port(server, port)
        began = time.monotonic()
        for byte in hello(OBSERVER_INFO, 77):
            try:
                slow.send(bytes([byte]))
            except OSError:
                break
            if ends(slow, 1):
                break
        took = time.monotonic() - began
        trial.say(f"an OBSERVERINFO of a byte a second: closed after {took:.0f} s")
        assert took < 30, "there is no time limit for an OBSERVERINFO"


@at(LEADER, FOLLOWER)
def after_the_hello(trial):
    """120 connections send OBSERVERINFO and then an unfinished packet of 2 MB: memory stays bounded."""
    master = free_port()
    with trial.target([f"observerMasterPort={master}"]) as target:
        server, before = target.server, target.memory()
        peers = [quorum_port(server, server.quorum_port if trial.role == LEADER else master) for _ in range(120)]
        for number, peer in enumerate(peers):
            peer.sendall(hello(OBSERVER_INFO, 1000 + number) + packet_head(PING, 2_000_000))
        taken, closed = pour(peers, bytes(MIB), 1_900_000)
        grown = target.memory() - before
        trial.say(f"{taken // MIB} MiB sent, memory grew by {grown // MIB} MiB, {len(closed)} of 120 closed")
        assert grown < 128 * MIB, "unfinished packets take memory without a bound"
        c = Client([server.address])
        assert c.make("/served")[0] == 0
        c.close()


@at(LEADER, long=(FOLLOWER, OBSERVER))
def at_the_election_port(trial):
    """120 connections to the election port say nothing, announce a hello or a message of 900 MB, or don't end one of 500 KB: memory stays
    bounded, and a member that restarts meanwhile rejoins."""
    with trial.target() as target:
        target.is_calm = False  # A member restarts.
        server, before = target.server, target.memory()
        peers = []
        for number in range(120):
            known = election_hello(900 + number)
            said = (b"", struct.pack(">qqi", -65536, 900 + number, 900_000_000), known + struct.pack(">i", 900_000_000), known + struct.pack(">i", 500_000))
            try:
                peer = socket.create_connection((server.host, server.election_port), timeout=5)
            except TimeoutError:
                trial.say(f"no connection is accepted after {number}")
                assert trial.is_java, "strangers keep others from the election port"
                break  # Java's listener waits up to 5 s for each silent connection.
            peer.sendall(said[number % 4])
            peers.append(peer)
        taken, _ = pour([peer for number, peer in enumerate(peers) if number % 4], bytes(MIB), 499_000, 10)
        grown = target.memory() - before
        announced = [peer for number, peer in enumerate(peers) if number % 4 in (1, 2)]
        closed = sum(ends(peer, 0.2) for peer in announced)
        trial.say(f"{taken // MIB} MiB sent, memory grew by {grown // MIB} MiB; closed after they announced 900 MB: {closed} of {len(announced)}")
        if not trial.is_java:
            other = next(member for member in target.ensemble.voters if member is not server and member.mode() != "leader")
            target.ensemble.stop(other)
            target.ensemble.start(other)
            assert grown < 64 * MIB, "bytes of strangers at the election port take memory without a bound"
            assert closed == len(announced), "900 MB may be announced at the election port"
        for peer in peers:
            peer.close()


@at(ALONE, long=(LEADER, FOLLOWER, OBSERVER))
def connects_at_once(trial):
    """800 connects while the server does not accept: the listen backlog holds them, and none has to retry seconds later."""
    with trial.target(["maxClientCnxns=0"]) as target:
        server = target.server
        server.process.send_signal(signal.SIGSTOP)
        peers = []
        for _ in range(800):
            peer = socket.socket()
            peer.setblocking(False)
            peer.connect_ex((server.host, server.port))
            peers.append(peer)
        deadline, waiting = time.monotonic() + 5, peers
        while waiting and time.monotonic() < deadline:
            poll = select.poll()
            for peer in waiting:
                poll.register(peer, select.POLLOUT)
            ready = {number for number, _ in poll.poll(500)}
            waiting = [peer for peer in waiting if peer.fileno() not in ready]
        server.process.send_signal(signal.SIGCONT)
        maximum = int(pathlib.Path("/proc/sys/net/core/somaxconn").read_text())
        trial.say(f"{800 - len(waiting)} of 800 are connected while the server is stopped (somaxconn: {maximum})")
        assert 800 - len(waiting) >= min(800, maximum), "the listen backlog is too small"
        for peer in peers:
            peer.close()


def descriptors(trial):
    """Connections take all file descriptors that they get; the transaction log still rolls to new files."""
    limit = 400 if trial.is_java else 64  # A JVM itself opens more files.
    settings = ["maxClientCnxns=0", "snapCount=20", "preAllocSize=64"]
    with trial.alone(settings, ["prlimit", f"--nofile={limit}:{limit}"]) as server:
        honest = Client([server.address])
        assert honest.make("/honest")[0] == 0
        peers = []
        for _ in range(2 * limit):
            peer = socket.socket()
            peer.setblocking(False)
            peer.connect_ex(("127.0.0.1", server.port))
            peers.append(peer)
        time.sleep(1)
        for number in range(400):
            assert honest.set("/honest", b"%d" % number) == 0
        lives(server.process)
        logs = len(list((server.folder / "data/version-2").glob("log.*")))
        lines = [line for line in server.log.read_text(errors="replace").splitlines() if "open files" in line and "WARN" in line]
        trial.say(f"{logs} log files; {len(lines)} warnings: {lines[-1][28:] if lines else ''}")
        assert logs > 3, "no new log file was begun meanwhile"
        assert lines or trial.is_java, "the log does not say which limit to raise"
        for peer in peers:
            peer.close()
        until("clients are served again", lambda: server.serves())


def descriptors_of_a_member(trial):
    """Strangers take all file descriptors at every port of every member; writes go on, and a killed follower rejoins."""
    limit = 400 if trial.is_java else 80
    members = trial.members("ooo", ["maxClientCnxns=0", "snapCount=20", "preAllocSize=64"])
    for member in members.ensemble.members:
        member.before = ["prlimit", f"--nofile={limit}:{limit}"]
    with members as ensemble:
        leader = ensemble.leader()
        honest = Client([leader.address], 60_000)
        assert honest.make("/honest")[0] == 0
        peers = []
        for member in ensemble.members:
            for port in (member.port, member.quorum_port, member.election_port):
                for _ in range(limit):
                    peer = socket.socket()
                    peer.setblocking(False)
                    peer.connect_ex((member.host, port))
                    peers.append(peer)
        time.sleep(1)
        for number in range(200):
            assert honest.set("/honest", b"%d" % number) == 0
        for member in ensemble.members:
            lives(member.process)
        for peer in peers:
            peer.close()
        follower = next(member for member in ensemble.members if member is not leader)
        follower.end(signal.SIGKILL)
        ensemble.start(follower)
        assert honest.set("/honest", b"again") == 0


REASON = re.compile(r"\d+|'[^']*'|\"[^\"]*\"|0x[0-9a-f]+")


def lines_by_second(log, offset):
    """How many lines of each kind the log has for each second; lines that differ in numbers only are of one kind."""
    found = collections.Counter()
    for line in log.read_text(errors="replace")[offset:].splitlines():
        stamp, _, rest = line.strip().partition(" ")
        if rest:
            found[(stamp[:19], REASON.sub("#", rest)[:60])] += 1
    return found


def quiet(trial, log, offset, what):
    counts = lines_by_second(log, offset)
    (_, reason), most = max(counts.items(), key=lambda item: item[1], default=((None, "nothing"), 0))
    trial.say(f"{what}: {sum(counts.values())} lines, at most {most} a second of {reason!r}")
    # Two lines a second apart may both fall into one second of the clock.
    assert most <= 2, f"{what}: {most} lines a second: {reason}"


def size(log):
    return len(log.read_text(errors="replace"))


@at(ALONE, LEADER, long=(FOLLOWER, OBSERVER))
def log_floods(trial):
    """Strangers at every port, a server with a member's id, clients above maxClientCnxns: at most a log line a second for each reason."""
    master = free_port()
    with trial.target(["maxClientCnxns=3", f"observerMasterPort={master}"]) as target:
        server, ensemble = target.server, target.ensemble
        ports = {"client": server.port}
        if ensemble:
            ports["election"] = server.election_port
            leader = ensemble.leader()
        if trial.role in (LEADER, FOLLOWER):
            ports["quorum"] = server.quorum_port
        if trial.role == FOLLOWER:
            ports["master"] = master
        kept = [Client([server.address]) for _ in range(2)]
        other = 1 if server.number != 1 else 2
        attacks = [
            ("refused clients", "client", b""),
            ("requests of clients that can't be decoded", "client", struct.pack(">i", 900_000_000)),
            ("nonsense at the learner port", "quorum", b"nonsense" * 4),
            ("an unknown observer that reconnects", "quorum", hello(OBSERVER_INFO, 900)),
            ("a follower that reconnects", "quorum", hello(FOLLOWER_INFO, other)),
            ("nonsense at observerMasterPort", "master", b"nonsense" * 4),
            ("an unknown observer that reconnects to observerMasterPort", "master", hello(OBSERVER_INFO, 900)),
            ("a follower at observerMasterPort", "master", hello(FOLLOWER_INFO, leader.number if ensemble else 0)),
            ("nonsense at the election port", "election", b"nonsense" * 4),
            ("a server with the same myid", "election", election_hello(server.number)),
            ("an unknown server that reconnects", "election", election_hello(900)),
            ("a member's id from another address", "election", election_hello(other)),
            ("nothing at the election port", "election", b""),
        ]
        failed = []
        for what, port, said in attacks:
            if port not in ports:
                continue
            offset = size(server.log)
            if what == "refused clients":
                kept += [socket.create_connection((server.host, server.port)) for _ in range(2)]
            elif port == "client":
                while len(kept) > 2:
                    kept.pop().close()
                time.sleep(0.3)
            for _ in range(200):
                with socket.create_connection((server.host, ports[port]), timeout=10) as peer:
                    try:
                        peer.sendall(said)
                        if port == "client" and said:
                            ends(peer, 5)
                    except OSError:
                        pass
            time.sleep(0.5)
            try:
                quiet(trial, server.log, offset, what)
            except AssertionError as error:
                failed.append(str(error))
        for client in kept[:2]:
            client.socket.close()
        assert not failed, "; ".join(failed)
        target.is_calm = False  # A Java member may have lost connections.
        if ensemble:
            until("all members serve", ensemble.serves)
