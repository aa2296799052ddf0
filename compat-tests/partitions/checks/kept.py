"""Nothing acknowledged is lost, and nothing is there that nobody asked for.

`finals` is path to czxid of all znodes of the round in the end, the same at every member (`alike` sees to that).
"""

from history import Broken, Op, Round


def check(found):
    dropped = {op.path for op in found.ops if op.kind == "drop" and (op.done or op.unsure)}
    made = [op for op in found.ops if op.kind == "make" and op.done and op.path not in dropped]
    lasting = [op for op in made if "/held-" not in op.path]
    broken = [Broken("acknowledged, and gone", [op]) for op in lasting if op.path not in found.finals]
    broken += [Broken(f"made at {op.zxid:#x}, there since {found.finals[op.path]:#x}", [op])
               for op in lasting if op.path in found.finals and found.finals[op.path] != op.zxid]
    asked = {op.path for op in found.ops if op.kind == "make"}
    sequences = {}  # Those without an answer, by what their names begin with.
    for op in found.ops:
        if op.kind == "make" and op.unsure and op.path.endswith("-"):
            sequences[op.path] = sequences.get(op.path, 0) + 1
    strangers = {}
    for path in found.finals:
        if path not in asked and not path.endswith("/ghost"):  # That one is for the check of sessions.
            strangers.setdefault(path[:-10], []).append(path)
    for start, paths in strangers.items():
        if len(paths) > sequences.get(start, 0):
            broken.append(Broken(f"{len(paths)} znodes from {sequences.get(start, 0)} calls without an answer: {sorted(paths)}"))
    broken += twice(made)
    found.checked["znodes kept"] = len(lasting)
    return broken


def twice(made):
    """Two calls that were told of the same znode: of a sequence, since nothing here makes others twice."""
    seen, broken = {}, []
    for op in made:
        if (other := seen.setdefault((op.path, op.zxid), op)) is not op:
            broken.append(Broken("one znode for two calls", [other, op]))
    return broken


def make(path, zxid, error=0, client="p"):
    return Op(client, "make", path, 0, 1 if error is not None else float("inf"), error, "", -1, zxid)


GOOD = [Round([make("/q/n-0000000001", 5), make("/q/n-", 0, None), make("/q/held-1", 4), make("/q/x", 6)],
              finals={"/q/n-0000000001": 5, "/q/n-0000000002": 8, "/q/x": 6})]
SPOILED = [
    ("lost", Round([make("/q/n-0000000001", 5)], finals={})),
    ("lost, and made again by somebody", Round([make("/q/x", 5)], finals={"/q/x": 7})),
    ("done twice", Round([make("/q/n-", 0, None)], finals={"/q/n-0000000001": 5, "/q/n-0000000002": 6})),
    ("from nowhere", Round([], finals={"/q/n-0000000001": 5})),
    ("one number for two", Round([make("/q/n-0000000001", 5), make("/q/n-0000000001", 5, client="q")],
                                 finals={"/q/n-0000000001": 5})),
]
