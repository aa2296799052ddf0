"""Authentication ids and ACLs that are small to send and take much memory in the server."""

import struct

from client import SET, SET_ACL, Client
from members import until
from target import ALONE, FOLLOWER, LEADER, MIB, OBSERVER, at, lives, memory
from wire import Lost, buffer


def show(client, size, name):
    """Sends addAuth with a digest id of `size` bytes; returns whether it was accepted."""
    client.auth("digest", name + "x" * (size - len(name)) + ":p")
    try:
        reply = client.read()
    except Lost:
        return False
    return struct.unpack_from(">iqi", reply)[2] == 0


@at(ALONE, FOLLOWER, long=(LEADER, OBSERVER))
def identities(trial):
    """A connection may add only a limited number of bytes of ids, in one addAuth or in many."""
    with trial.target() as target:
        server, sizes = target.server, {}
        for size in (1000, 60_000, 70_000, 1_000_000):
            client = Client([server.address])
            sizes[size] = show(client, size, "one")
            client.socket.close()
        client, shown = Client([server.address]), 0
        before = memory(server.process)
        while shown < 100 * MIB and show(client, 30_000, f"{shown}-"):
            shown += 30_000
        trial.say(f"accepted alone: {sizes}; {shown:,} bytes in all, memory grew by {(memory(server.process) - before) // MIB} MiB")
        lives(server.process)
        assert sizes[60_000], "an id of 60,000 bytes is refused"
        assert shown < MIB, "a connection may add ids without a bound"


def list_of_auth(count):
    """An ACL of `auth` entries, each of which expands to all ids of the client; each entry has other permissions, because the server
    merges equal ones."""
    entry = lambda number: struct.pack(">i", 31 + (number << 5)) + buffer(b"auth") + buffer(b"")  # noqa: E731
    return struct.pack(">i", count) + b"".join(entry(number) for number in range(count))


@at(ALONE, FOLLOWER, long=(LEADER, OBSERVER))
def expanded_lists(trial):
    """2 MB of requests expand to an ACL of 40 GB: one large id, one create with 40,000 `auth` entries."""
    # A limit on the server's address space, to protect the machine.
    bound = [] if trial.is_java else ["prlimit", f"--as={6 << 30}"]
    for size in (1_000_000, 60_000):
        with trial.target(before=bound) as target:
            server = target.server
            client = Client([server.address])
            before = memory(server.process, "VmHWM")
            if not show(client, size, "u"):
                trial.say(f"an id of {size:,} bytes is refused")
                continue
            client.socket.settimeout(120)
            try:
                error = client.make("/list", lists=list_of_auth(40_000))[0]
            except Lost as lost:
                error = str(lost)
            peak = memory(server.process, "VmHWM") - before
            trial.say(f"id of {size:,} bytes: answered {error}, memory at most {peak // MIB} MiB more")
            lives(server.process)
            assert peak < 256 * MIB, "an ACL is expanded before its size is checked"
            honest = Client([server.address])
            assert honest.make("/honest")[0] == 0
            honest.close()


@at(FOLLOWER, long=(OBSERVER, LEADER))
def forwarded_identities(trial):
    """A client with a large id pipelines 2,000 tiny writes, each forwarded with that id: the follower stays in its ensemble."""
    with trial.target() as target:
        follower, ensemble = target.server, target.ensemble
        honest = Client([follower.address])
        assert honest.make("/tiny")[0] == 0
        client = Client([follower.address])
        if not show(client, 1_000_000, "u"):
            trial.say("an id of 1,000,000 bytes is refused")
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
            trial.say(f"{left} of 2,000 writes unanswered: {lost}")
        peak = max(memory(member.process, "VmHWM") for member in ensemble.members)
        trial.say(f"memory at most {peak // MIB} MiB")
        assert left == 0, "the client was disconnected"
        assert honest.set("/tiny", b"y") == 0, "the follower has left its leader"
        if not trial.is_java:
            assert peak < 512 * MIB, "forwarded requests take memory without a bound"


@at(ALONE, FOLLOWER, long=(LEADER, OBSERVER))
def transactions_that_expand(trial):
    """A client with a large id pipelines 300 short setACLs, whose transactions have 1.8 MB each: memory stays bounded, all are answered."""
    with trial.target() as target:
        members = target.ensemble.members if target.ensemble else [target.server]
        client = Client([target.address])
        assert client.make("/expanded")[0] == 0
        assert show(client, 60_000, "u")
        before = {member: memory(member.process, "VmHWM") for member in members}
        body = buffer(b"/expanded") + list_of_auth(30) + struct.pack(">i", -1)
        client.socket.settimeout(60)
        client.socket.sendall(b"".join(buffer(struct.pack(">ii", number + 1, SET_ACL) + body) for number in range(300)))
        errors = {struct.unpack_from(">iqi", client.read())[2] for _ in range(300)}
        peak = max(memory(member.process, "VmHWM") - old for member, old in before.items())
        trial.say(f"answered {errors}; memory of a server at most {peak // MIB} MiB more")
        assert errors == {0}
        if not trial.is_java:
            assert peak < 448 * MIB, "transactions take memory that no limit counts"


def audited_identities(trial):
    """A client with a large id pipelines 1,000 writes into the audit log, a line with that id for each: memory stays bounded."""
    if trial.is_java:
        return trial.say("skipped: Java's audit log needs a library that this suite does not have")
    with trial.alone(["zookeeper.audit.enable=true", "zookeeper.auditlog.file=audit.log"]) as server:
        client = Client([server.address])
        assert client.make("/audited")[0] == 0
        assert show(client, 60_000, "u")
        before = memory(server.process, "VmHWM")
        body = buffer(b"/audited") + buffer(b"x") + struct.pack(">i", -1)
        client.socket.settimeout(60)
        client.socket.sendall(b"".join(buffer(struct.pack(">ii", number + 1, SET) + body) for number in range(1000)))
        errors = {struct.unpack_from(">iqi", client.read())[2] for _ in range(1000)}
        peak = memory(server.process, "VmHWM") - before
        logged = lambda: sum(file.read_bytes().count(b"setData") for file in server.folder.glob("audit.log*"))  # noqa: E731
        until("a line for each write", lambda: logged() == 1000)
        trial.say(f"answered {errors}; memory at most {peak // MIB} MiB more")
        assert errors == {0}
        assert peak < 96 * MIB, "events for the audit log take memory without a bound"
