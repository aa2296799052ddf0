#!/usr/bin/env python3
"""Measures failover as clients see it: for each client the time from SIGKILL of the leader to the end of its next
successful write that began after the kill. The script reports times, and fails only
if a client does not write again within 120 s.

    clients/leader_loss.py --server 'ours=target/release/oxkeeper' --server java [--rounds 5] [--clients 30] [--only kazoo,go]

A server is `NAME=COMMAND`, with settings for zoo.cfg after it (`ours-0=target/release/oxkeeper oxkeeper.connectHold=0`), or `java`.
"""

import argparse
import itertools
import pathlib
import signal
import statistics
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "ensemble")]

import workers  # noqa: E402
from members import Ensemble, until  # noqa: E402

KINDS = {"java": workers.Java, "kazoo": workers.Kazoo, "c": workers.CAsync, "go": workers.Go}
BETWEEN_SECONDS = 0.01  # Between two writes of a client.


class Writer(threading.Thread):
    """A client that writes its own znode repeatedly, and notes when each successful write began and ended."""

    def __init__(self, kind, addresses, number):
        super().__init__(daemon=True)
        self.worker = kind(None, address=addresses, timeout_ms=10000)
        self.path, self.successes, self.is_over = f"/{kind.__name__.lower()}-{number}", [], False
        self.worker.create(self.path)

    def run(self):
        while not self.is_over:
            began = time.monotonic()
            try:
                self.worker.set(self.path, "x")
                self.successes.append((began, time.monotonic()))
            except workers.Refused:
                pass
            time.sleep(BETWEEN_SECONDS)
        self.worker.kill()

    def seconds_after(self, since):
        """Seconds until the end of the first successful write that began after `since`, or None."""
        later = itertools.takewhile(lambda success: since <= success[0], reversed(self.successes))
        return min((ended - since for _, ended in later), default=None)


def lose_leader(ensemble, writers):
    leader = ensemble.leader()
    since = time.monotonic()
    leader.end(how=signal.SIGKILL)
    felt = lambda: [writer.seconds_after(since) for writer in writers]  # noqa: E731
    until("every client writes again", lambda: None not in felt(), 120)
    seconds = felt()
    ensemble.start(leader)
    time.sleep(2)  # Clients that changed servers have reconnected.
    return seconds


def measure(name, command, settings, kind, arguments):
    ensemble = Ensemble("jjj" if command == "java" else "ooo", command, ["initLimit=10", "syncLimit=5", "tickTime=2000", *settings])
    try:
        ensemble.start()
        addresses = ",".join(ensemble.addresses)
        writers = [Writer(KINDS[kind], addresses, number) for number in range(arguments.clients)]
        for writer in writers:
            writer.start()
        time.sleep(2)
        found = sorted(seconds for _ in range(arguments.rounds) for seconds in lose_leader(ensemble, writers))
        for writer in writers:
            writer.is_over = True
        ms = [1000 * seconds for seconds in found]
        figures = f"{statistics.median(ms):>8.0f} {ms[len(ms) * 9 // 10]:>8.0f} {ms[-1]:>8.0f}"
        print(f"{kind:<8} {name:<12} {figures} {len(ms):>8}", flush=True)
        for writer in writers:
            writer.join(10)
    finally:
        ensemble.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", required=True, metavar="NAME=COMMAND [SETTING..]|java")
    parser.add_argument("--clients", type=int, default=30, help="clients of each kind, all at one time")
    parser.add_argument("--rounds", type=int, default=5, help="how many leaders are killed, for each kind and server")
    parser.add_argument("--only", default=",".join(KINDS))
    arguments = parser.parse_args()
    print(f"{'clients':<8} {'server':<12} {'median':>8} {'p90':>8} {'longest':>8} {'samples':>8}    ms from SIGKILL to the next write of each client")
    for kind in arguments.only.split(","):
        for server in arguments.server:
            name, _, words = server.partition("=")
            command, *settings = words.split() or ["java"]
            measure(name, command, settings, kind, arguments)


main()
