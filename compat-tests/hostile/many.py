"""Large numbers: children of one znode, watches, sessions, clients that reconnect at once; with an honest client at the same time."""

import asyncio
import collections
import signal
import socket
import struct
import threading
import time

from client import CREATE2, DELETE, EXISTS, MULTI, Client
from honest import Beside
from members import Failed, until
from target import ALONE, FOLLOWER, LEADER, OBSERVER, at, mib
from wire import OPEN_ACL, buffer

CHILDREN = 8
TIMEOUT_MS = 60_000
SESSION_MS = 8000


class Frames(threading.Thread):
    """Reads frames of a client as fast as they come, and counts replies and events."""

    def __init__(self, client):
        super().__init__(daemon=True)
        self.socket, self.replies, self.events, self.errors, self.failed = client.socket, 0, 0, collections.Counter(), None

    def run(self):
        data = b""
        try:
            while part := self.socket.recv(1 << 20):
                data += part
                at = 0
                while len(data) - at >= 4:
                    (length,) = struct.unpack_from(">i", data, at)
                    if len(data) - at - 4 < length:
                        break
                    xid, _, error = struct.unpack_from(">iqi", data, at + 4)
                    if xid == -1:
                        self.events += 1
                    else:
                        self.replies += 1
                        if error:
                            self.errors[error] += 1
                    at += 4 + length
                data = data[at:]
        except OSError as error:
            self.failed = error

    def wait_for(self, what, count, seconds):
        until(f"{count:,} {what}", lambda: getattr(self, what) >= count, seconds)


def send_all(client, requests, frames, seconds, batch=500, window=5000):
    """Sends (kind, body) pairs, at most `window` of them unanswered."""
    first, sent, deadline = frames.replies, 0, time.monotonic() + seconds
    pieces = []

    def flush():
        client.socket.sendall(b"".join(pieces))
        pieces.clear()
        while sent - (frames.replies - first) > window:
            assert time.monotonic() < deadline, f"{frames.replies - first:,} of {sent:,} requests answered within {seconds} s"
            time.sleep(0.001)

    for kind, body in requests:
        client.sent += 1
        pieces.append(buffer(struct.pack(">ii", client.sent, kind) + body))
        sent += 1
        if len(pieces) == batch:
            flush()
    flush()
    frames.wait_for("replies", first + sent, seconds)


def multis(parts, size=200):
    """Groups `parts` into multi requests of `size` operations each."""
    group = []
    for part in parts:
        group.append(part)
        if len(group) == size:
            yield MULTI, b"".join(group) + struct.pack(">ibi", -1, 1, -1)
            group = []
    if group:
        yield MULTI, b"".join(group) + struct.pack(">ibi", -1, 1, -1)


@at(ALONE, long=(LEADER, FOLLOWER, OBSERVER))
def children_and_watches(trial):
    """A znode with 100,000 children (--long: a million) and as many watches, which then all fire."""
    count, patience = trial.of(100_000, 1_000_000), trial.of(60, 600)
    with trial.target([f"maxSessionTimeout={TIMEOUT_MS * 10}"]) as target:
        maker, watcher = Client([target.address], TIMEOUT_MS * 10), Client([target.address], TIMEOUT_MS * 10)
        assert maker.make("/many")[0] == 0
        maker.socket.settimeout(None)
        watcher.socket.settimeout(None)
        made, seen, start = Frames(maker), Frames(watcher), target.memory()
        made.start()
        seen.start()
        paths = [buffer(b"/many/n%07d" % number) for number in range(count)]
        create = (struct.pack(">ibi", CREATE2, 0, -1) + path + buffer(b"") + OPEN_ACL + struct.pack(">i", 0) for path in paths)
        with Beside(target.address) as beside:
            marks = [time.monotonic()]
            send_all(maker, multis(create), made, patience, batch=1, window=8)
            marks.append(time.monotonic())
            send_all(watcher, ((EXISTS, path + b"\1") for path in paths), seen, patience)
            marks.append(time.monotonic())
            grown = target.memory() - start
            send_all(watcher, [(CHILDREN, buffer(b"/many") + b"\1")] * 5, seen, patience)
            marks.append(time.monotonic())
            send_all(maker, multis(struct.pack(">ibi", DELETE, 0, -1) + path + struct.pack(">i", -1) for path in paths), made,
                     patience, batch=1, window=8)
            seen.wait_for("events", count + 1, patience)  # One more for the watch on the children.
            marks.append(time.monotonic())
            words = [beside.words(mark) for mark in marks[:1]]
            took = [f"{what} {after - before:.1f} s" for what, before, after in zip(
                ("created", "watched", "listed five times", "deleted and all events received"), marks, marks[1:])]
        trial.say(f"{count:,}: {', '.join(took)}; memory {mib(grown)} more, {mib(target.memory() - start)} at the end; {words[0]}")
        assert not made.errors and not seen.errors, f"errors: {made.errors}, {seen.errors}"
        assert beside.longest() < trial.of(4, 30), "other clients' children and watches block an honest client"


def abandoned_sessions(target, count, timeout_ms):
    """Opens `count` sessions and closes their connections at once, as killed clients do; returns how many were created."""
    head = buffer(struct.pack(">iqiq", 0, 0, timeout_ms, 0) + buffer(bytes(16)) + b"\0")
    made, group = 0, 400
    for first in range(0, count, group):
        peers = []
        for _ in range(min(group, count - first)):
            peer = socket.create_connection((target.server.host, target.server.port), timeout=30)
            peer.sendall(head)
            peers.append(peer)
        for peer in peers:
            made += len(peer.recv(64)) == 41
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # Avoids thousands of sockets in TIME_WAIT.
            peer.close()
    return made


