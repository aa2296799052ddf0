"""Attacks by strangers and by single clients. Each case says what was done once, and what must hold; what Java does is told
by `--server java`.

A case that is closed or refused where Java takes it, or the other way round, says so by what it returns.
"""

import collections
import pathlib
import random
import re
import resource
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "ensemble"))
from client import AUTH, AUTH_XID, GET, GET_ACL, SET, Client, acl  # noqa: E402
from members import Ensemble, until  # noqa: E402
from server import Server  # noqa: E402
from wire import OPEN_ACL, Lost, buffer  # noqa: E402

KIB, MIB = 1024, 1024 * 1024
FOLLOWER_INFO, PING, OBSERVER_INFO, ACK_EPOCH, ACK = 11, 5, 16, 18, 3
MULTI_READ, GET_EPHEMERALS, SET_WATCHES, CREATE, EXISTS = 22, 103, 101, 1, 3


def memory(process, field="VmRSS"):
    """Bytes; 0 once the process has ended."""
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return 0
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.M)
    return int(found.group(1)) * KIB if found else 0


def lives(process):
    assert process.poll() is None, f"the server ended with {process.returncode}"


def pour(peers, piece, bytes_max):
    """Sends to each as much as it takes, `bytes_max` at most; gives how many bytes were taken in all, and who was closed."""
    left, closed, taken = {peer: bytes_max for peer in peers}, set(), 0
    for peer in peers:
        peer.setblocking(False)
    deadline = time.monotonic() + 60
    while left and time.monotonic() < deadline:
        _, ready, _ = select.select([], list(left), [], 2)
        if not ready:
            break  # The connection is not read any more.
        for peer in ready:
            try:
                sent = peer.send(piece[:left[peer]])
            except BlockingIOError:
                continue
            except OSError:
                closed.add(peer)
                del left[peer]
                continue
            taken += sent
            left[peer] -= sent
            if left[peer] == 0:
                del left[peer]
    return taken, closed


def ends(peer, seconds):
    """Whether the other end closes the connection within that time."""
    peer.settimeout(seconds)
    try:
        while peer.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def packet_head(kind, data_len, zxid=0):
    return struct.pack(">iqi", kind, zxid, data_len)


def hello(kind, server_id):
    """FOLLOWERINFO or OBSERVERINFO as a whole, without identities."""
    return packet_head(kind, 20) + struct.pack(">qiq", server_id, 0x10000, 0) + struct.pack(">i", -1)


class Members:
    """An ensemble that a case attacks, removed at its end."""

    def __init__(self, command, kinds, settings=()):
        if command == "java":
            kinds = kinds.replace("o", "j")
        self.ensemble = Ensemble(kinds, "true" if command == "java" else command, settings)

    def __enter__(self):
        self.ensemble.start()
        return self.ensemble

    def __exit__(self, kind, error, _):
        if error:
            print(self.ensemble.tails())
            self.ensemble.kill()
        else:
            self.ensemble.remove()


class Alone:
    """A standalone server that a case attacks, removed at its end."""

    def __init__(self, command, settings=(), before=()):
        self.server = Server(command, settings)
        self.server.command = [*before, *self.server.command]

    def __enter__(self):
        return self.server.start()

    def __exit__(self, kind, error, _):
        if error:
            print(self.server.tail())
            self.server.end(signal.SIGKILL)
        else:
            self.server.remove()


def quorum_port(member):
    return socket.create_connection((member.host, member.quorum_port), timeout=10)


def before_the_hello(command):
    """Four connections claim 900 MB and send; others send a byte a second. Closed after little, and after little time."""
    with Members(command, "ooo") as ensemble:
        leader = ensemble.leader()
        before = memory(leader.process)
        peers = [quorum_port(leader) for _ in range(4)]
        for peer in peers:
            peer.sendall(packet_head(FOLLOWER_INFO, 900_000_000))
        taken, closed = pour(peers, bytes(MIB), 24 * MIB)
        grown = memory(leader.process) - before
        print(f"    {taken // MIB} MiB sent, memory grew by {grown // MIB} MiB, {len(closed)} of 4 closed")
        assert grown < 16 * MIB and len(closed) == 4, "bytes are kept of connections that have not said who they are"
        slow = quorum_port(leader)
        began = time.monotonic()
        for byte in hello(FOLLOWER_INFO, 77):
            try:
                slow.send(bytes([byte]))
            except OSError:
                break
            if ends(slow, 1):
                break
        took = time.monotonic() - began
        print(f"    a hello of a byte a second: closed after {took:.0f} s")
        assert took < 30, "a hello may take as long as it likes"
        lives(leader.process)


