"""The scenarios that every client runs, in the commands of `class Worker`."""

import signal
import time

from workers import (BAD_VERSION, CHANGED, CHILD, CONNECTION_LOSS, CREATED, DELETED, EPHEMERAL, NO_CHILDREN, NO_NODE,
                     NODE_EXISTS, NOT_EMPTY, SEQUENTIAL, Refused, wait)


def equal(found, expected):
    assert found == expected, f"{found!r}, expected {expected!r}"


def refused(code, call, *arguments):
    try:
        answer = call(*arguments)
    except Refused as error:
        equal(error.code, code)
    else:
        raise AssertionError(f"{arguments} -> {answer!r}, expected error {code}")


def patiently(call, *arguments):
    """A read that is retried on connection loss, as clients do."""
    while True:
        try:
            return call(*arguments)
        except Refused as error:
            if error.code != CONNECTION_LOSS:
                raise
            time.sleep(0.1)


def work(new, other, server):
    """Nodes of each create mode, versions, and the errors that programs rely on."""
    a = new()
    equal(a.create("/work"), "/work")
    equal(a.get("/work"), ("new", 0, 0))
    refused(NODE_EXISTS, a.create, "/work")
    refused(NO_NODE, a.get, "/work/none")
    refused(NO_NODE, a.create, "/work/none/below")
    equal(a.set("/work", "one"), 1)
    if a.versions:
        equal(a.set("/work", "two", 1), 2)
        refused(BAD_VERSION, a.set, "/work", "three", 1)
        refused(BAD_VERSION, a.delete, "/work", 1)
        equal(a.get("/work"), ("two", 2, 0))
    equal(a.create("/work/e", EPHEMERAL), "/work/e")
    equal(a.get("/work/e"), ("new", 0, a.session))
    refused(NO_CHILDREN, a.create, "/work/e/below")
    equal(a.create("/work/s-", SEQUENTIAL), "/work/s-0000000001")
    equal(a.create("/work/s-", SEQUENTIAL | EPHEMERAL), "/work/s-0000000002")
    equal(a.children("/work"), ["e", "s-0000000001", "s-0000000002"])
    refused(NOT_EMPTY, a.delete, "/work")
    for name in a.children("/work"):
        a.delete(f"/work/{name}")
    a.delete("/work")
    equal(a.exists("/work"), False)
    a.close()


def multi(new, other, server):
    """A multi is applied as a whole or not at all; its error is that of the first operation that fails."""
    a = new()
    a.create("/multi")
    a.set("/multi", "one")  # node-zookeeper-client treats version 0 as "any version".
    a.multi("/multi", 1)
    equal(a.get("/multi"), ("multi", 2, 0))
    refused(BAD_VERSION, a.multi, "/multi", 1)
    equal(a.get("/multi"), ("multi", 2, 0))
    a.create("/multi/m")
    refused(NODE_EXISTS, a.multi, "/multi", 2)
    equal(a.get("/multi"), ("multi", 2, 0))
    a.close()


def watches(new, other, server):
    """Each kind of watch fires once, for a change by another client."""
    a, b = new(), other()
    a.create("/watch")
    a.get("/watch")
    a.children("/watch")
    a.exists("/watch/later")
    b.create("/watch/later")
    a.expect(CREATED, "/watch/later")
    a.expect(CHILD, "/watch")
    b.set("/watch", "changed")
    a.expect(CHANGED, "/watch")
    equal(a.get("/watch"), ("changed", 1, 0))
    b.set("/watch", "again")
    b.set("/watch", "unseen")  # The previous change has already fired the watch.
    a.expect(CHANGED, "/watch")
    a.exists("/watch/later")
    b.delete("/watch/later")
    a.expect(DELETED, "/watch/later")
    b.delete("/watch")
    a.create("/watch")
    a.get("/watch")
    b.delete("/watch")
    a.expect(DELETED, "/watch")  # This event is sent after all earlier ones, so an extra event would have arrived by now.
    equal(a.events, [])
    a.close(), b.close()


def closing(new, other, server):
    """The ephemerals of a session are deleted when it is closed."""
    a, b = new(), other()
    a.create("/closing", EPHEMERAL)
    equal(b.get("/closing"), ("new", 0, a.session))
    a.close()
    b.expect(DELETED, "/closing")
    equal(b.exists("/closing"), False)
    b.close()


def expiry(new, other, server):
    """The ephemerals of a session are deleted when it expires after its client has died."""
    a, b = new(timeout_ms=2000), other()
    a.create("/expiry", EPHEMERAL)
    equal(b.exists("/expiry"), True)
    a.kill()
    b.expect(DELETED, "/expiry")
    equal(b.exists("/expiry"), False)
    b.close()


# rows: T-62
def restart(new, other, server, how):
    """Session, ephemerals and watches survive a restart of the server."""
    a, b = new(), other()
    root = f"/restart-{how.name}"
    a.create(root)
    a.create(root + "/e", EPHEMERAL)
    a.get(root)
    a.exists(root + "/later")
    b.create(root + "/gone", EPHEMERAL)
    b.close()
    session, connects = a.session, a.connects
    server.end(how)
    server.start()
    wait("the client to reconnect", lambda: connects < a.connects)
    if not a.rewatches:
        patiently(a.get, root)
        patiently(a.exists, root + "/later")
    equal(patiently(a.get, root + "/e"), ("new", 0, session))
    equal(a.current_session(), session)
    b = other()
    equal(b.children(root), ["e"])
    b.set(root, "after")
    a.expect(CHANGED, root)
    b.create(root + "/later")
    a.expect(CREATED, root + "/later")
    equal(a.get(root), ("after", 1, 0))
    equal(b.exists(root + "/e"), True)
    a.close()
    b.expect(DELETED, root + "/e")
    b.close()


def restart_term(new, other, server):
    restart(new, other, server, signal.SIGTERM)


def restart_kill(new, other, server):
    restart(new, other, server, signal.SIGKILL)


def java_random_bytes(seed, count):
    """The bytes that `new java.util.Random(seed).nextBytes` gives."""
    state, out = (seed ^ 0x5DEECE66D) & (1 << 48) - 1, b""
    while len(out) < count:
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        out += (state >> 16).to_bytes(4, "little")
    return out[:count]


# rows: P-16
def password(new, other, server):
    """A session's password is the one that every Java server of an ensemble computes from the session id."""
    for _ in range(5):
        a = new()
        equal(a.ask("password"), java_random_bytes(a.session ^ 0xB3415C00, 16).hex())
        a.close()
    assert java_random_bytes(1 ^ 0xB3415C00, 16).hex() == "054cc74a37327db215e702e20c73f005"  # golden/passwords.txt


def kazoo_recipe(name):
    """A recipe that kazoo_work.py runs alone, with several sessions of its own."""
    def run(new, other, server):
        a = new()
        a.ask("recipe", name, server.address)
        a.close()

    run.__name__ = name
    return run


BASIC = [work, multi, watches, closing]
DEATH = [expiry, restart_term, restart_kill]
