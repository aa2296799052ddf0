"""SNAP to learners: a slow learner does not stop the leader's snapshots, and clients are served meanwhile."""

import os
import random
import struct
import time

import throttle
from client import SET, Client
from honest import Beside, Writers
from members import until
from snapshots import snapshots
from target import ALONE, FOLLOWER, LEADER, MIB, OBSERVER, at, elections, memory, mib, ms
from wire import buffer

MB = 1_000_000
SLOW_BYTES = 1_500_000  # A second.


def fill(client, count, data, name="held", window=8):
    for number in range(count):
        client.send_make(f"/{name}-{number}", data)
        while client.sent - client.received >= window:
            assert client.receive()[0] == 0
    while client.received < client.sent:
        assert client.receive()[0] == 0


def churn(client, path, seconds, count_max):
    """Small writes in batches, for some seconds or up to a number; returns how many were made."""
    body, number, deadline = buffer(path) + buffer(b"x") + struct.pack(">i", -1), 0, time.monotonic() + seconds
    while time.monotonic() < deadline and number < count_max:
        for _ in range(200):
            client.send(SET, body)
        for _ in range(200):
            assert client.receive()[0] == 0
        number += 200
    return number


@at(OBSERVER, long=(FOLLOWER,))
def slow_tree_to_a_member(trial):
    """A member without data receives SNAP slowly, through a proxy: the leader's own snapshots go on, and the member joins."""
    number = 3 if trial.role == OBSERVER else 1
    made, settings = throttle.made(number, SLOW_BYTES), ["initLimit=120", "snapCount=2000", "zookeeper.forceSnapshotSync=true"]
    with trial.members("oo+o" if trial.role == OBSERVER else "ooo", settings, made) as ensemble:
        slow = ensemble.members[number - 1]
        ensemble.stop(slow)
        ensemble.wait()
        leader = ensemble.leader()
        client = Client([leader.address], 60_000)
        fill(client, trial.of(20, 200), random.randbytes(MB))
        slow.forget()
        before, known = elections([leader]), len(snapshots(leader.folder))
        slow.launch()
        time.sleep(1)
        grown_from, began, seconds = memory(leader.process), time.monotonic(), trial.of(10, 120)
        count = churn(client, b"/held-0", seconds, trial.of(20_000, 400_000))
        # The last snapshot that became due is still being written.
        time.sleep(1)
        written, grown = len(snapshots(leader.folder)) - known, memory(leader.process) - grown_from
        is_there = bool(slow.mode())
        trial.say(f"{written} snapshots in {count:,} transactions while the tree is sent ({'done' if is_there else 'not done yet'}),"
                  f" memory grew by {mib(grown)}")
        assert not is_there or trial.is_java, "SNAP ended too early"
        assert written >= min(3, count // 4000), "a slow member stops the leader's snapshots"
        until(f"SNAP to {slow}", lambda: slow.mode() == trial.role, trial.of(60, 600))
        trial.say(f"the member serves after {time.monotonic() - began:.0f} s")
        assert elections([leader]) == before, "there was an election"


def replies_beside_a_tree(trial):
    """Measures the longest small set while there are sets of 1 MB, without and with a SNAP to a learner at the same time
    (see also large_snapshot)."""
    count, seconds, data = trial.of(150, 2000), trial.of(4, 30), random.randbytes(MB)
    with trial.members("oo+o", ["snapCount=1000000"]) as ensemble:
        observer = ensemble.members[2]
        ensemble.stop(observer)
        leader = ensemble.leader()
        client = Client([leader.address], 60_000)
        fill(client, count, data)
        before = memory(leader.process)
        with Beside(leader.address, pause=0.005) as beside, Writers([leader.address], 1, MB, window=2):
            time.sleep(seconds)
            alone, alone_words = beside.longest(), beside.words()
            observer.forget()
            since = time.monotonic()
            observer.launch()
            until("SNAP to the observer", lambda: observer.mode() == "observer", trial.of(60, 600))
            sent, sent_words, took = beside.longest(since), beside.words(since), time.monotonic() - since
        grown = memory(leader.process, "VmHWM") - before
        trial.say(f"{count} znodes of 1 MB, sets of 1 MB outstanding. Without a learner: {alone_words}")
        trial.say(f"while the tree is sent ({took:.1f} s): {sent_words}; longest {ms(sent)}, {ms(alone)} without; memory {mib(grown)} more")
        assert sent < alone + 3, "SNAP blocks clients"
        if not trial.is_java:
            assert grown < 200 * MIB, "SNAP copies the tree"


def grows(folder, seconds):
    """Whether a snapshot in a data directory, finished or not, grows within that time."""
    def size():
        found = 0
        for path in (folder / "data/version-2").glob("*snapshot.*"):
            try:
                found += path.stat().st_size
            except FileNotFoundError:  # It has its final name now.
                pass
        return found

    before = size()
    time.sleep(seconds)
    return size() != before


def longest_between(beside, since, until_then):
    return max((seconds for asked, seconds in beside.took if since <= asked + seconds and asked <= until_then), default=0)


@at(ALONE, LEADER)
def replies_on_a_quiet_tree(trial):
    """Measures the longest set and get of the only client of a tree of 1 MB znodes (--long: 2 GB), three times: alone, and while the tree
    is written as a snapshot (standalone server) or is sent to a member without data (leader)."""
    if trial.is_java:
        os.environ["_JAVA_OPTIONS"] = "-Xmx5g"  # Members have less otherwise.
    count, data, pairs = trial.of(150, 2000), random.randbytes(MB), []

    def note(beside, quiet, busy):
        now = time.monotonic()
        alone, beside_it = longest_between(beside, quiet, busy), longest_between(beside, busy, now)
        pairs.append((alone, beside_it))
        trial.say(f"longest set and get {ms(alone)} in {busy - quiet:.0f} s alone, {ms(beside_it)} in {now - busy:.1f} s with the tree under way")

    if trial.role == ALONE:
        with trial.alone([f"snapCount={trial.of(2000, 6000)}"]) as server:
            fill(Client([server.address], 60_000), count, data)
            with Beside(server.address, pause=0.002) as beside:
                for _ in range(3):
                    until("no snapshot is written", lambda: not grows(server.folder, 1), 120)
                    quiet = time.monotonic()
                    until("a snapshot is written", lambda: grows(server.folder, 0.02), 120)
                    busy = time.monotonic() - 0.02
                    until("the snapshot is whole", lambda: not grows(server.folder, 0.5), 300)
                    note(beside, quiet, busy)
    else:
        with trial.members("ooo", ["snapCount=1000000"]) as ensemble:
            leader = until("a leader", ensemble.leader)
            fill(Client([leader.address], 60_000), count, data)
            joins = next(member for member in ensemble.members if member is not leader)
            with Beside(leader.address, pause=0.002) as beside:
                for _ in range(3):
                    ensemble.stop(joins)
                    joins.forget()
                    quiet = time.monotonic()
                    time.sleep(trial.of(2, 10))
                    busy = time.monotonic()
                    joins.launch()
                    until("the member serves", joins.mode, 300)
                    note(beside, quiet, busy)
    assert min(busy - alone for alone, busy in pairs) < 3, "a tree under way blocks clients"