def after_the_hello(command):
    """120 connections say hello as observers, and each keeps a packet of 2 MB unfinished."""
    with Members(command, "ooo") as ensemble:
        leader = ensemble.leader()
        before = memory(leader.process)
        peers = [quorum_port(leader) for _ in range(120)]
        for number, peer in enumerate(peers):
            peer.sendall(hello(OBSERVER_INFO, 1000 + number) + packet_head(PING, 2_000_000))
        taken, closed = pour(peers, bytes(MIB), 1_900_000)
        grown = memory(leader.process) - before
        print(f"    {taken // MIB} MiB sent, memory grew by {grown // MIB} MiB, {len(closed)} of 120 closed")
        assert grown < 128 * MIB, "packets that never end are kept without a bound"
        c = Client([leader.address])
        assert c.make("/served")[0] == 0
        c.close()
        assert ensemble.serves(), "a member left"


def show(client, size, name):
    """Shows an identity of so many bytes under scheme digest; whether it was taken."""
    client.auth("digest", name + "x" * (size - len(name)) + ":p")
    try:
        reply = client.read()
    except Lost:
        return False
    return struct.unpack_from(">iqi", reply)[2] == 0


def identities(command):
    """How many bytes of identities a connection may show: one, then many."""
    with Alone(command) as server:
        sizes = {}
        for size in (1000, 60_000, 70_000, 1_000_000):
            client = Client([server.address])
            sizes[size] = show(client, size, "one")
            client.socket.close()
        client, shown = Client([server.address]), 0
        before = memory(server.process)
        while shown < 100 * MIB and show(client, 30_000, f"{shown}-"):
            shown += 30_000
        print(f"    taken alone: {sizes}; {shown:,} bytes in all, memory grew by {(memory(server.process) - before) // MIB} MiB")
        lives(server.process)
        assert sizes[60_000], "an identity of 60,000 bytes is refused"
        assert shown < MIB, "a connection may show any number of bytes"


def list_of_auth(count):
    """Entries that each stand for all identities of the client; each with permissions of its own, or they would be one."""
    entry = lambda number: struct.pack(">i", 31 + (number << 5)) + buffer(b"auth") + buffer(b"")  # noqa: E731
    return struct.pack(">i", count) + b"".join(entry(number) for number in range(count))


def expanded_lists(command):
    """2 MB of upload ask for a list of 40 GB: one large identity, one create with 40,000 `auth` entries."""
    # A bound of the system's: what is asked for is not to hurt the machine.
    bound = [] if command == "java" else ["prlimit", f"--as={6 << 30}"]
    for size in (1_000_000, 60_000):
        with Alone(command, before=bound) as server:
            client = Client([server.address])
            before = memory(server.process, "VmHWM")
            if not show(client, size, "u"):
                print(f"    an identity of {size:,} bytes is refused")
                continue
            client.socket.settimeout(120)
            try:
                error = client.make("/list", lists=list_of_auth(40_000))[0]
            except Lost as lost:
                error = str(lost)
            peak = memory(server.process, "VmHWM") - before
            print(f"    identity of {size:,} bytes: answered {error}, memory at most {peak // MIB} MiB more")
            lives(server.process)
            assert peak < 256 * MIB, "a list is built before its bytes are counted"
            honest = Client([server.address])
            assert honest.make("/honest")[0] == 0
            honest.close()


