"""Writes, reads behind a sync and reads behind a write, each znode by itself: some order explains every answer.

Two kinds of `sync` promise less than that, and are left out when nothing else explains a history: of a Java leader, which
answers its own clients' syncs before it has applied what it has acknowledged; and of a leader that is cut off, or was
stopped, and has not heard yet that there is another one. What is left must still be linearizable.
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
                found.notes.append(f"{path}: a read behind a sync was behind")
                continue
            few = smallest(lenient)
            broken.append(Broken(f"{path}: no order explains these {len(few)} of {len(lenient)} calls", few))
        except Undecided as error:
            broken.append(Broken(f"{path}: undecided: {error}"))
    found.checked["calls ordered"] = count
    return broken


def may_be_behind(op, found):
    """Whether this is a read whose sync promises little."""
    if found.strict_reads:
        return False
    severed = any(op.member == member and begin <= op.end and op.begin <= end for member, begin, end in found.severed)
    return op.kind == "sync-read" and (severed or not found.strict_sync)


def call(kind, begin, end, error=0, data=None, version=-1, client="p", **more):
    return Op(client, kind, "/x", begin, end, error, data, version, **more)


NEVER = float("inf")
MADE = call("make", 0, 1, data="1")
GOOD = [
    # Two writers on one version, one of them refused; then reads, one of them early.
    Round([MADE, call("set", 2, 6, data="2", version=0), call("set", 2, 5, -103, "3", 0, "q"),
           call("fenced-read", 1.5, 4, data="1", version=0, client="r"), call("sync-read", 7, 8, data="2", version=1)]),
    # A write without an answer that is done much later, and one that never is.
    Round([MADE, call("set", 2, NEVER, None, "2", 0), call("set", 2, NEVER, None, "3", 0, "q"),
           call("fenced-read", 3, 4, data="1", version=0, client="r"), call("fenced-read", 5, 6, data="2", version=1, client="r")]),
    Round([MADE, call("drop", 2, 3), call("set", 4, 5, -101, "2"), call("make", 6, 7, data="3"),
           call("sync-read", 8, 9, data="3", version=0)]),
    # Java's sync, and that of a leader that was cut off.
    Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0)], strict_sync=False),
    Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0, member=2)],
          severed=[(2, 1, 9)]),
    # A read as ZooKeeper promises it.
    Round([MADE, call("set", 2, 3, data="2", version=0), call("read", 4, 5, data="1", version=0, client="r"),
           call("sync-read", 6, 7, data="2", version=1)]),
]
SPOILED = [
    ("a write that was acknowledged is gone",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("fenced-read", 4, 5, data="1", version=0, client="r")])),
    ("a read behind a sync is behind",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0, client="r")])),
    ("two writes on condition of one version are done",
     Round([MADE, call("set", 2, 6, data="2", version=0), call("set", 2, 5, data="3", version=0, client="q"),
            call("sync-read", 7, 8, data="3", version=1)])),
    ("a refused write is seen",
     Round([MADE, call("set", 2, 3, -103, "2", 7), call("sync-read", 4, 5, data="2", version=1)])),
    ("a write without an answer is done, and then undone",
     Round([MADE, call("set", 2, NEVER, None, "2", 0), call("fenced-read", 3, 4, data="2", version=1),
            call("fenced-read", 5, 6, data="1", version=0)])),
    ("a deleted znode is back",
     Round([MADE, call("drop", 2, 3), call("sync-read", 4, 5, data="1", version=0)])),
    ("a read behind a write is behind at a leader that was cut off",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("fenced-read", 4, 5, data="1", version=0, member=2)],
           severed=[(2, 1, 9)])),
    ("a read is behind where none may be",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("read", 4, 5, data="1", version=0, client="r", member=2),
            call("sync-read", 6, 7, data="2", version=1)], severed=[(2, 1, 9)], strict_reads=True)),
    ("a sync does not help either",
     Round([MADE, call("set", 2, 3, data="2", version=0), call("sync-read", 4, 5, data="1", version=0, member=2)],
           severed=[(2, 1, 9)], strict_reads=True)),
]
