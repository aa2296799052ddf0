"""Recipes built on ZooKeeper, with one of their clients killed in the middle.

The commands, in addition to those of `class Worker`. Those of the first two lines return once the lock, role or
barrier is acquired, or the item or group is there, which may be never:
`lock PATH`, `read PATH`, `write PATH`, `semaphore PATH LEASES`, `lead PATH`, `latch PATH`, `enter PATH COUNT`,
`leave PATH`, `take PATH`, `pass PATH`, `await PATH MEMBERS`, `protected PATH`;
`unlock PATH`, `block PATH`, `open PATH`, `join PATH NAME`, `watch PATH KIND`, `put PATH ITEM`, `own PATH DATA`, ...
"""

import time

from proxy import LosesReply
from scenarios import equal
from workers import CHANGED, CREATED, DELETED, EPHEMERAL, wait

SESSION_MS = 2000  # The killed client's timeout.


class Death:
    """Kills a client; what it held must stay its own until its session has expired.

    The server gets the client's last request after `heard`, so that nothing may be free before `heard` plus the timeout,
    however slow the machine is.
    """

    def __init__(self, client):
        self.heard = time.monotonic()
        client.exists("/")
        client.kill()

    def past(self):
        alive = time.monotonic() - self.heard
        assert SESSION_MS / 1000 <= alive, f"given away {alive:.3f} s after the holder's last request, before its session expired"


def named(name, run):
    run.__name__ = name
    return run


def holder(name, hold, want):
    """What a killed client held goes to the client that waits for it."""
    def run(new, other, server):
        a, b = new(timeout_ms=SESSION_MS), new()
        a.ask(*hold.split())
        b.send(want)
        death = Death(a)
        b.answer(want)
        death.past()
        b.close()

    return named(name, run)


def double_barrier(new, other, server):
    """No client enters before all have come, and none leaves while another that is alive is inside."""
    clients, o = [new(timeout_ms=SESSION_MS), new(timeout_ms=SESSION_MS)], other()
    clients[0].send("enter /doors 2")
    clients[1].ask("enter", "/doors", 2)
    clients[0].answer("enter")
    # The client with the first name waits for the last. In Curator the last, once it deleted its own node, may leave at any event.
    names = [name for name in o.children("/doors") if name != "ready"]
    owners = [o.get(f"/doors/{name}")[2] for name in names]
    equal(sorted(owners), sorted(client.session for client in clients))
    stays, dies = sorted(clients, key=lambda client: owners.index(client.session))
    stays.send("leave /doors")
    death = Death(dies)
    stays.answer("leave")
    death.past()
    stays.close(), o.close()


def barrier(new, other, server):
    """A barrier outlives the client that set it, and all waiting clients pass once it is removed."""
    a, b, c, o = new(timeout_ms=SESSION_MS), new(), new(), other()
    a.ask("block", "/barrier")
    a.create("/barrier-alive", EPHEMERAL)
    o.exists("/barrier-alive")
    b.send("pass /barrier")
    c.send("pass /barrier")
    death = Death(a)
    o.expect(DELETED, "/barrier-alive")
    death.past()
    assert b.answers.empty() and c.answers.empty(), "passed a barrier that is up"
    d = new()
    d.ask("open", "/barrier")
    b.answer("pass"), c.answer("pass")
    b.close(), c.close(), d.close(), o.close()


def group(new, other, server):
    """A client is a member of the group until its session expires."""
    a, b = new(timeout_ms=SESSION_MS), new()
    a.ask("join", "/group", "a")
    b.ask("join", "/group", "b")
    b.ask("await", "/group", "a,b")
    death = Death(a)
    b.ask("await", "/group", "b")
    death.past()
    b.close()


def configuration(kind):
    """A client that watches a configuration gets each change in order, and an event when the writer's session expires."""
    def run(new, other, server):
        a, b, o = new(timeout_ms=SESSION_MS), new(), other()
        root = f"/config-{kind}"
        o.create(root)
        b.ask("watch", root, kind)
        a.create(f"{root}/x")
        b.expect(CHANGED, f"{root}/x new")
        for value in ("one", "two", "three"):
            a.set(f"{root}/x", value)
            b.expect(CHANGED, f"{root}/x {value}")
        a.create(f"{root}/writer", EPHEMERAL)
        b.expect(CHANGED, f"{root}/writer new")
        o.delete(f"{root}/x")
        b.expect(DELETED, f"{root}/x")
        death = Death(a)
        b.expect(DELETED, f"{root}/writer")
        death.past()
        b.close(), o.close()

    return named(f"config_{kind}", run)


def lost_reply(word):
    """A create whose reply is lost is found by its GUID after the reconnect: the node exists once, and the client knows its path."""
    def run(new, other, server):
        o = other()
        folder = f"/lost-{word}"
        o.create(folder)
        proxy = LosesReply(server, folder)
        a = new(address=proxy.address)
        found = a.ask(word, folder)
        equal(proxy.lost, 1)
        names = o.children(folder)
        equal(len(names), 1)
        assert found in ("", f"{folder}/{names[0]}"), (found, names)
        a.close(), o.close(), proxy.close()

    return named(f"lost_{word}", run)


def taken(new, other, server):
    """An item that a killed consumer had not finished goes to the next consumer; a finished item does not."""
    a, b = new(timeout_ms=SESSION_MS), new()
    for item in ("first", "second"):
        a.ask("put", "/queue", item)
    equal(a.ask("take", "/queue"), "first")
    equal(b.ask("take", "/queue"), "second")
    b.ask("done", "/queue")
    b.send("take /queue")
    death = Death(a)
    equal(b.answer("take"), "first")
    death.past()
    b.ask("done", "/queue")
    equal(b.ask("length", "/queue"), "0")
    b.close()