def forwarded_identities(command):
    """A client of a follower with a large identity asks 2,000 tiny writes at once: the follower stays."""
    with Members(command, "ooo") as ensemble:
        follower = next(member for member in ensemble.members if member.mode() == "follower")
        honest = Client([follower.address])
        assert honest.make("/tiny")[0] == 0
        client = Client([follower.address])
        if not show(client, 1_000_000, "u"):
            print("    an identity of 1,000,000 bytes is refused")
            client = Client([follower.address])
            assert show(client, 60_000, "u")
        client.socket.settimeout(60)
        client.write_all = b"".join(
            buffer(struct.pack(">ii", number + 1, SET) + buffer(b"/tiny") + buffer(b"x") + struct.pack(">i", -1))
            for number in range(2000))
        left = 0
        try:
            client.socket.sendall(client.write_all)
            for number in range(2000):
                client.read()
        except Lost as lost:
            left = 2000 - number
            print(f"    {left} of 2,000 writes not answered: {lost}")
        peak = max(memory(member.process, "VmHWM") for member in ensemble.members)
        print(f"    memory at most {peak // MIB} MiB")
        assert left == 0, "the client was cut"
        assert honest.set("/tiny", b"y") == 0, "the follower has left its leader"
        if command != "java":
            assert peak < 512 * MIB, "requests are forwarded without a bound"


def connects_at_once(command):
    """800 connects come while the server does not accept: none has to try again seconds later."""
    with Alone(command, ["maxClientCnxns=0"]) as server:
        server.process.send_signal(signal.SIGSTOP)
        peers = []
        for _ in range(800):
            peer = socket.socket()
            peer.setblocking(False)
            peer.connect_ex(("127.0.0.1", server.port))
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
        print(f"    {800 - len(waiting)} of 800 are connected while the server stands still (system's maximum: {maximum})")
        assert 800 - len(waiting) >= min(800, maximum), "the system drops connects that could wait"
        for peer in peers:
            peer.close()


def descriptors(command):
    """Connections take all descriptors that they get; the log goes on to its next files."""
    limit = 400 if command == "java" else 64  # A JVM has more files of its own.
    settings = ["maxClientCnxns=0", "snapCount=20", "preAllocSize=64"]
    with Alone(command, settings, ["prlimit", f"--nofile={limit}:{limit}"]) as server:
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
        told = [line for line in server.log.read_text(errors="replace").splitlines() if "open files" in line and "WARN" in line]
        print(f"    {logs} files of the log; told {len(told)} times: {told[-1][28:] if told else ''}")
        assert logs > 3, "no file of the log was begun meanwhile"
        assert told or command == "java", "nobody is told which limit to raise"
        for peer in peers:
            peer.close()
        until("clients are served again", lambda: server.serves())


def descriptors_of_a_member(command):
    """Strangers take all that they get at every port of every member; the ensemble writes on, and a lost follower comes back."""
    limit = 400 if command == "java" else 80
    members = Members(command, "ooo", ["maxClientCnxns=0", "snapCount=20", "preAllocSize=64"])
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


def longest_wait(honest, goes_on, each=lambda: None):
    """Longest of an honest client's reads and writes, in seconds, as long as `goes_on()`; `each` is done between them."""
    longest = 0
    while goes_on():
        for ask in (lambda: honest.get("/honest")[0], lambda: honest.set("/honest", b"x")):
            began = time.monotonic()
            assert ask() == 0
            longest = max(longest, time.monotonic() - began)
        each()
    return longest


