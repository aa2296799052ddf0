"""Requests through each server of an ensemble, and the state that all servers must show afterwards."""

import struct
import time

import client as ops
from client import OPEN_ACL, Client, acl, tree
from members import Failed, until
from wire import buffer

SECRET = "u:p"
SETTLE_SECONDS = 30  # A bound against hanging: sessions of killed clients expire within a few seconds.


def digest_of(text):
    import base64
    import hashlib

    user = text.split(":")[0]
    return f"{user}:{base64.b64encode(hashlib.sha1(text.encode()).digest()).decode()}"


def expect(found, wanted, what):
    assert found == wanted, f"{what}: {found}, not {wanted}"


def writes(member, others):
    """Every kind of write and of refusal through one server; the other servers show the writes after a sync."""
    c, root = Client([member.address]), f"/writes-{member.number}-{time.monotonic_ns()}"
    sure = lambda answer, what: expect(answer, 0, f"{member} {what}")  # noqa: E731
    sure(c.make(root, b"root")[0], "create")
    for number in range(5):
        error, path = c.make(f"{root}/seq-", b"s", ops.SEQUENTIAL)
        expect((error, path), (0, f"{root}/seq-{number:010}"), "sequential")
    sure(c.make(f"{root}/e", b"", ops.EPHEMERAL)[0], "ephemeral")
    expect(c.make(f"{root}/e-", b"", ops.EPHEMERAL_SEQUENTIAL)[1], f"{root}/e-{6:010}", "ephemeral sequential")
    sure(c.make(f"{root}/box", b"", ops.CONTAINER)[0], "container")
    sure(c.make(f"{root}/box/x", b"")[0], "in a container")
    sure(c.make(f"{root}/emptied", b"", ops.CONTAINER)[0], "container")
    sure(c.make(f"{root}/emptied/x", b"")[0], "in a container")
    sure(c.delete(f"{root}/emptied/x"), "delete")
    sure(c.make(f"{root}/ttl", b"t", ops.TTL, ttl_ms=600_000)[0], "TTL")
    expect(c.make(f"{root}/ttl-", b"t", ops.TTL_SEQUENTIAL, ttl_ms=400)[1], f"{root}/ttl-{10:010}", "TTL sequential")
    for version in range(4):
        sure(c.set(root, b"version %d" % (version + 1), version), "set")
    own = acl((31, "digest", digest_of(SECRET)))
    sure(c.make(f"{root}/own", b"mine", lists=own)[0], "create with a list")
    sure(c.make(f"{root}/listed", b"")[0], "create")
    sure(c.set_acl(f"{root}/listed", own, 0), "setACL")
    refused(c, root)
    many(c, root)
    c.sync(root)
    for other in others:
        reader = Client([other.address])
        reader.sync(root)
        expect(reader.get(root)[1], b"version 4", f"through {member}, read at {other}")
        expect(reader.exists(f"{root}/e"), True, f"ephemeral through {member}, at {other}")
        reader.close()
    c.close()
    for other in others:
        reader = Client([other.address])
        reader.sync(root)
        left = [name for name in reader.names(root) if name == "e" or name.startswith("e-")]
        expect(left, [], f"ephemerals of a closed session at {other}")
        reader.close()


def refused(c, root):
    """Refused writes, each an error transaction or none, and then a write that succeeds."""
    for wanted, found in [
        (ops.EXISTS_ALREADY, c.make(root)[0]),
        (ops.NO_NODE, c.make(f"{root}/no/child")[0]),
        (ops.NO_CHILDREN, c.make(f"{root}/e/child")[0]),
        (ops.BAD_ACL, c.make(f"{root}/bad", lists=acl())[0]),
        (ops.BAD_ARGUMENTS, c.make("relative")[0]),
        (ops.BAD_VERSION, c.set(root, b"", 77)),
        (ops.NO_NODE, c.set(f"{root}/none", b"")),
        (ops.NOT_EMPTY, c.delete(root)),
        (ops.BAD_VERSION, c.delete(f"{root}/ttl", 5)),
        (ops.NO_AUTH, c.set(f"{root}/own", b"")),
        (ops.NO_AUTH, c.get(f"{root}/own")[0]),
        (ops.BAD_VERSION, c.set_acl(f"{root}/e", OPEN_ACL, 4)),
    ]:
        expect(found, wanted, f"refusal at {c.address}")
    c.auth(*("digest", SECRET))
    expect(c.set(f"{root}/own", b"changed"), 0, f"a write with the client's auth ids through {c.address}")
    expect(c.set(f"{root}/listed", b"changed"), 0, f"a write with the client's auth ids through {c.address}")


