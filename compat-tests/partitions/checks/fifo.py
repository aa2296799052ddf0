"""The FIFO order of each client: its requests are carried out in the order sent; and all writes in an order that fits the clock.

  - zxids of a session's writes grow in the order sent, over all its connections;
  - a write that was outstanding when a connection ended was applied only if all earlier ones were (those that `finals` can show);
  - it was not applied after a write that the session sent on its next connection;
  - a read after a client's own writes sees the last of them;
  - a write that begins after another one was acknowledged has the higher zxid, also between clients.
"""

from history import READS, Broken, Op, Round


# rows: P-83
def check(found):
    broken = []
    changed = [op for op in found.ops if op.kind in ("set", "make", "drop") and op.done]
    for client in sorted({op.client for op in found.ops}):
        mine = [op for op in found.ops if op.client == client and op.kind not in ("event", "session")]
        broken += sent_order(mine) + whole_beginning(mine, found.finals) + own_writes(mine)
    broken += clock_order(changed)
    found.checked["writes in order"] = len(changed)
    return broken


def sent_order(mine):
    writes = [op for op in mine if op.kind in ("set", "make", "drop") and op.done]
    return [Broken("sent later, applied earlier", [one, other]) for one, other in zip(writes, writes[1:]) if other.zxid <= one.zxid]


def whole_beginning(mine, finals):
    """A prefix of the writes outstanding together was applied, in order. `finals`: path to czxid."""
    broken, batches = [], {}
    for op in mine:
        if op.batch and op.kind == "make":
            batches.setdefault(op.batch, []).append(op)
    first_writes = {}  # The first write of each connection; a read's answer may have a lower zxid than what is committed already.
    for op in mine:
        if op.kind in ("set", "make") and op.done:
            first_writes.setdefault(op.line, op)
    for ops in batches.values():
        there = [op.done or op.path in finals for op in ops]
        if any(not one and other for one, other in zip(there, there[1:])):
            broken.append(Broken("of writes outstanding together a later one was applied, an earlier one not", ops))
        places = [finals[op.path] for op in ops if op.path in finals]
        if places != sorted(places):
            broken.append(Broken("writes outstanding together were applied in another order", ops))
        for op in ops:
            later = next((first_writes[line] for line in sorted(first_writes) if line > op.line), None)
            if op.unsure and later and op.path in finals and finals[op.path] > later.zxid:
                broken.append(Broken(f"applied at {finals[op.path]:#x}, after a later write of its session", [op, later]))
    return broken


def own_writes(mine):
    broken, last = [], {}
    for op in mine:
        if op.kind == "set" and op.batch:
            last[op.path] = op
        elif op.kind in READS and op.batch and op.done and (write := last.get(op.path)) and write.done:
            if op.data != write.data:
                broken.append(Broken("a client does not see its own write", [write, op]))
    return broken


def clock_order(changed):
    """Compares every write with the highest zxid that was acknowledged before it began."""
    broken, ended, highest = [], sorted(changed, key=lambda op: op.end), None
    at = 0
    for op in sorted(changed, key=lambda op: op.begin):
        while ended[at].end < op.begin:
            highest = ended[at] if highest is None or highest.zxid < ended[at].zxid else highest
            at += 1
        if highest is not None and op.zxid <= highest.zxid:
            broken.append(Broken("a write that began later has the lower zxid", [highest, op]))
    return broken


def make(number, begin, error=0, zxid=0, line=1, batch=1, client="p"):
    end = begin + 1 if error is not None else float("inf")
    return Op(client, "make", f"/row/{number}", begin, end, error, zxid=zxid, line=line, batch=batch)


SET = Op("p", "set", "/own", 0, 1, 0, "1", -1, 5, line=1, batch=1)
STALE = Op("p", "read", "/own", 0, 1, 0, "0", 1, 5, 4, line=1, batch=1)
GOOD = [Round([make(1, 0, zxid=5), make(2, 0, None), make(3, 0, None), make(4, 5, zxid=9, line=2, batch=2)],
              finals={"/row/1": 5, "/row/2": 6, "/row/4": 9})]
SPOILED = [
    ("applied in another order", Round([make(1, 0, zxid=5), make(2, 0, zxid=4)])),
    ("a gap in what was applied", Round([make(1, 0, zxid=5), make(2, 0, None), make(3, 0, None)], finals={"/row/1": 5, "/row/3": 6})),
    ("unanswered writes swapped", Round([make(1, 0, None), make(2, 0, None)], finals={"/row/1": 6, "/row/2": 5})),
    ("a write of an earlier connection applied later",
     Round([make(1, 0, None), make(2, 5, zxid=8, line=2, batch=2)], finals={"/row/1": 9, "/row/2": 8})),
    ("a client does not see its own write", Round([SET, STALE])),
    ("zxids contradict the clock", Round([make(1, 0, zxid=5), make(2, 3, zxid=4, client="q")])),
]
