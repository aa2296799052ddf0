"""Plain reads, each session by itself: never back in time, also from one server to the next; and what is read was written.

A session's answers have zxids that never go down, and it sees a znode's last change at a zxid that never goes down either.
All sessions that see a znode as of one change see the same data and version.
"""

from history import READS, Broken, Op, Round


def check(found):
    broken, count, by_change = [], 0, {}
    for client in sorted({op.client for op in found.ops}):
        highest, seen = None, {}
        for op in (op for op in found.ops if op.client == client):  # In the order in which it saw them.
            if op.kind in ("event", "session") or op.unsure:
                continue
            count += 1
            if highest is not None and 0 < op.zxid < highest.zxid:
                broken.append(Broken(f"{client} goes back from {highest.zxid:#x} to {op.zxid:#x}", [highest, op]))
            highest = op if highest is None or highest.zxid < op.zxid else highest
            if op.kind not in READS or not op.done:
                continue
            before = seen.get(op.path)
            if before is not None and op.mzxid < before.mzxid:
                broken.append(Broken(f"{client} sees {op.path} as it was before", [before, op]))
            if op.zxid < op.mzxid:
                broken.append(Broken(f"{client} sees a change later than what its answer is as of", [op]))
            seen[op.path] = op
            other = by_change.setdefault((op.path, op.mzxid), op)
            if (other.data, other.version) != (op.data, op.version):
                broken.append(Broken(f"{op.path} as of {op.mzxid:#x} is two things", [other, op]))
    return broken + from_nowhere(found) + finish(found, count)


def from_nowhere(found):
    """Values that nobody wrote before they were read, and own writes that were not seen."""
    writes, broken = {}, []
    for op in found.ops:
        if op.kind in ("set", "make") and (op.unsure or op.done):
            writes.setdefault((op.path, op.data), op)
    written = {path for path, _ in writes}
    for op in found.ops:
        if op.kind in READS and op.done and op.path in written and op.data:
            write = writes.get((op.path, op.data))
            if write is None or op.end < write.begin:
                broken.append(Broken(f"{op.path}: nobody had written {op.data!r}", [op, *([write] if write else [])]))
            elif write.done and write.zxid != op.mzxid:
                broken.append(Broken(f"{op.path}: written at {write.zxid:#x}, seen as of {op.mzxid:#x}", [write, op]))
    return broken


def finish(found, count):
    found.checked["answers in order"] = count
    return []


def read(begin, data, version, zxid, mzxid, client="p", **more):
    return Op(client, "read", "/x", begin, begin + 0.5, 0, data, version, zxid, mzxid, **more)


WRITE = Op("q", "set", "/x", 0, 1, 0, "1", -1, 5)
GOOD = [Round([WRITE, read(0, "1", 1, 5, 5), read(2, "1", 1, 9, 5, member=2), read(0.1, "1", 1, 7, 5, "r")])]
SPOILED = [
    ("another server is behind what was seen", Round([WRITE, read(0, "1", 1, 9, 5), read(2, "1", 1, 8, 5, member=2)])),
    ("an older change is seen again", Round([WRITE, read(0, "", 2, 9, 8), read(2, "1", 1, 9, 5)])),
    ("two sessions see two things", Round([read(0, "", 2, 9, 8), read(0, "", 3, 9, 8, "r")])),
    ("what nobody wrote", Round([WRITE, read(2, "7", 1, 5, 5)])),
    ("before it was written", Round([Op("q", "set", "/x", 3, 4, 0, "1", -1, 5), read(1, "1", 1, 5, 5)])),
    ("data of another change", Round([WRITE, read(2, "1", 1, 9, 8)])),
    ("newer than the answer", Round([read(2, "", 1, 5, 6)])),
]
