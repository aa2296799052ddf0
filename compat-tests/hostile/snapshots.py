"""Snapshots under load and during SNAP to learners: they are always written, and what they cost clients and memory."""

import random
import socket
import struct
import threading
import time

from client import SET, Client
from server import free_port
from strangers import ACK, ACK_EPOCH, OBSERVER_INFO, hello, packet_head
from target import FOLLOWER, KIB, LEADER, MIB, at, ends, lives, memory
from wire import buffer


def snapshots(folder):
    """The names of the complete snapshots in a data directory."""
    return {path.name for path in (folder / "data/version-2").glob("snapshot.*") if "tmp" not in path.name}


def set_large(client, number, data):
    client.send(SET, buffer(b"/large-%d" % number) + buffer(data) + struct.pack(">i", -1))


def large_snapshot(trial):
    """600 znodes of a megabyte are set while a snapshot is written: memory, and the longest small set of another client."""
    count, data = 600, random.randbytes(1_000_000)
    # A snapshot is due after 1301 to 2600 transactions: not before memory is measured for the first time.
    alone = trial.alone(["snapCount=2600"])
    # Makes glibc return freed znodes to the system. Otherwise sets alone, without a snapshot, leave 240 MiB of holes in its heap.
    alone.server.environment["MALLOC_MMAP_THRESHOLD_"] = str(256 * KIB)
    with alone as server:
        client = Client([server.address])
        for number in range(count):
            client.send_make(f"/large-{number}", data)
            if client.sent - client.received == 8:
                assert client.receive()[0] == 0
        for number in range(count):  # So that `before` includes the memory that setting large znodes takes without a snapshot.
            set_large(client, number, data)
            if client.sent - client.received == 4:
                assert client.receive()[0] == 0
        honest = Client([server.address])  # Not before: its session would be silent for as long as that takes.
        assert honest.make("/honest")[0] == 0
        before, peak, folder = memory(server.process), 0, server.folder / "data/version-2"
        known, began = snapshots(server.folder), time.monotonic()
        done, longest = threading.Event(), {}

        def write_on():
            at = 0
            while not done.is_set() or client.received < client.sent:
                while not done.is_set() and client.sent - client.received < 4:
                    set_large(client, at := (at + 1) % count, data)
                assert client.receive()[0] == 0

        writer = threading.Thread(target=write_on)
        writer.start()
        named = None
        # Java's snapshot has its final name from the start, and is then written for some seconds.
        while time.monotonic() < (began + 60 if named is None else named + 4 * (trial.is_java)):
            if named is None and snapshots(server.folder) != known:
                named = time.monotonic()
            is_written = named or any(folder.glob(".snapshot.*.tmp"))
            phase = "while it is written" if is_written else "before the snapshot"
            asked = time.monotonic()
            assert honest.set("/honest", b"1") == 0
            longest[phase] = max(longest.get(phase, 0), time.monotonic() - asked)
            peak = max(peak, memory(server.process))
            time.sleep(0.002)
        done.set()
        writer.join()
        lives(server.process)
        waits = ", ".join(f"{seconds * 1000:.0f} ms {phase}" for phase, seconds in longest.items())
        trial.say(f"longest small set: {waits}; memory {before // MIB} MiB, {(peak - before) // MIB} MiB more at most")
        assert snapshots(server.folder) != known, "no snapshot was written"
        if not trial.is_java:
            assert peak - before <= 160 * MIB, "a snapshot copies the tree"


@at(LEADER, long=(FOLLOWER,))
def snapshots_under_fake_observers(trial):
    """Four strangers connect to a leader, or to a follower's observerMasterPort, and don't read SNAP: the server's own snapshots go on.

    The second sends an ACK of NEWLEADER nevertheless: its connection must be closed, otherwise it would count as alive for ever.
    """
    master = free_port()
    settings = ["snapCount=2000", "zookeeper.forceSnapshotSync=true", f"observerMasterPort={master}"]
    with trial.members("ooo", settings) as ensemble:
        leader = server = ensemble.leader()
        port = server.quorum_port
        if trial.role == FOLLOWER:
            server, port = next(member for member in ensemble.members if member is not leader), master
        client = Client([leader.address], 60_000)
        for first in range(0, 20_000, 200):  # A tree larger than socket buffers, in more than one piece.
            for number in range(first, first + 200):
                client.send_make(f"/held-{number}", bytes(1000))
            for _ in range(200):
                assert client.receive()[0] == 0
        peers = []
        for number in range(4):
            peer = socket.socket()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.settimeout(10)
            peer.connect((server.host, port))
            peer.sendall(hello(OBSERVER_INFO, 1000 + number))
            assert len(peer.recv(24, socket.MSG_WAITALL)) == 24, "no LEADERINFO"
            peer.sendall(packet_head(ACK_EPOCH, 4) + struct.pack(">ii", 0, -1))
            peers.append(peer)
        time.sleep(0.5)
        peers[1].sendall(packet_head(ACK, -1, 1 << 32) + struct.pack(">i", -1))
        known, written, number = len(snapshots(server.folder)), 0, 0
        began, before = time.monotonic(), memory(server.process)
        while number < 33_800 and time.monotonic() < began + 12:
            for _ in range(100):
                client.send(SET, buffer(b"/held-0") + buffer(b"x") + struct.pack(">i", -1))
            for _ in range(100):
                assert client.receive()[0] == 0
            number += 100
        time.sleep(1)
        written = len(snapshots(server.folder)) - known
        grown = memory(server.process) - before
        is_closed = ends(peers[1], 2)
        trial.say(f"the early ACK is {'refused' if is_closed else 'accepted'}")
        trial.say(f"{written} snapshots in {number:,} transactions, memory grew by {grown // MIB} MiB")
        assert written >= min(3, number // 4000), "strangers stop the server's snapshots"
        assert is_closed or trial.is_java, "an ACK of a SNAP that was not sent is accepted"
        lives(server.process)
        for peer in peers:
            peer.close()