def sessions_known(server):
    found = server.word("mntr")
    figures = dict(line.split("\t", 1) for line in found.splitlines() if "\t" in line)
    return int(figures.get("zk_global_sessions", figures.get("zk_num_alive_connections", -1)))


@at(FOLLOWER, long=(ALONE, LEADER, OBSERVER))
def sessions_that_expire(trial):
    """20,000 sessions (--long: 200,000) whose clients are gone expire within seconds, while an honest client is served."""
    count, timeout_ms = trial.of(20_000, 200_000), trial.of(SESSION_MS, TIMEOUT_MS)
    settings = ["maxClientCnxns=0", "clientPortListenBacklog=1000", f"maxSessionTimeout={TIMEOUT_MS}"]
    with trial.target(settings) as target:
        start, began = target.memory(), time.monotonic()
        with Beside(target.address) as beside:
            made = abandoned_sessions(target, count, timeout_ms)
            opened, grown, known = time.monotonic() - began, target.memory() - start, sessions_known(target.server)
            since = time.monotonic()
            until("all sessions expire", lambda: sessions_known(target.server) <= 2, timeout_ms / 1000 + trial.of(40, 300))
            gone = time.monotonic() - since
            words, expiring = beside.words(), beside.words(since)
        trial.say(f"{made:,} sessions opened in {opened:.1f} s, {known:,} known, memory {mib(grown)} more; all gone {gone:.1f} s later;"
                  f" opening: {words}; expiring: {expiring}")
        assert made == count, f"{count - made} sessions were refused"
        assert beside.longest() < trial.of(4, 30), "expiring sessions block an honest client"


class Returning:
    """A client that resumes its session as soon as it can; `seconds` counts from the kill of the leader."""

    def __init__(self, addresses, first):
        self.addresses, self.at = addresses, first
        self.session, self.password, self.seconds, self.refused = 0, bytes(16), None, 0

    async def connect(self):
        host, port = self.addresses[self.at % len(self.addresses)].rsplit(":", 1)
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, int(port)), 5)
        try:
            head = struct.pack(">iqiq", 0, 0, TIMEOUT_MS, self.session) + buffer(self.password) + b"\0"
            writer.write(buffer(head))
            answer = await asyncio.wait_for(reader.readexactly(41), 10)
            _, timeout_ms, session = struct.unpack_from(">iiq", answer, 4)
            if timeout_ms <= 0:
                raise Failed(f"session {self.session:#x} is refused")
        except BaseException:
            writer.close()
            raise
        self.session, self.password = session, answer[24:40]
        return reader, writer

    async def patiently(self):
        """The first connection, with retries, as the machine may be busy."""
        while True:
            try:
                return await self.connect()
            except (OSError, EOFError, asyncio.TimeoutError):
                await asyncio.sleep(0.2)

    async def live(self, killed, connected):
        reader, writer = await self.patiently()
        connected()
        if await reader.read(1):
            raise Failed("a byte that was not requested")
        writer.close()
        while True:
            self.at += 1
            try:
                _, self.writer = await self.connect()
                self.seconds = time.monotonic() - killed()
                return
            except (OSError, EOFError, asyncio.TimeoutError):
                self.refused += 1
                await asyncio.sleep(0.05)


def come_back_at_once(trial):
    """The leader is killed, and 1,000 clients (--long: 10,000) reconnect at once: the time until all have resumed their sessions."""
    count = trial.of(1000, 10_000)
    with trial.members("ooo", ["maxClientCnxns=0", "initLimit=20", "syncLimit=10"]) as ensemble:
        leader = until("a leader", ensemble.leader)
        addresses, since = [member.address for member in ensemble.members], []

        async def play():
            clients, ready = [Returning(addresses, number) for number in range(count)], []
            tasks = [asyncio.create_task(client.live(lambda: since[0], lambda: ready.append(1))) for client in clients]
            deadline = time.monotonic() + 60
            while len(ready) < count and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            assert len(ready) == count, f"{len(ready)} of {count} clients have a session"
            since.append(time.monotonic())
            leader.end(signal.SIGKILL)
            # A follower keeps its clients' connections until it is LOOKING, in Java as here.
            _, pending = await asyncio.wait(tasks, timeout=trial.of(45, 120))
            for task in tasks:
                task.cancel()
            failed = [task.exception() for task in tasks if task.done() and not task.cancelled() and task.exception()]
            return clients, len(pending), failed

        clients, pending, failed = asyncio.run(play())
        times = sorted(client.seconds for client in clients if client.seconds is not None)
        refused = sum(client.refused for client in clients)
        half, most = (times[len(times) // 2], times[-1]) if times else (0, 0)
        trial.say(f"{len(times)} of {count} sessions resumed: half within {half:.2f} s, all within {most:.2f} s, {refused} failed connects")
        assert not failed, f"{len(failed)} clients failed: {failed[0]!r}"
        assert not pending and len(times) == count, f"{pending} clients have no session"
        assert most < trial.of(20, 60), f"a client waited {most:.0f} s for its session"
        ensemble.start(leader)
