"""Clients that pipeline writes of 1 MB each, while another client makes occasional small writes."""

import statistics
import threading
import time

from members import Failed
from wire import Session

CLIENTS, WRITES, WRITES_LONG, BYTES = 16, 20, 40, 1_000_000
TIMEOUT_MS = 60_000


def memory_peak_mib(member):
    status = (line.split() for line in open(f"/proc/{member.process.pid}/status"))
    return next(int(words[1]) for words in status if words[0] == "VmHWM:") // 1024


class Flood(threading.Thread):
    """Sends all of its writes without waiting for an answer; another thread reads the answers."""

    def __init__(self, address, number, writes):
        super().__init__(daemon=True)
        self.writes, self.path, self.answered, self.error = writes, f"/large-{number}", 0, None
        self.session = Session(address, TIMEOUT_MS)
        self.session.send_create(self.path, b"", ephemeral=True)
        assert self.session.receive()[0] == 0

    def run(self):
        sender = threading.Thread(target=self.send, daemon=True)
        sender.start()
        try:
            for _ in range(self.writes):
                error, _ = self.session.receive()
                assert error == 0, f"setData: error {error}"
                self.answered += 1
        except Exception as error:  # Reported by the main thread.
            self.error = error

    def send(self):
        data = bytes(BYTES)
        try:
            for _ in range(self.writes):
                self.session.send_set(self.path, data, -1)
        except Exception as error:
            self.error = error


def elections(ensemble):
    """How often each member has been LOOKING since it started."""
    return {member.number: int(member.figures()["zk_looking_count"]) for member in ensemble.members}


def flood(ensemble, members, writes):
    """Large writes through `members`; returns the seconds that they took, and the latencies of a client with small writes."""
    honest = Session(members[0].address, TIMEOUT_MS)
    honest.send_create("/honest", b"", ephemeral=True)
    assert honest.receive()[0] == 0
    floods = [Flood(members[n % len(members)].address, n, writes) for n in range(CLIENTS)]
    began, took = time.monotonic(), []
    for client in floods:
        client.start()
    while any(client.is_alive() for client in floods):
        asked = time.monotonic()
        honest.send_set("/honest", b"1", -1)
        assert honest.receive()[0] == 0
        took.append(time.monotonic() - asked)
        time.sleep(0.02)
    seconds = time.monotonic() - began
    for client in floods:
        if client.error or client.answered != writes:
            raise Failed(f"{client.path}: {client.answered} of {writes} answered, {client.error!r}")
        client.session.close()
    honest.close()
    return seconds, took


def check(ensemble, arguments):
    """Through the leader, a follower, all members: every write is answered, no connection is closed, no election begins."""
    writes = WRITES_LONG if arguments.long else WRITES
    leader = ensemble.leader()
    followers = [member for member in ensemble.members if member is not leader]
    results, before = [], elections(ensemble)
    for name, members in (("leader", [leader]), ("follower", followers[:1]), ("all", ensemble.members)):
        seconds, took = flood(ensemble, members, writes)
        results.append(f"{name} {CLIENTS * writes / seconds:.0f} MB/s, a small write {statistics.median(took) * 1000:.0f} ms"
                    f" ({max(took) * 1000:.0f} longest)")
        if elections(ensemble) != before:
            raise Failed(f"large writes through {name}: elections by member {elections(ensemble)}, before that {before}")
    peaks = ", ".join(f"{member} {memory_peak_mib(member)}" for member in ensemble.members)
    return f"{'; '.join(results)}; peak MiB: {peaks}"
