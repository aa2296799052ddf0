"""Strangers and slow clients of AdminServer: what they cost the server, and the clients of port 2181."""

import contextlib
import socket
import struct
import time

from client import Client
from server import free_port
from target import MIB, lives, memory, pour
from wire import buffer

SET_WATCHES = 101
GROWTH_MAX = 16 * MIB
CONNECTIONS_MAX = 64  # An HTTP port has no more.
RUOK = b"GET /commands/ruok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
NO_JAVA = "skipped: Java's AdminServer needs a library that this suite does not have"


class Admin:
    """A server with AdminServer, and an honest client of its client port."""

    def __init__(self, trial, *settings):
        self.trial, self.port = trial, free_port()
        self.place = trial.alone(["maxClientCnxns=0", "maxSessionTimeout=120000", *settings])
        config = self.place.server.folder / "zoo.cfg"
        on = f"admin.serverPort={self.port}\nadmin.serverAddress=127.0.0.1\n"
        config.write_text(config.read_text().replace("admin.enableServer=false\n", on))

    def __enter__(self):
        self.server = self.place.__enter__()
        self.honest = Client([self.server.address], 60_000)
        return self

    def __exit__(self, *why):
        self.place.__exit__(*why)

    def dial(self, seconds=30):
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def is_served(self):
        try:
            with self.dial() as peer:
                peer.sendall(RUOK)
                return b"200 OK" in b"".join(iter(lambda: peer.recv(1 << 16), b""))
        except OSError:
            return False

    def until_served(self, seconds=60):
        deadline = time.monotonic() + seconds
        while not self.is_served():
            assert time.monotonic() < deadline, f"AdminServer does not answer again within {seconds} s"
            time.sleep(0.5)

    def watch(self, count):
        """The honest client watches this many znodes that are not there."""
        none = struct.pack(">i", 0)
        for first in range(0, count, 20_000):
            paths = [buffer(b"/watched/%07d" % number) for number in range(first, min(first + 20_000, count))]
            error, _ = self.honest.call(SET_WATCHES, struct.pack(">q", 0) + none + struct.pack(">i", len(paths)) + b"".join(paths) + none)
            assert error == 0, error

    def read_and_write(self):
        """The honest client reads and writes; returns how long that took."""
        began = time.monotonic()
        self.number = getattr(self, "number", 0) + 1
        assert self.honest.get("/")[0] == 0
        error, _ = self.honest.make(f"/honest-{self.number}")
        assert error == 0, error
        return time.monotonic() - began

    def judge(self, what, before, waited):
        """What the strangers cost."""
        lives(self.server.process)
        grown = memory(self.server.process) - before
        self.trial.say(f"{what}: memory grew by {grown / MIB:.1f} MiB, a client waited for {waited:.2f} s")
        assert grown <= GROWTH_MAX, f"{what}: memory grew by {grown // MIB} MiB"
        assert waited < 5, f"{what}: a client waited for {waited:.1f} s"


def http_strangers(trial):
    """Clients of AdminServer that say nothing, never end their head or body, or read no answer: memory stays bounded, others are served."""
    if trial.is_java:
        return trial.say(NO_JAVA)
    with Admin(trial, "admin.idleTimeout=2000") as admin:
        server, honest = admin.server, admin.honest
        admin.watch(50_000)
        assert admin.is_served()
        before, failed = memory(server.process), []
        for what, count, said, more in (
            ("say nothing", 200, b"", 0),
            ("never end the head", 60, b"GET /commands/ruok HTTP/1.1\r\nX: ", 4 * MIB),
            ("never end the body", 60, b"POST /commands/restore HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000000\r\n\r\n", 4 * MIB),
            ("read no list", 60, b"GET /commands/watches_by_path HTTP/1.1\r\nHost: x\r\n\r\n" * 20, 0),
        ):
            peers = [admin.dial() for _ in range(count)]
            for peer in peers:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                peer.sendall(said)
            taken, _ = pour(peers, b"a" * 65536, more, 4) if more else (0, set())
            began = time.monotonic()
            assert honest.get("/")[0] == 0
            waited = time.monotonic() - began
            grown = memory(server.process) - before
            serves, took = admin.is_served(), time.monotonic() - began
            for peer in peers:
                peer.close()
            trial.say(f"{count} {what}: {taken // MIB} MiB sent, memory grew by {grown // MIB} MiB; answered after {took:.1f} s, a client after {waited:.2f} s")
            if not serves or grown >= 48 * MIB or waited > 5:
                failed.append(what)
        lives(server.process)
        assert not failed, f"strangers at AdminServer cost too much: {failed}"


