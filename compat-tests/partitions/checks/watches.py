"""Watches: an event comes before any answer that could show the change, and none is lost while its session exists.

Every answer has a zxid. If a watch was set at one zxid, and an acknowledged change of the watched znode has a higher one, the event
comes before the first answer with the change's zxid or a higher one. Each watcher's last answer follows a sync, so that the check
covers all changes.
"""

import bisect

from history import NO_NODE, Broken, Op, Round


# rows: P-33 P-58 P-75
def check(found):
    changes, broken, watched = changes_of(found), [], 0
    for client in sorted({op.client for op in found.ops if op.watch}):
        left = {}  # Maps (path, what) to the read that set the watch.
        for op in (op for op in found.ops if op.client == client and not op.unsure):
            if op.kind == "session" and op.data.startswith(("expired", "closed")):
                break
            if op.kind == "event":
                for what in {4: ["children"], 2: ["data", "children"]}.get(op.version, ["data"]):
                    left.pop((op.path, what), None)
                continue
            for (path, what), read in list(left.items()):
                if read.error == NO_NODE and read.line != op.line:
                    del left[path, what]  # There is no event for a znode that was created and deleted while the client was disconnected.
                elif (change := between(changes.get((path, what), []), read.zxid, op.zxid)) is not None:
                    broken.append(Broken(f"{client} got no event for {path} before an answer with a later zxid", [read, change, op]))
                    del left[path, what]
            if op.watch:
                left[op.path, op.watch] = op
                watched += 1
    found.checked["watches"] = watched
    return broken


def changes_of(found):
    """Acknowledged changes in the order of zxids, by path and kind of watch."""
    changes = {}
    for op in sorted((op for op in found.ops if op.kind in ("set", "make", "drop") and op.done), key=lambda op: op.zxid):
        changes.setdefault((op.path, "data"), []).append(op)
        if op.kind != "set":
            changes.setdefault((op.path.rpartition("/")[0] or "/", "children"), []).append(op)
    return changes


def between(changes, above, up_to):
    at = bisect.bisect_right(changes, above, key=lambda op: op.zxid)
    return changes[at] if at < len(changes) and changes[at].zxid <= up_to else None


WRITE = Op("q", "set", "/x", 2, 3, 0, "1", -1, 5)
CHILD = Op("q", "make", "/x/y", 2, 3, 0, "1", -1, 5)
TOLD = Op("p", "event", "/x", 4, 4, 0, None, 3)


def read(begin, zxid, watch="", path="/x"):
    return Op("p", "read", path, begin, begin + 0.5, 0, "", 1, zxid, 1, watch=watch)


GOOD = [
    Round([WRITE, read(0, 4, "data"), TOLD, read(5, 5)]),
    Round([WRITE, read(0, 5, "data"), read(5, 5)]),
    Round([CHILD, read(0, 4, "children"), Op("p", "event", "/x", 4, 4, 0, None, 4), read(5, 9)]),
]
SPOILED = [
    ("an answer with the change before the event", Round([WRITE, read(0, 4, "data"), read(3.5, 5), TOLD])),
    ("no event at all", Round([WRITE, read(0, 4, "data"), read(9, 7, path="/other")])),
    ("an event of another kind", Round([CHILD, read(0, 4, "children"), TOLD, read(9, 9)])),
    ("one event for two watches", Round([WRITE, read(0, 4, "data"), TOLD, read(4.5, 5, "data"),
                                        Op("q", "set", "/x", 6, 7, 0, "2", -1, 6), read(9, 6)])),
]