def lasts(seconds):
    """A question that is true for so long."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def slows_nobody(command, honest, attack):
    """An honest client's longest wait during an attack is at most 100 ms longer than without.

    What else runs on the machine may cause such a wait too, but not three times out of three.
    """
    waits = []
    for _ in range(3):
        alone = longest_wait(honest, lasts(2))
        waits.append((alone, attack()))
        if waits[-1][1] <= alone + 0.1:
            break
    told = ", ".join(f"{longest * 1000:.0f} ms ({alone * 1000:.0f} without the attack)" for alone, longest in waits)
    print(f"    longest honest wait {told}")
    assert command == "java" or waits[-1][1] <= waits[-1][0] + 0.1, "one client's requests stop everybody's"


def answered(client, honest, count):
    """Longest wait of the honest client until the other one has been sent so many answers."""
    left = [count]

    def take():
        while left[0] and select.select([client.socket], [], [], 0)[0]:
            client.receive()
            left[0] -= 1

    return longest_wait(honest, lambda: left[0], take)


def long_lists(command):
    """One list of 40,000 addresses, and a multiRead of 300 znodes under it: another client's requests go on."""
    with Alone(command) as server:
        client, honest = Client([server.address]), Client([server.address])
        addresses = [(1, "ip", f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}") for n in range(40_000)]
        error = client.make("/list", lists=acl(*addresses, (31, "ip", "127.0.0.1")))[0]
        assert error == 0, f"the list is answered {error}"
        assert honest.make("/honest")[0] == 0
        part = struct.pack(">ibi", GET, 0, -1) + buffer(b"/list") + b"\0"
        many = part * 300 + struct.pack(">ibi", -1, 1, -1)
        client.socket.settimeout(120)

        def attack():
            client.send(MULTI_READ, many)
            for _ in range(300):
                client.send(GET, buffer(b"/list") + b"\0")
            return answered(client, honest, 301)

        slows_nobody(command, honest, attack)


def long_requests(command):
    """A setWatches of 45,000 paths, a multiRead of 45,000 parts, 20,000 ephemerals, ten times: another client's requests go on."""
    with Alone(command, ["maxSessionTimeout=120000"]) as server:
        client, honest = Client([server.address], 120_000), Client([server.address], 120_000)
        assert honest.make("/honest")[0] == 0
        for first in range(0, 20_000, 500):
            for number in range(first, first + 500):
                client.send(CREATE, buffer(b"/e%d" % number) + buffer(b"") + OPEN_ACL + struct.pack(">i", 1))
            for _ in range(500):
                assert client.receive()[0] == 0
        paths = b"".join(buffer(b"/missing/%06d" % number) for number in range(45_000))
        none = struct.pack(">i", 0)
        watches = struct.pack(">q", 1 << 40) + none + struct.pack(">i", 45_000) + paths + none
        part = struct.pack(">ibi", GET, 0, -1) + buffer(b"/e1") + b"\0"
        many = part * 45_000 + struct.pack(">ibi", -1, 1, -1)
        client.socket.settimeout(120)

        def attack():
            # The honest client waits for the server and not for this process, which has to send all that first.
            sender = threading.Thread(target=lambda: [client.send(kind, body) for _ in range(10) for kind, body in (
                (SET_WATCHES, watches), (MULTI_READ, many), (GET_EPHEMERALS, buffer(b"/")))])
            sender.start()
            longest = answered(client, honest, 30)
            sender.join()
            return longest

        slows_nobody(command, honest, attack)


def unread_lists(command):
    """100 clients ask for 200,000 watches with `wchp` and don't read: memory stays, another client's requests go on."""
    with Alone(command, ["maxClientCnxns=0", "maxSessionTimeout=120000"]) as server:
        client, honest = Client([server.address], 120_000), Client([server.address], 120_000)
        assert honest.make("/honest")[0] == 0
        for first in range(0, 200_000, 500):
            for number in range(first, first + 500):
                client.send(EXISTS, buffer(b"/watched/%06d" % number) + b"\1")
            for _ in range(500):
                client.receive()
        before, peak = memory(server.process), 0

        def note():
            nonlocal peak
            peak = max(peak, memory(server.process))

        def attack():
            peers = []
            for _ in range(100):
                peer = socket.socket()
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                peer.settimeout(10)
                peer.connect(("127.0.0.1", server.port))
                peer.sendall(b"wchp")
                peers.append(peer)
            longest = longest_wait(honest, lasts(8), note)
            for peer in peers:
                peer.close()
            return longest

        slows_nobody(command, honest, attack)
        print(f"    memory {before // MIB} MiB, {(peak - before) // MIB} MiB more at most")
        if command != "java":
            assert peak - before <= 48 * MIB, "every unread answer is kept in memory"
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as peer:
            peer.sendall(b"wchp")
            text = b"".join(iter(lambda: peer.recv(1 << 16), b""))
        found = set(re.findall(rb"^/watched/\d{6}$", text, re.M))
        assert len(found) == 200_000, f"{len(found)} watches are listed to a client that reads"


REASON = re.compile(r"\d+|'[^']*'|\"[^\"]*\"|0x[0-9a-f]+")


def lines_by_second(log, offset):
    """How often each kind of line stands in the log per second, numbers left out."""
    found = collections.Counter()
    for line in log.read_text(errors="replace")[offset:].splitlines():
        stamp, _, rest = line.strip().partition(" ")
        if rest:
            found[(stamp[:19], REASON.sub("#", rest)[:60])] += 1
    return found


def quiet(log, offset, what):
    counts = lines_by_second(log, offset)
    (_, reason), most = max(counts.items(), key=lambda item: item[1], default=((None, "nothing"), 0))
    print(f"    {what}: {sum(counts.values())} lines, at most {most} a second of {reason!r}")
    # The log's seconds and those between two lines are not the same.
    assert most <= 2, f"{what}: {most} lines a second: {reason}"


def size(log):
    return len(log.read_text(errors="replace"))


def log_floods(command):
    """Strangers at every port, a member with another one's number, clients above their number: a line a second and reason."""
    election_hello = lambda number: struct.pack(">qqi", -65536, number, 14) + b"127.0.0.1:9999"  # noqa: E731
    with Members(command, "ooo", ["maxClientCnxns=3"]) as ensemble:
        leader = ensemble.leader()
        ports = {"client": leader.port, "quorum": leader.quorum_port, "election": leader.election_port}
        kept = [Client([leader.address]) for _ in range(2)]
        attacks = [
            ("refused clients", "client", b""),
            ("requests of clients that mean nothing", "client", struct.pack(">i", 900_000_000)),
            ("nonsense at the quorum port", "quorum", b"nonsense" * 4),
            ("an unknown observer that comes again", "quorum", hello(OBSERVER_INFO, 900)),
            ("a follower that comes again", "quorum", hello(FOLLOWER_INFO, 1 if leader.number != 1 else 2)),
            ("nonsense at the election port", "election", b"nonsense" * 4),
            ("a server with the same myid", "election", election_hello(leader.number)),
            ("a server that is unknown and comes again", "election", election_hello(900)),
            ("a member's number from elsewhere", "election", election_hello(1 if leader.number != 1 else 2)),
            ("nothing at the election port", "election", b""),
        ]
        failed = []
        for what, port, said in attacks:
            offset = size(leader.log)
            if what == "refused clients":
                kept += [socket.create_connection((leader.host, leader.port)) for _ in range(2)]
            elif port == "client":
                while len(kept) > 2:
                    kept.pop().close()
                time.sleep(0.3)
            for _ in range(200):
                with socket.create_connection((leader.host, ports[port]), timeout=10) as peer:
                    try:
                        peer.sendall(said)
                        if port == "client" and said:
                            ends(peer, 5)
                    except OSError:
                        pass
            time.sleep(0.5)
            try:
                quiet(leader.log, offset, what)
            except AssertionError as error:
                failed.append(str(error))
        for client in kept[:2]:
            client.socket.close()
        assert not failed, "; ".join(failed)
        until("all members serve", ensemble.serves)


def snapshots(folder):
    """Whole snapshots that stand in a data directory, by name."""
    return {path.name for path in (folder / "data/version-2").glob("snapshot.*") if "tmp" not in path.name}


def set_large(client, number, data):
    client.send(SET, buffer(b"/large-%d" % number) + buffer(data) + struct.pack(">i", -1))


def large_snapshot(command):
    """600 znodes of a megabyte, set again while a snapshot is written: memory, and the longest of small sets."""
    count, data = 600, random.randbytes(1_000_000)
    # A snapshot is due after 1301 to 2600 transactions: not before the memory is looked at for the first time.
    alone = Alone(command, ["snapCount=2600"])
    # Freed znodes go back to the system. glibc keeps them otherwise, and sets alone, without a snapshot, make 240 MiB of holes.
    alone.server.environment["MALLOC_MMAP_THRESHOLD_"] = str(256 * KIB)
    with alone as server:
        client, honest = Client([server.address]), Client([server.address])
        assert honest.make("/honest")[0] == 0
        for number in range(count):
            client.send_make(f"/large-{number}", data)
            if client.sent - client.received == 8:
                assert client.receive()[0] == 0
        for number in range(count):  # Memory that sets of large znodes cost by themselves.
            set_large(client, number, data)
            if client.sent - client.received == 4:
                assert client.receive()[0] == 0
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
        # Java's snapshot has its name from the start, and is written for some seconds then.
        while time.monotonic() < (began + 60 if named is None else named + 4 * (command == "java")):
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
        print(f"    longest small set: {waits}; memory {before // MIB} MiB, {(peak - before) // MIB} MiB more at most")
        assert snapshots(server.folder) != known, "no snapshot was written"
        if command != "java":
            assert peak - before <= 160 * MIB, "a snapshot costs a copy of the tree"


def snapshots_under_fake_observers(command):
    """Four strangers ask the leader for its tree as observers and don't read: the leader's snapshots go on.

    The second acknowledges the tree nevertheless: its connection is closed, or it would be alive for as long as it likes.
    """
    with Members(command, "ooo", ["snapCount=2000", "zookeeper.forceSnapshotSync=true"]) as ensemble:
        leader = ensemble.leader()
        client = Client([leader.address], 60_000)
        for first in range(0, 20_000, 200):  # More than sockets hold, and more than one piece.
            for number in range(first, first + 200):
                client.send_make(f"/held-{number}", bytes(1000))
            for _ in range(200):
                assert client.receive()[0] == 0
        peers = []
        for number in range(4):
            peer = socket.socket()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.settimeout(10)
            peer.connect((leader.host, leader.quorum_port))
            peer.sendall(hello(OBSERVER_INFO, 1000 + number))
            assert len(peer.recv(24, socket.MSG_WAITALL)) == 24, "no epoch is told"  # LEADERINFO.
            peer.sendall(packet_head(ACK_EPOCH, 4) + struct.pack(">ii", 0, -1))
            peers.append(peer)
        time.sleep(0.5)
        peers[1].sendall(packet_head(ACK, -1, 1 << 32) + struct.pack(">i", -1))
        known, written, number = len(snapshots(leader.folder)), 0, 0
        began, before = time.monotonic(), memory(leader.process)
        while number < 33_800 and time.monotonic() < began + 12:
            for _ in range(100):
                client.send(SET, buffer(b"/held-0") + buffer(b"x") + struct.pack(">i", -1))
            for _ in range(100):
                assert client.receive()[0] == 0
            number += 100
        time.sleep(1)
        written = len(snapshots(leader.folder)) - known
        grown = memory(leader.process) - before
        is_closed = ends(peers[1], 2)
        print(f"    the early acknowledgement is {'refused' if is_closed else 'taken'}")
        print(f"    {written} snapshots in {number:,} transactions, memory grew by {grown // MIB} MiB")
        assert written >= min(3, number // 4000), "strangers switch the leader's snapshots off"
        assert is_closed or command == "java", "a tree is acknowledged that was not sent"
        lives(leader.process)
        for peer in peers:
            peer.close()


CASES = [before_the_hello, after_the_hello, identities, expanded_lists, forwarded_identities, connects_at_once, descriptors,
         descriptors_of_a_member, long_lists, long_requests, unread_lists, log_floods, large_snapshot, snapshots_under_fake_observers]


def play(command, only=()):
    """Plays the cases; gives the names of those that failed."""
    failed = []
    for case in CASES:
        if only and case.__name__ not in only:
            continue
        print(f"{case.__name__}: {case.__doc__.splitlines()[0]}", flush=True)
        try:
            case(command)
        except Exception as error:  # The others say something too.
            print(f"    FAIL {type(error).__name__}: {error}")
            failed.append(case.__name__)
    return failed
