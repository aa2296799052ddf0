"""Linearizability of writes, reads after a sync and reads after a write, for each znode: some order explains every answer.

Two kinds of `sync` guarantee less, and their reads are left out when a history can't be explained otherwise: those of a Java
leader, which answers its own clients' syncs before it has applied what it has acknowledged; and those of a leader that is
partitioned, or was stopped, and does not know yet that it was replaced. The rest must still be linearizable.
"""

from history import READS, WRITES, Broken, Op, Round
from linear import Undecided, explained, smallest

STRICT = (*WRITES, "sync-read", "fenced-read")
EVERY = (*WRITES, *READS)


# rows: P-49 Q-46
def check(found):
    broken, count, kinds = [], 0, EVERY if found.strict_reads else STRICT
    paths = {op.path for op in found.ops if op.kind in ("sync-read", "fenced-read")}
    for path in sorted(paths):
        ops = [op for op in found.ops if op.path == path and op.kind in kinds and not (op.unsure and op.kind in READS)]
        count += len(ops)
        try:
            if explained(ops) is None:
                continue
            lenient = [op for op in ops if not may_be_behind(op, found)]
            if len(lenient) < len(ops) and explained(lenient) is None:
                found.notes.append(f"{path}: a read after a sync was stale")
                continue
            few = smallest(lenient)
            broken.append(Broken(f"{path}: no order explains these {len(few)} of {len(lenient)} calls", few))
        except Undecided as error:
            broken.append(Broken(f"{path}: undecided: {error}"))
    found.checked["calls ordered"] = count
    return broken


def may_be_behind(op, found):
    """Whether this is a read after one of the two weaker kinds of sync."""
    if found.strict_reads:
        return False
    severed = any(op.member == member and begin <= op.end and op.begin <= end for member, begin, end in found.severed)
    return op.kind == "sync-read" and (severed or not found.strict_sync)


def call(kind, begin, end, error=0, data=None, version=-1, client="p", **more):
    return Op(client, kind, "/x", begin, end, error, data, version, **more)


NEVER = float("inf")
MADE = call("make", 0, 1, data="1")
GOOD = [
    # Two conditional writes on one version, one of them refused; then reads, one of them during the writes.
    Round([MADE, call("set", 2, 6, data="2", version=0), call("set", 2, 5, -103, "3", 0, "q"),
           call("fenced-read", 1.5, 4, data="1", version=0, client="r"), call("sync-read", 7, 8, data="2", version=1)]),
    # An unanswered write that is applied much later, and one that never is.
    Round([MADE, call("set", 2, NEVER, None, "2", 0), call("set", 2, NEVER, None, "3", 0, "q"),
           call("fenced-read", 3, 4, data="1", version=0, client="r"), call("fenced-read", 5, 6, data="2", version=1, client="r")]),
    Round([MADE, call("drop", 2, 3), call("set", 4, 5, -101, "2"), call("make", 6, 7, data="3"),
           call("sync-read", 8, 9, data="3", version=0)]),
    # A stale read after Java's sync, and one after the sync of a partitioned leader.
    Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0)], strict_sync=False),
    Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0, member=2)],
          severed=[(2, 1, 9)]),
    # A plain read, which ZooKeeper allows to be stale.
    Round([MADE, call("set", 2, 3, data="2", version=0), call("read", 4, 5, data="1", version=0, client="r"),
           call("sync-read", 6, 7, data="2", version=1)]),
]
SPOILED = [
    ("an acknowledged write is lost",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("fenced-read", 4, 5, data="1", version=0, client="r")])),
    ("a read after a sync is stale",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0, client="r")])),
    ("two conditional writes on one version succeed",
     Round([MADE, call("set", 2, 6, data="2", version=0), call("set", 2, 5, data="3", version=0, client="q"),
            call("sync-read", 7, 8, data="3", version=1)])),
    ("a refused write is read",
     Round([MADE, call("set", 2, 3, -103, "2", 7), call("sync-read", 4, 5, data="2", version=1)])),
    ("an unanswered write is applied, and then undone",
     Round([MADE, call("set", 2, NEVER, None, "2", 0), call("fenced-read", 3, 4, data="2", version=1),
            call("fenced-read", 5, 6, data="1", version=0)])),
    ("a deleted znode is back",
     Round([MADE, call("drop", 2, 3), call("sync-read", 4, 5, data="1", version=0)])),
    ("a read after a write is stale at a partitioned leader",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("fenced-read", 4, 5, data="1", version=0, member=2)],
           severed=[(2, 1, 9)])),
    ("a plain read is stale where every read must be linearizable",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("read", 4, 5, data="1", version=0, client="r", member=2),
            call("sync-read", 6, 7, data="2", version=1)], severed=[(2, 1, 9)], strict_reads=True)),
    ("a read after a sync is stale where every read must be linearizable",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0, member=2)],
           severed=[(2, 1, 9)], strict_reads=True)),
]
