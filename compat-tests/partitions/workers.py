"""The clients that work before, during and after a fault: each kind records the history that one of the checks needs."""

import random
import threading
import time
import traceback

import client as ops
from client import Client
from recorded import Recorded
from wire import Expired

TIMEOUT_MS = 6000
PAUSE_SECONDS = 0.012  # Between two turns of a client: the members share the machine.
BATCH = 6  # Pipelined calls of one client.


class Worker:
    """One session that takes turns until told to stop. `root` is the parent of the round's znodes."""

    def __init__(self, work, number, timeout_ms=TIMEOUT_MS):
        self.work, self.root, self.rng = work, work.root, random.Random(f"{work.seed}-{number}")
        self.name, self.turns = f"{work.root[1:]}.{type(self).__name__.lower()[:5]}{number}", 0
        self.client = Recorded(self.name, work.cluster, timeout_ms, first=number)
        self.prepare()

    def prepare(self):
        pass

    def run(self):
        try:
            while not self.work.over.is_set():
                self.turn()
                self.turns += 1
                time.sleep(self.rng.uniform(0, 2 * PAUSE_SECONDS))
        except Expired:
            pass  # It is recorded, and the check of sessions reports it.
        except BaseException:
            self.work.failures.append(f"{self.name}:\n{traceback.format_exc()}")

    def value(self):
        """A value that no other write has."""
        return f"{self.name.split('.')[1]}:{self.turns}"


class Register(Worker):
    """Writes and reads of a few shared znodes: with an expected version or without, created and deleted again."""

    def prepare(self):
        assert self.client.make(f"/fence-{self.name}")[0] == 0
        self.versions = {}

    def turn(self):
        c, path = self.client, self.rng.choice(self.work.registers)
        version = self.versions.get(path, -1) if self.rng.random() < 0.8 else -1
        plans = {
            "set": lambda: c.plan_set(path, self.value(), version),
            "make": lambda: c.plan_make(path, self.value()),
            "drop": lambda: c.plan_drop(path, version),
            "read": lambda: c.plan_read(path),
            "sync-read": lambda: c.plan_read(path, "sync-read"),
            "fenced-read": lambda: c.plan_read(path, "fenced-read"),
        }
        kind = self.rng.choices(list(plans), [40, 8, 5, 12, 15, 20])[0]
        op = c.one(*plans[kind]())
        if op.done and op.kind == "set":
            self.versions[path] = version + 1 if version >= 0 else -1
        elif op.done and "read" in op.kind:
            self.versions[path] = op.version
        else:
            self.versions.pop(path, None)


class Pipeline(Worker):
    """Pipelined calls: answered in order and carried out in order; when a connection ends, a prefix of them."""

    def prepare(self):
        self.path, self.folder = f"{self.root}/own-{self.name}", f"{self.root}/row-{self.name}"
        for path in (self.path, self.folder):
            assert self.client.make(path, b"")[0] == 0
            self.work.furniture.add(path)

    def turn(self):
        c, plans = self.client, []
        for at in range(BATCH):
            number = self.turns * BATCH + at
            batch = {"batch": self.turns + 1}
            plans.append({
                0: lambda: c.plan_set(self.path, str(number), **batch),
                1: lambda: c.plan_read(self.path, **batch),
                2: lambda: c.plan_make(f"{self.folder}/{number:06}", str(number), **batch),
            }[self.rng.choice([0, 1, 2, 2])]())
        c.run(*plans)


class Queue(Worker):
    """Sequential znodes of several clients below one parent."""

    def turn(self):
        self.client.one(*self.client.plan_make(f"{self.root}/queue/n-", self.value(), ops.SEQUENTIAL))


class Holder(Worker):
    """An ephemeral that must exist as long as its session, whose client reads it now and then."""

    def prepare(self):
        self.path = f"{self.root}/held-{self.name}"
        assert self.client.one(*self.client.plan_make(self.path, "", ops.EPHEMERAL)).done

    def turn(self):
        self.client.one(*self.client.plan_read(self.path))
        time.sleep(self.rng.uniform(0, 0.4))