def http_crowds(trial):
    """5,000 connections to AdminServer that are idle, send a byte now and then, or end after half a head: memory stays bounded, clients go on, and later AdminServer answers."""
    if trial.is_java:
        return trial.say(NO_JAVA)
    half = RUOK[:20]
    with Admin(trial, "admin.idleTimeout=5000") as admin:
        admin.until_served()
        admin.read_and_write()
        before, waited, peers = memory(admin.server.process), 0, []
        for number in range(5000):
            peer = socket.socket()
            peer.setblocking(False)  # Connections for which the backlog has no room stay half made.
            peer.connect_ex(("127.0.0.1", admin.port))
            peers.append(peer)
            if number % 500 == 0:
                waited = max(waited, admin.read_and_write())
        for number, peer in enumerate(peers):
            with contextlib.suppress(OSError):
                if number % 3:
                    peer.send(half)
                if number % 3 == 2:
                    peer.shutdown(socket.SHUT_WR)  # Its other half stays open.
        for at in range(10):  # The slow ones go on, one byte at a time.
            for peer in peers[1::3]:
                with contextlib.suppress(OSError):
                    peer.send(RUOK[20 + at:21 + at])
            waited = max(waited, admin.read_and_write())
            time.sleep(0.3)
        admin.judge(f"{len(peers)} connections", before, waited)
        for peer in peers:
            peer.close()
        admin.until_served()


def http_slow_readers(trial):
    """64 readers of the list of a million watches, each of which takes a byte a second: memory stays bounded, clients go on."""
    if trial.is_java:
        return trial.say(NO_JAVA)
    with Admin(trial) as admin:
        admin.watch(1_000_000)
        admin.until_served()
        admin.read_and_write()
        before, waited, peers, begun = memory(admin.server.process), 0, [], set()
        for _ in range(CONNECTIONS_MAX):
            peer = socket.socket()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.connect(("127.0.0.1", admin.port))
            peer.sendall(b"GET /commands/watches_by_path HTTP/1.1\r\nHost: x\r\n\r\n")
            peer.setblocking(False)
            peers.append(peer)
        for _ in range(trial.of(8, 20)):
            for peer in peers:
                with contextlib.suppress(OSError):
                    if peer.recv(1):
                        begun.add(peer)
            waited = max(waited, admin.read_and_write())
            time.sleep(1)
        assert begun, "no list has begun"
        admin.judge(f"{len(begun)} of {len(peers)} lists have begun", before, waited)
        for peer in peers:
            peer.close()
        admin.until_served()


def http_endless_bodies(trial):
    """Bodies of restore that never end, some of which say that they are 900 GB long: memory stays bounded, clients go on, and no file is left."""
    if trial.is_java:
        return trial.say(NO_JAVA)
    head = b"POST /commands/restore HTTP/1.1\r\nHost: x\r\nAuthorization: ip\r\nContent-Type: application/octet-stream\r\n"
    lengths = (b"Content-Length: 900000000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n")  # The first chunk is 2 GB long.
    with Admin(trial, "admin.idleTimeout=5000", "admin.rateLimiterIntervalInMS=1") as admin:
        admin.until_served()
        admin.read_and_write()
        before, left = memory(admin.server.process), list((admin.server.folder).rglob("*.tmp"))
        for what, length in zip(("of 900 GB", "in chunks"), lengths):
            peers = [admin.dial() for _ in range(30)]
            for peer in peers:
                peer.sendall(head + length)
            taken, closed = pour(peers, bytes(65536), 48 * MIB, 4)
            waited = admin.read_and_write()
            admin.judge(f"bodies {what}: {taken // MIB} MiB sent, {len(closed)} connections were closed", before, waited)
            for peer in peers:
                peer.close()
            admin.until_served()
        deadline = time.monotonic() + 30
        while list(admin.server.folder.rglob("*.tmp")) != left:
            assert time.monotonic() < deadline, f"left over: {list(admin.server.folder.rglob('*.tmp'))}"
            time.sleep(0.5)