def many(c, root):
    """Multis: one that succeeds, with several kinds of nodes, and one that is refused."""
    body, version = c.create_body, lambda path, number: buffer(path.encode()) + struct.pack(">i", number)
    done = c.multi(
        (1, body(f"{root}/m")), (1, body(f"{root}/m/s-", b"x", ops.SEQUENTIAL)), (15, body(f"{root}/m/e", b"", ops.EPHEMERAL)),
        (5, buffer(f"{root}/m".encode()) + buffer(b"new") + struct.pack(">i", 0)), (13, version(f"{root}/m", 1)),
        (2, version(f"{root}/m/e", 0)))
    expect(done, (0, [0] * 6), f"multi at {c.address}")
    error, parts = c.multi((1, body(f"{root}/n")), (13, version(f"{root}/m", 9)), (1, body(f"{root}/o")))
    expect((error, parts), (0, [0, ops.BAD_VERSION, -2]), f"multi refused at {c.address}")
    expect(c.exists(f"{root}/n"), False, f"multi undone at {c.address}")


def watches(member, other):
    """Writes through `member` fire watches at `other`."""
    root = f"/watches-{member.number}-{other.number}-{time.monotonic_ns()}"
    c, w = Client([member.address]), Client([other.address])
    c.make(root)
    w.sync()
    if other.kind != "o":  # A Java leader may answer a sync before it has applied what it has committed.
        until(f"{root} at {other}", lambda: w.exists(root))
    w.get(root, watch=True), w.names(root, watch=True), w.exists(f"{root}/x", watch=True)
    c.set(root, b"1"), c.make(f"{root}/x", b"", ops.EPHEMERAL)
    for event in [(3, root), (1, f"{root}/x"), (4, root)]:
        w.wait_event(*event)
    w.exists(f"{root}/x", watch=True)
    c.close()
    w.wait_event(2, f"{root}/x")
    w.close()


def moves(members):
    """A session moves through all servers and keeps its ephemerals; its old connections can't write any more."""
    c, root = Client([members[0].address]), f"/moves-{time.monotonic_ns()}"
    c.make(root), c.make(f"{root}/mine", b"", ops.EPHEMERAL)
    seen = [c.id]
    for at, member in enumerate([*members[1:], members[0]]):
        left, c.socket = c.socket, None
        c.go_to(member.address)
        expect(c.make(f"{root}/at-{at}", b"", ops.EPHEMERAL)[0], 0, f"a moved session writes at {member}")
        expect(c.get(f"{root}/mine")[2][7], c.id, f"owner at {member}")
        seen.append(c.id)
        abandoned(c, left, root)
    expect(len(set(seen)), 1, "one session")
    c.close()
    for member in members:
        reader = Client([member.address])
        reader.sync(root)
        expect(reader.names(root), [], f"ephemerals of a closed session at {member}")
        reader.close()


def abandoned(c, left, root):
    """The session's previous connection must be closed, or its writes refused."""
    current, now = c.socket, (c.sent, c.received)
    (c.sent, c.received), c.socket = (1000, 1000), left  # Numbers that the session uses nowhere else.
    try:
        error = c.set(root, b"from the previous connection")
        assert error == ops.MOVED, f"a write on a moved session's old connection: {error}"
    except (ops.Lost, OSError):
        pass
    left.close()
    (c.sent, c.received), c.socket = now, current


def expiry(members):
    """At every server a session that only pings stays, and a session whose client is gone expires with its ephemerals."""
    root = f"/expiry-{time.monotonic_ns()}"
    keeper = Client([members[0].address])
    keeper.make(root)
    alive, dead = [Client([member.address], 2000) for member in members], []
    for member, c in zip(members, alive):
        expect(c.make(f"{root}/alive-{member.number}", b"", ops.EPHEMERAL)[0], 0, f"ephemeral at {member}")
        dead.append(Client([member.address], 1000))
        expect(dead[-1].make(f"{root}/dead-{member.number}", b"", ops.EPHEMERAL)[0], 0, f"ephemeral at {member}")
        dead[-1].socket.close()
    readers = [Client([member.address]) for member in members]

    def only_the_living():
        for c in [*alive, *readers, keeper]:
            c.ping()
        time.sleep(0.2)
        return all(sorted(reader.names(root)) == [f"alive-{member.number}" for member in members] for reader in readers)

    until("expiry of the abandoned sessions, and no others", only_the_living, 15)
    since = time.monotonic()
    while time.monotonic() - since < 3:
        assert only_the_living(), f"an idle session that pings expired: {[reader.names(root) for reader in readers]}"
    for c in [*alive, *readers, keeper]:
        c.close()


