"""kazoo, driven by commands on stdin. `class Worker` in workers.py describes them."""

import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError, RolledBackError, ZookeeperError
from kazoo.protocol.states import EventType, KazooState
from kazoo.retry import KazooRetry

import kazoo_recipes

NUMBERS = {EventType.CREATED: 1, EventType.DELETED: 2, EventType.CHANGED: 3, EventType.CHILD: 4}
talk = threading.Lock()
client = None


def say(*words):
    with talk:
        print(*words, flush=True)


def on_event(event):
    if event.type in NUMBERS:
        say("event", NUMBERS[event.type], event.path)


def on_state(state):
    # Runs on the thread that reads the socket: it must not call the client.
    say("state", "SyncConnected" if state == KazooState.CONNECTED else "Disconnected")


def connected(address, timeout_ms=6000):
    # Short retries without backoff: kazoo's default backs off until sessions expire on servers with a short tickTime.
    retry = KazooRetry(max_tries=-1, delay=0.1, backoff=1, max_delay=0.5)
    return KazooClient(address, timeout=timeout_ms / 1000, connection_retry=retry)


def lock(address):
    """One of two sessions holds the lock; the other gets it when the holder's session ends."""
    first, second = connected(address), connected(address)
    first.start(), second.start()
    assert first.Lock("/recipe/lock", "first").acquire(timeout=20)
    waiting = second.Lock("/recipe/lock", "second")
    assert not waiting.acquire(blocking=False), "two sessions hold the lock"
    assert second.Lock("/recipe/lock").contenders() == ["first"]
    first.stop()
    assert waiting.acquire(timeout=20)
    waiting.release()
    second.stop()


def election(address):
    """Every candidate leads once, and no two lead at a time."""
    clients = [connected(address) for _ in range(3)]
    led, leading = [], threading.Semaphore(1)

    def lead(name):
        assert leading.acquire(blocking=False), "two leaders"
        led.append(name)
        leading.release()

    for member in clients:
        member.start()
    runs = [threading.Thread(target=member.Election("/recipe/election", str(n)).run, args=(lead, n))
            for n, member in enumerate(clients)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(30)
    assert sorted(led) == [0, 1, 2], led
    for member in clients:
        member.stop()


def counter(address):
    """Increments by compare-and-set from several sessions; no increment is lost."""
    clients = [connected(address) for _ in range(3)]

    def add(member):
        count = member.Counter("/recipe/counter")
        for _ in range(10):
            count += 1

    for member in clients:
        member.start()
    runs = [threading.Thread(target=add, args=(member,)) for member in clients]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert clients[0].Counter("/recipe/counter").value == 30
    for member in clients:
        member.stop()


def answer(words):
    global client
    match words:
        case ["connect", address, timeout_ms]:
            client = connected(address, int(timeout_ms))
            client.add_listener(on_state)
            client.start_async()
            return ""
        case ["session"]:
            return f"{client.client_id[0]:x}"
        case ["password"]:
            return client.client_id[1].hex()
        case ["create", mode, path, data]:
            flags = int(mode)
            return client.create(path, data.encode(), ephemeral=flags & 1 == 1, sequence=flags & 2 == 2)
        case ["get", path]:
            data, stat = client.get(path, watch=on_event)
            return f"{data.decode()} {stat.version} {stat.ephemeralOwner:x}"
        case ["exists", path]:
            if client.exists(path, watch=on_event) is None:
                raise NoNodeError
            return ""
        case ["set", path, data, version]:
            return client.set(path, data.encode(), int(version)).version
        case ["children", path]:
            return ",".join(sorted(client.get_children(path, watch=on_event)))
        case ["delete", path, version]:
            client.delete(path, int(version))
            return ""
        case ["multi", path, version]:
            transaction = client.transaction()
            transaction.check(path, int(version))
            transaction.set_data(path, b"multi")
            transaction.create(path + "/m")
            transaction.delete(path + "/m")
            for result in transaction.commit():
                if isinstance(result, ZookeeperError) and not isinstance(result, RolledBackError):
                    raise result
            return ""
        case ["close"]:
            client.stop()
            client.close()
            return ""
        case ["recipe", name, address]:
            {"lock": lock, "election": election, "counter": counter}[name](address)
            return ""
    return kazoo_recipes.answer(client, words, say)


for line in sys.stdin:
    try:
        say("ok", answer(line.rstrip("\n").split(" ")))
    except ZookeeperError as error:
        say("error", error.code)
    except Exception as error:  # Any other failure of a recipe is its result.
        say("error", repr(error))
