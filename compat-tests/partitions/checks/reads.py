"""Plain reads of each session never go back in time, also when it moves between servers; and every value read was written.

The zxids in a session's answers never decrease, nor do the mzxids that it reads of a znode.
All sessions that read a znode with the same mzxid read the same data and version.
"""

from history import READS, Broken, Op, Round


def check(found):
    broken, count, by_change = [], 0, {}
    for client in sorted({op.client for op in found.ops}):
        highest, seen = None, {}
        for op in (op for op in found.ops if op.client == client):  # In the order in which the client received the answers.
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
                broken.append(Broken(f"{client} reads an older state of {op.path}", [before, op]))
            if op.zxid < op.mzxid:
                broken.append(Broken(f"{client} reads a mzxid above the zxid of the answer", [op]))
            seen[op.path] = op
            other = by_change.setdefault((op.path, op.mzxid), op)
            if (other.data, other.version) != (op.data, op.version):
                broken.append(Broken(f"{op.path} with mzxid {op.mzxid:#x} has two values", [other, op]))
    return broken + from_nowhere(found) + finish(found, count)


def from_nowhere(found):
    """Values that no client wrote before they were read, and values read with a mzxid other than the write's."""
    writes, broken = {}, []
    for op in found.ops:
        if op.kind in ("set", "make") and (op.unsure or op.done):
            writes.setdefault((op.path, op.data), op)
    written = {path for path, _ in writes}
    for op in found.ops:
        if op.kind in READS and op.done and op.path in written and op.data:
            write = writes.get((op.path, op.data))
            if write is None or op.end < write.begin:
                broken.append(Broken(f"{op.path}: {op.data!r} was not written before", [op, *([write] if write else [])]))
            elif write.done and write.zxid != op.mzxid:
                broken.append(Broken(f"{op.path}: written at {write.zxid:#x}, read with mzxid {op.mzxid:#x}", [write, op]))
    return broken


def finish(found, count):
    found.checked["answers in order"] = count
    return []


def read(begin, data, version, zxid, mzxid, client="p", **more):
    return Op(client, "read", "/x", begin, begin + 0.5, 0, data, version, zxid, mzxid, **more)


WRITE = Op("q", "set", "/x", 0, 1, 0, "1", -1, 5)
GOOD = [Round([WRITE, read(0, "1", 1, 5, 5), read(2, "1", 1, 9, 5, member=2), read(0.1, "1", 1, 7, 5, "r")])]
SPOILED = [
    ("another server answers with a lower zxid", Round([WRITE, read(0, "1", 1, 9, 5), read(2, "1", 1, 8, 5, member=2)])),
    ("an older state is read again", Round([WRITE, read(0, "", 2, 9, 8), read(2, "1", 1, 9, 5)])),
    ("two sessions read two values", Round([read(0, "", 2, 9, 8), read(0, "", 3, 9, 8, "r")])),
    ("a value that was never written", Round([WRITE, read(2, "7", 1, 5, 5)])),
    ("a value before it was written", Round([Op("q", "set", "/x", 3, 4, 0, "1", -1, 5), read(1, "1", 1, 5, 5)])),
    ("data with another write's mzxid", Round([WRITE, read(2, "1", 1, 9, 8)])),
    ("a mzxid above the answer's zxid", Round([read(2, "", 1, 5, 6)])),
]
