"""A session whose client keeps sending requests does not expire; its ephemerals exist exactly as long as the session.

The clients here connect to another server as soon as one is silent, and no fault here separates a majority from its clients
for as long as a session timeout. So every expiry is the servers' fault.
"""

from history import READS, Broken, Op, Round


# rows: P-18 P-21 Q-81
def check(found):
    broken, closed = [], set()
    for op in found.ops:
        if op.kind == "session" and op.data.startswith("expired"):
            mine = [other for other in found.ops if other.client == op.client]
            broken.append(Broken("a session expired", mine[max(0, mine.index(op) - 6):mine.index(op) + 1]))
        if op.kind == "session" and op.data.startswith("closed"):
            closed.add(op.client)
    held = {op.path: op for op in found.ops if op.kind == "make" and op.done and "/held-" in op.path}
    for op in found.ops:
        if op.kind in READS and op.path in held and not op.unsure and not op.done:
            broken.append(Broken("an ephemeral is gone while its session lives", [held[op.path], op]))
    for path, op in held.items():
        if path in found.finals and op.client in closed:
            broken.append(Broken("an ephemeral outlives its closed session", [op]))
    if ghosts := [path for path in found.finals if path.endswith("/ghost")]:
        broken.append(Broken(f"ephemerals of a session that should have expired: {ghosts}"))
    found.checked["sessions"] = sum(op.kind == "session" and op.data.startswith("opened") for op in found.ops)
    return broken


def session(what, begin):
    return Op("p", "session", "", begin, begin, 0, what)


HELD = Op("p", "make", "/r/held-p", 0, 1, 0, "", -1, 5)
GOOD = [Round([session("opened", 0), HELD, Op("p", "read", "/r/held-p", 2, 3, 0, "", 0, 5, 5), session("closed", 9)], finals={})]
SPOILED = [
    ("expired", Round([session("opened", 0), session("expired", 9)], finals={})),
    ("its ephemeral is gone", Round([HELD, Op("p", "read", "/r/held-p", 2, 3, -101, "", 0, 5)], finals={})),
    ("its ephemeral stays", Round([HELD, session("closed", 3)], finals={"/r/held-p": 5})),
    ("never expired", Round([], finals={"/r/ghost": 5})),
]