class Watcher(Worker):
    """Sets watches and reads, so that the check finds changes without an event."""

    def turn(self):
        c, path = self.client, self.rng.choice(self.work.registers)
        queue = f"{self.root}/queue"
        plan = self.rng.choice([
            lambda: c.plan_read(path, watch="data"), lambda: c.plan_exists(path), lambda: c.plan_read(path),
            lambda: c.plan_list(queue, watch="children"), lambda: c.plan_list(queue),
        ])
        c.one(*plan())


class Reader(Worker):
    """Only reads: a partitioned member answers it until it notices that it has lost the leader or the quorum."""

    def turn(self):
        self.client.one(*self.client.plan_read(self.rng.choice(self.work.registers)))


QUICK = [Register, Register, Register, Register, Pipeline, Queue, Holder, Watcher, Watcher]
LONG = [*QUICK, Register, Pipeline, Queue, Holder]


class Work:
    """Clients of every kind at all members, with znodes below a path of their own."""

    def __init__(self, cluster, name, seed, long=False, readers=0):
        self.cluster, self.root, self.seed = cluster, f"/{name}", seed
        self.registers = [f"{self.root}/{letter}" for letter in "abc"]
        self.over, self.failures = threading.Event(), []
        first = Client(cluster.addresses)
        for path in (self.root, f"{self.root}/queue"):
            assert first.make(path)[0] == 0
        # A session that is never closed: it has to expire in spite of the fault.
        self.ghost, self.ghost_path = Client(cluster.addresses, 2000), f"{self.root}/ghost"
        assert self.ghost.make(self.ghost_path, b"", ops.EPHEMERAL)[0] == 0
        assert first.make(f"{self.root}/stuff")[0] == 0
        first.close()
        self.furniture = {self.root, f"{self.root}/queue", f"{self.root}/stuff"}  # Znodes without a record.
        self.stuffer = Recorded(f"{name}.stuff", cluster, TIMEOUT_MS)
        self.workers = [kind(self, at) for at, kind in enumerate([*(LONG if long else QUICK), *[Reader] * readers])]
        self.threads = [threading.Thread(target=worker.run, daemon=True) for worker in self.workers]
        for thread in self.threads:
            thread.start()

    def leave_ghost(self):
        self.ghost.socket.close()

    def stuff(self):
        """Some writes that make the transaction logs grow."""
        for _ in range(16):
            self.stuffer.one(*self.stuffer.plan_set(f"{self.root}/stuff", "x" * 8000))

    def progress(self, turns=10, seconds=60):
        """Waits until every client whose session has not expired took this many more turns."""
        goals = [(worker, worker.turns + turns) for worker in self.workers]
        deadline = time.monotonic() + seconds
        while not self.failures and any(worker.turns < goal and not worker.client.expired for worker, goal in goals):
            assert time.monotonic() < deadline, \
                f"no progress: {[worker.name for worker, goal in goals if worker.turns < goal]}"
            time.sleep(0.05)
        assert not self.failures, self.failures[0]

    def stop(self):
        """Stops the clients and closes their sessions; returns the history."""
        self.over.set()
        for thread in self.threads:
            thread.join(90)
        assert not self.failures, self.failures[0]
        assert not any(thread.is_alive() for thread in self.threads), "a client waits for ever"
        for worker in self.workers:
            if isinstance(worker, Watcher) and not worker.client.expired:
                # Events for all changes up to now must come before this answer.
                worker.client.one(*worker.client.plan_read(self.registers[0], "sync-read"))
        for client in [self.stuffer, *(worker.client for worker in self.workers)]:
            if not client.expired:
                client.end()
        return self.records()

    def records(self):
        return [op for worker in self.workers for op in worker.client.records]

    def abandon(self):
        """Stops the clients without waiting for them; returns the history so far."""
        self.over.set()
        return self.records()
