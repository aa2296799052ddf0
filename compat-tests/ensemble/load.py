"""Clients under load while servers stop and start. Acknowledged writes must be there in the end; no session may expire."""

import threading
import time
import traceback

import client as ops
from client import Client
from wire import Lost

TIMEOUT_MS = 20_000  # Longer than any outage here, so that a session that expires was lost by the servers.
LOOK_SECONDS = 12  # After so long without progress, and before sessions expire, the answers to four-letter words are saved.
PAUSE_SECONDS = 0.004  # Between two writes: the servers under test share the machine.


class Worker:
    """One session that writes in a loop; after a lost connection it moves to the next server."""

    def __init__(self, load, number):
        self.load, self.number, self.acked = load, number, 0
        self.client = Client(load.addresses, TIMEOUT_MS, first=number)
        self.longest = 0.0  # Seconds between two answers.
        self.prepare()

    def prepare(self):
        pass

    def again(self, what):
        """Calls `what` until it has an answer; returns the answer, and True if an earlier try may have been carried out too."""
        unsure = False
        while True:
            try:
                return what(), unsure
            except (Lost, OSError):
                unsure = True
                self.client.at += 1
                self.client.connect()

    def run(self):
        try:
            last = time.monotonic()
            while not self.load.over.is_set():
                self.turn()
                self.longest = max(self.longest, time.monotonic() - last)
                last = time.monotonic()
                time.sleep(self.load.pause)
        except BaseException:
            self.load.failures.append(f"{type(self).__name__} {self.number}:\n{traceback.format_exc()}")


class Counter(Worker):
    """A znode whose version counts the acknowledged writes: each write names the expected version."""

    def prepare(self):
        self.path = f"/load/counter-{self.number}"
        assert self.client.make(self.path, b"0")[0] == 0

    def turn(self):
        value = b"%d" % (self.acked + 1)
        error, unsure = self.again(lambda: self.client.set(self.path, value, self.acked))
        if error == ops.BAD_VERSION and unsure:
            (_, data, stat), _ = self.again(lambda: self.client.get(self.path))
            # A read at another server may be stale; the refused write was checked by the leader.
            if stat[4] == self.acked:
                self.again(self.client.sync)
                (_, data, stat), _ = self.again(lambda: self.client.get(self.path))
            assert (stat[4], data) == (self.acked + 1, value), f"{self.path} at {stat[4]}: {data}, not {value}"
        else:
            assert error == 0, f"{self.path} at version {self.acked}: {error}"
        self.acked += 1

    def check(self, reader):
        _, data, stat = reader.get(self.path)
        assert (stat[4], data) == (self.acked, b"%d" % self.acked), f"{self.path} at {stat[4]}, acknowledged {self.acked}"


class Queue(Worker):
    """Sequential znodes with a counter as data: none is lost, and sequence numbers grow."""

    def prepare(self):
        self.root, self.made, self.unsure = f"/load/queue-{self.number}", {}, 0
        assert self.client.make(self.root)[0] == 0

    def turn(self):
        number = self.acked
        (error, path), unsure = self.again(
            lambda: self.client.make(f"{self.root}/n-", b"%d" % number, ops.SEQUENTIAL))
        assert error == 0, f"{self.root}: {error}"
        self.unsure += unsure
        place = int(path[-10:])
        assert not self.made or max(self.made) < place, f"{path} after {max(self.made)}"
        self.made[place] = number
        self.acked += 1

    def check(self, reader):
        places = {int(name[-10:]) for name in reader.names(self.root)}
        lost = set(self.made) - places
        assert not lost, f"{self.root}: acknowledged creates are lost: {sorted(lost)[:5]}"
        extra = places - set(self.made)
        assert len(extra) <= 20 * self.unsure, f"{self.root}: {sorted(extra)} were never created"
        for place in [*sorted(self.made)[:20], *sorted(self.made)[-200:], *extra]:
            _, data, _ = reader.get(f"{self.root}/n-{place:010}")
            assert place in extra or data == b"%d" % self.made[place], f"{place}: {data}"