def blast(member, count, others=()):
    """Many pipelined writes through one server."""
    c, root, window = Client([member.address], 60_000), f"/blast-{member.number}-{time.monotonic_ns()}", 64
    expect(c.make(root, b"")[0], 0, f"create at {member}")
    for number in range(count + window):
        if number < count:
            if number % 4:
                c.send_set(root, b"%d" % number, -1)
            else:
                c.send_make(f"{root}/{number % 400}-", b"%d" % number, ops.SEQUENTIAL)
        if window <= number:
            expect(c.receive()[0], 0, f"one of many writes at {member}")
    wanted = count - len(range(0, count, 4))
    for other in [member, *others]:
        c.go_to(other.address)
        c.sync(root)
        _, data, stat = c.get(root)
        expect((stat[4], stat[9]), (wanted, count - wanted), f"{count} writes through {member}, seen at {other}")
    c.close()


def every_write(ensemble, count=400, apart=True):
    """Every kind of request through every member. `apart`: also test moving sessions. Impossible where observers connect to a
    follower, because the leader can't tell such observers apart."""
    members = ensemble.members
    for member in members:
        others = [other for other in members if other is not member]
        writes(member, others)
        for other in others:
            watches(member, other)
        blast(member, count, others)
    if apart:
        moves(members)
    expiry(members)
    alike(ensemble)


def alike(ensemble):
    """Checks that all servers show the same znodes with the same stats, and that none has counted a digest mismatch."""
    def once():
        trees, zxids = [], []
        for member in ensemble.members:
            c = Client([member.address], 60_000)
            c.auth("digest", SECRET)
            c.sync()
            trees.append(tree(c))
            _, data, stat = trees[-1].pop("/zookeeper/config"), *c.get("/zookeeper/config")[1:]
            if ensemble.same_view:
                trees[-1]["/zookeeper/config"] = data, stat[4:6], stat[7:]  # Each server creates this znode itself, at its own time.
            zxids.append(c.zxid)
            c.close()
        paths = sorted(set().union(*trees))
        differing = [path for path in paths if len({found.get(path) for found in trees}) > 1]
        return differing, trees

    deadline = time.monotonic() + SETTLE_SECONDS
    while (found := once())[0]:
        if deadline < time.monotonic():
            differing, trees = found
            shown = [f"{path}: {[found.get(path) for found in trees]}" for path in differing[:5]]
            raise Failed(f"{len(differing)} znodes differ between {ensemble.members}\n" + "\n".join(shown))
        time.sleep(0.5)
    before = mismatches(ensemble)
    write = Client(ensemble.addresses)
    for number in range(256):  # So many that they include a zxid for which servers keep a digest.
        expect(write.set("/", b"%d" % number), 0, "set")
    write.close()
    for member in ensemble.members:
        c = Client([member.address])
        c.sync()
        c.close()
    expect(mismatches(ensemble), before, "digest mismatches that each member has counted")
    # Java counts mismatches where nothing is wrong: after a SNAP from a Java leader, whose tree changes while it is sent, and
    # when it replays its log over such a snapshot.
    ours = {member: count for member, count in before.items() if member.kind == "o"}
    expect(ours, dict.fromkeys(ours, "0"), "digest mismatches that each member has counted")
    digests_agree(ensemble)
    return len(found[1][0])


def mismatches(ensemble):
    return {member: member.figures().get("zk_digest_mismatches_count", "?") for member in ensemble.members}


def digests_agree(ensemble):
    """Checks that digests are the same at the last zxid that all servers have in their answers to `hash`."""
    hashes = [dict(line.split(":", 1) for line in member.word("hash").splitlines()) for member in ensemble.members]
    shared = set.intersection(*(set(digests) for digests in hashes))
    assert shared, f"no digests to compare: {hashes}"
    last = max(shared, key=lambda zxid: int(zxid, 16))
    digests = {member: digests[last].strip() for member, digests in zip(ensemble.members, hashes)}
    assert len(set(digests.values())) == 1, f"digests at {last}: {digests}"
