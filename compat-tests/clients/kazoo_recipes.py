"""kazoo's recipes, one command each; see recipes.py. What is acquired is held until another command releases it or the process dies."""

import threading
import time

from kazoo.recipe.cache import TreeCache, TreeEvent

kept = {}  # Recipe objects that later commands need, by path.


def lead(client, path):
    """Returns once this client leads; it leads until the process dies."""
    leading = threading.Event()

    def rule():
        leading.set()
        threading.Event().wait()

    threading.Thread(target=client.Election(path).run, args=(rule,), daemon=True).start()
    leading.wait()


def watch_children(client, path, say):
    """Prints `event 3 PATH DATA` for each child that exists, is created or changes, and `event 2 PATH` for each that is deleted."""
    watched = set()

    def watch_data(child):
        def on_data(data, stat):
            if data is None:
                watched.discard(child)
                say("event", 2, child)
                return False
            say("event", 3, child, data.decode())

        client.DataWatch(child, on_data)

    def on_children(names):
        for child in [f"{path}/{name}" for name in names]:
            if child not in watched:
                watched.add(child)
                watch_data(child)

    client.ChildrenWatch(path, on_children)


def watch_tree(client, path, say):
    def on_change(event):
        if event.event_type in (TreeEvent.NODE_ADDED, TreeEvent.NODE_UPDATED):
            say("event", 3, event.event_data.path, event.event_data.data.decode())
        elif event.event_type == TreeEvent.NODE_REMOVED:
            say("event", 2, event.event_data.path)

    cache = kept[path] = TreeCache(client, path)
    cache.listen(on_change)
    cache.start()


def vote_of(client, path, site):
    """A site's vote; a site that died before it voted counts as no."""
    while True:
        changed = threading.Event()
        data, _ = client.get(f"{path}/sites/{site}", watch=lambda event: changed.set())
        alive = client.exists(f"{path}/alive/{site}", watch=lambda event: changed.set())
        if data or not alive:
            return data.decode() or "no"
        changed.wait()


def decide(client, path, count):
    """The second phase of a two-phase commit: commits if all sites voted yes, else aborts.

    The outcome is written once and never changes."""
    sites = client.get_children(f"{path}/sites")
    assert len(sites) == count, sites
    outcome = "commit" if all(vote_of(client, path, site) == "yes" for site in sites) else "abort"
    transaction = client.transaction()
    for site in sites:
        transaction.check(f"{path}/sites/{site}", client.exists(f"{path}/sites/{site}").version)
    transaction.create(f"{path}/outcome", outcome.encode())
    assert transaction.commit()[-1] == f"{path}/outcome"
    return outcome


def outcome(client, path):
    while True:
        changed = threading.Event()
        if client.exists(f"{path}/outcome", watch=lambda event: changed.set()):
            return client.get(f"{path}/outcome")[0].decode()
        changed.wait()


def answer(client, words, say):
    path = words[1]
    match words:
        case ["lock", _]:
            client.Lock(path).acquire()
        case ["read", _]:
            client.ReadLock(path).acquire()
        case ["write", _]:
            client.WriteLock(path).acquire()
        case ["semaphore", _, leases]:
            client.Semaphore(path, max_leases=int(leases)).acquire()
        case ["lead", _]:
            lead(client, path)
        case ["enter", _, count]:
            kept[path] = client.DoubleBarrier(path, int(count))
            kept[path].enter()
        case ["leave", _]:
            kept[path].leave()
        case ["block", _]:
            client.Barrier(path).create()
        case ["pass", _]:
            client.Barrier(path).wait()
        case ["open", _]:
            client.Barrier(path).remove()
        case ["join", _, name]:
            kept[path] = client.Party(path, name)
            kept[path].join()
        case ["await", _, members]:
            while ",".join(sorted(kept[path])) != members:
                time.sleep(0.02)
        case ["watch", _, kind]:
            {"children": watch_children, "tree": watch_tree}[kind](client, path, say)
        case ["put", _, item]:
            client.LockingQueue(path).put(item.encode())
        case ["take", _]:
            kept[path] = client.LockingQueue(path)
            return kept[path].get().decode()
        case ["done", _]:
            assert kept[path].consume(), "lost the item"
        case ["length", _]:
            return len(client.LockingQueue(path))
        case ["enlist", _, site]:
            client.create(f"{path}/sites/{site}", makepath=True)
            client.create(f"{path}/alive/{site}", ephemeral=True, makepath=True)
        case ["vote", _, site, vote]:
            client.set(f"{path}/sites/{site}", vote.encode())
        case ["decide", _, count]:
            return decide(client, path, int(count))
        case ["outcome", _]:
            return outcome(client, path)
        case _:
            raise ValueError(words)
    return ""