def consumed(kind):
    """As `taken`, for Curator's queues, whose consumers look for unlocked items when the next item comes."""
    def run(new, other, server):
        a, b, p, o = new(timeout_ms=SESSION_MS), new(), new(), other()
        path, suffix = f"/queue{kind}", kind
        p.ask(f"produce{suffix}", path, "-")
        p.ask(f"put{suffix}", path, "first", 5)
        a.ask(f"consume{suffix}", path, "hang")
        a.expect(CREATED, "first")
        a.create("/consumer-alive", EPHEMERAL)
        o.exists("/consumer-alive")
        p.ask(f"put{suffix}", path, "second", 9)
        if kind:
            p.ask(f"put{suffix}", path, "urgent", 1)
        b.ask(f"consume{suffix}", path, "done")
        expected = ["urgent", "second"] if kind else ["second"]
        wait("other items", lambda: len(b.events) >= len(expected))
        equal(b.events, [(CREATED, item) for item in expected])
        death = Death(a)
        o.expect(DELETED, "/consumer-alive")
        death.past()
        p.ask(f"put{suffix}", path, "third", 7)
        expected += ["first", "third"]
        wait("the killed consumer's item", lambda: len(b.events) >= len(expected))
        equal(b.events, [(CREATED, item) for item in expected])
        b.close(), p.close(), o.close()

    return named(f"queue{kind.replace('-', '_')}", run)


def own(new, other, server):
    """A persistent ephemeral node is created again when another client deletes it, until its owner dies."""
    a, o = new(timeout_ms=SESSION_MS), other()
    a.ask("own", "/own", "mine")
    equal(o.get("/own")[:2], ("mine", 0))
    o.exists("/own")
    o.delete("/own")
    o.expect(DELETED, "/own")
    wait("the node to be created again", lambda: o.exists("/own"))
    equal(o.get("/own")[0], "mine")
    death = Death(a)
    o.expect(DELETED, "/own")
    death.past()
    o.close()


def touch(new, other, server):
    """A container stays while its TTL child is touched, and is removed by the server afterwards."""
    a, o = new(timeout_ms=SESSION_MS), other()
    a.ask("touch", "/touch", 1500)
    wait("the third touch", lambda: o.exists("/touch/touch") and o.get("/touch/touch")[1] >= 2)
    o.exists("/touch")
    a.kill()
    o.expect(DELETED, "/touch")
    o.close()


def revocable(new, other, server):
    """A lock's owner releases it when it is revoked; an owner that is killed instead loses it when its session expires."""
    a, b = new(timeout_ms=SESSION_MS), new(timeout_ms=SESSION_MS)
    a.ask("revocable", "/revocable")
    b.ask("revoke", "/revocable")
    a.expect(CHANGED, "revoke")
    a.ask("unlock", "/revocable")
    b.ask("revocable", "/revocable")
    a.ask("revoke", "/revocable")
    b.expect(CHANGED, "revoke")
    a.send("lock /revocable")
    death = Death(b)
    a.answer("lock")
    death.past()
    a.close()


def two_phase_commit(new, other, server):
    """All sites vote yes: commit. A site votes no, or dies before it votes: abort. The coordinator dies: the next one decides."""
    c, d, sites = new(timeout_ms=SESSION_MS), new(), [new(), new()]
    for path, votes, outcome in (("/tx/1", "yes yes", "commit"), ("/tx/2", "yes no", "abort")):
        for n, (site, vote) in enumerate(zip(sites, votes.split())):
            site.ask("enlist", path, n)
            site.ask("vote", path, n, vote)
        equal(c.ask("decide", path, 2), outcome)
        for site in sites:
            equal(site.ask("outcome", path), outcome)
    dying = new(timeout_ms=SESSION_MS)
    dying.ask("enlist", "/tx/3", "dying")
    sites[0].ask("enlist", "/tx/3", 0)
    sites[0].ask("vote", "/tx/3", 0, "yes")
    c.send("decide /tx/3 2")
    sites[0].send("outcome /tx/3")
    death = Death(dying)
    equal(c.answer("decide"), "abort")
    equal(sites[0].answer("outcome"), "abort")
    death.past()
    c.ask("lead", "/tx/coordinator")
    for n, site in enumerate(sites):
        site.ask("enlist", "/tx/4", n)
        site.ask("vote", "/tx/4", n, "yes")
        site.send("outcome /tx/4")
    d.send("lead /tx/coordinator")
    death = Death(c)
    d.answer("lead")
    death.past()
    equal(d.ask("decide", "/tx/4", 2), "commit")
    for site in sites:
        equal(site.answer("outcome"), "commit")
        site.close()
    d.close()


LOCK = holder("lock_killed", "lock /lock", "lock /lock")
SHARED = [holder("reader_killed", "read /shared", "write /shared"), holder("writer_killed", "write /shared", "read /shared")]
LEAD = holder("leader_killed", "lead /lead", "lead /lead")
SEMAPHORE = holder("semaphore", "semaphore /semaphore 1", "semaphore /semaphore 1")
CURATOR = [LOCK, *SHARED, LEAD, holder("latch_killed", "latch /latch", "latch /latch"), SEMAPHORE, double_barrier, group,
           configuration("children"), configuration("tree"), configuration("recursive"), consumed(""),
           lost_reply("protected"), lost_reply("lock"), own]
CURATOR_LONG = [barrier, consumed("-by-priority"), touch, revocable]
KAZOO = [LOCK, *SHARED, LEAD, SEMAPHORE, double_barrier, group, configuration("children"), configuration("tree"), taken,
         lost_reply("lock")]
KAZOO_LONG = [barrier, two_phase_commit]