class Lock(Worker):
    """The lock recipe with sequential ephemerals: two sessions never hold the lock, as no session expires."""

    def turn(self):
        client, mark = self.client, b"%d" % self.number
        (error, path), unsure = self.again(lambda: client.make("/load/lock/n-", mark, ops.EPHEMERAL_SEQUENTIAL))
        assert error == 0, f"lock: {error}"
        mine = path.rsplit("/", 1)[1]
        if unsure:
            mine = self.only_one(mine)
        while True:
            names, _ = self.again(lambda: client.names("/load/lock"))
            assert mine in names, f"{mine} is gone while its session {client.id:#x} lives"
            if min(names) == mine:
                break
            if self.load.over.is_set():
                self.again(lambda: client.delete(f"/load/lock/{mine}"))
                return
            time.sleep(0.01)
        assert self.load.held.acquire(blocking=False), "two sessions hold the lock"
        (_, _, stat), _ = self.again(lambda: client.get(f"/load/lock/{mine}"))
        assert stat[7] == client.id, f"{mine} is owned by {stat[7]:#x}"
        self.load.held.release()
        error, unsure = self.again(lambda: client.delete(f"/load/lock/{mine}"))
        assert error == 0 or (unsure and error == ops.NO_NODE), f"release: {error}"
        self.acked += 1

    def only_one(self, mine):
        """Deletes the znode of an unanswered try."""
        self.again(self.client.sync)
        for name in self.again(lambda: self.client.names("/load/lock"))[0]:
            (error, _, stat), _ = self.again(lambda: self.client.get(f"/load/lock/{name}"))
            if name != mine and error == 0 and stat[7] == self.client.id:
                self.again(lambda: self.client.delete(f"/load/lock/{name}"))
        return mine

    def check(self, reader):
        assert reader.names("/load/lock") == [], "ephemerals of closed sessions are left"


class Holder(Worker):
    """An ephemeral that must stay as long as its session, whose client only reads."""

    def prepare(self):
        self.path = f"/load/held-{self.number}"
        assert self.client.make(self.path, b"", ops.EPHEMERAL)[0] == 0

    def turn(self):
        (error, _, stat), _ = self.again(lambda: self.client.get(self.path))
        assert error == 0 and stat[7] == self.client.id, f"{self.path}: {error}, {stat}"
        self.acked += 1
        time.sleep(0.2)

    def check(self, reader):
        assert not reader.exists(self.path), f"{self.path} outlives its closed session"


class Load:
    """Workers of every kind at all servers; `with Load(...)` checks at its end that no acknowledged write was lost."""

    def __init__(self, ensemble, pause=PAUSE_SECONDS):
        self.ensemble, self.addresses, self.pause = ensemble, ensemble.addresses, pause
        self.over, self.failures, self.workers, self.threads = threading.Event(), [], [], []
        self.held = threading.Lock()  # The lock of the workers of kind Lock.

    def __enter__(self):
        first = Client(self.addresses)
        first.make("/load"), first.make("/load/lock")
        first.close()
        kinds = [Counter, Queue, Lock, Counter, Queue, Lock, Holder, Holder, Holder]
        # Other names than those of an earlier load on the same ensemble.
        start = int(time.monotonic() * 1000) // 10 * 10
        self.workers = [kind(self, start + at) for at, kind in enumerate(kinds)]
        self.threads = [threading.Thread(target=worker.run, daemon=True) for worker in self.workers]
        for thread in self.threads:
            thread.start()
        return self

    def progress(self, writes=3):
        """Waits until every worker has made `writes` more, so that each step of a test is seen by all; raises a worker's failure."""
        goals = [(worker, worker.acked + writes) for worker in self.workers]
        deadline = time.monotonic() + 60
        look = time.monotonic() + LOOK_SECONDS
        while not self.failures and (late := [worker for worker, goal in goals if worker.acked < goal]):
            stuck = ", ".join(f"{type(worker).__name__} {worker.client.id:#x} at {worker.client.address}" for worker in late)
            if look < time.monotonic():
                look = deadline + 1
                self.ensemble.look_into(stuck)
            assert time.monotonic() < deadline, f"no progress: {stuck}"
            time.sleep(0.02)
        assert not self.failures, self.failures[0]

    def __exit__(self, kind, error, trace):
        self.over.set()
        for thread in self.threads:
            thread.join(90)
        if error is not None:
            return
        assert not self.failures, self.failures[0]
        assert not any(thread.is_alive() for thread in self.threads), "a worker waits for ever"
        for worker in self.workers:
            worker.client.close()
        for member in self.ensemble.running():
            reader = Client([member.address])
            reader.sync()
            for worker in self.workers:
                worker.check(reader)
            reader.close()

    def words(self):
        return (f"{sum(worker.acked for worker in self.workers)} done, longest without an answer "
                f"{max(worker.longest for worker in self.workers):.1f} s")
