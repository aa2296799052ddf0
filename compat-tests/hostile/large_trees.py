"""SNAP to learners: a slow learner does not stop the leader's snapshots, and clients are served meanwhile."""

import random
import struct
import time

import throttle
from client import SET, Client
from honest import Beside, Writers
from members import until
from snapshots import snapshots
from target import FOLLOWER, MIB, OBSERVER, at, elections, memory, mib, ms
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
