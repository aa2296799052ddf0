"""Durability: no acknowledged write is lost, and no znode exists that no client created.

`finals` maps the path of each znode that exists at the end to its czxid. It is the same at every member (`alike` checks that).
"""

from history import Broken, Op, Round


def check(found):
    dropped = {op.path for op in found.ops if op.kind == "drop" and (op.done or op.unsure)}
    made = [op for op in found.ops if op.kind == "make" and op.done and op.path not in dropped]
    lasting = [op for op in made if "/held-" not in op.path]
    broken = [Broken("an acknowledged create is lost", [op]) for op in lasting if op.path not in found.finals]
    broken += [Broken(f"created at {op.zxid:#x}, has czxid {found.finals[op.path]:#x}", [op])
               for op in lasting if op.path in found.finals and found.finals[op.path] != op.zxid]
    asked = {op.path for op in found.ops if op.kind == "make"}
    sequences = {}  # How many sequential creates without an answer there are, by their prefix.
    for op in found.ops:
        if op.kind == "make" and op.unsure and op.path.endswith("-"):
            sequences[op.path] = sequences.get(op.path, 0) + 1
    strangers = {}
    for path in found.finals:
        if path not in asked and not path.endswith("/ghost"):  # The check of sessions deals with that one.
            strangers.setdefault(path[:-10], []).append(path)
    for start, paths in strangers.items():
        if len(paths) > sequences.get(start, 0):
            broken.append(Broken(f"{len(paths)} znodes from {sequences.get(start, 0)} unanswered creates: {sorted(paths)}"))
    broken += twice(made)
    found.checked["znodes kept"] = len(lasting)
    return broken


def twice(made):
    """Two creates whose answers name the same znode: sequential ones, as no other path is created twice here."""
    seen, broken = {}, []
    for op in made:
        if (other := seen.setdefault((op.path, op.zxid), op)) is not op:
            broken.append(Broken("one znode for two creates", [other, op]))
    return broken


def make(path, zxid, error=0, client="p"):
    return Op(client, "make", path, 0, 1 if error is not None else float("inf"), error, "", -1, zxid)


GOOD = [Round([make("/q/n-0000000001", 5), make("/q/n-", 0, None), make("/q/held-1", 4), make("/q/x", 6)],
              finals={"/q/n-0000000001": 5, "/q/n-0000000002": 8, "/q/x": 6})]
SPOILED = [
    ("lost", Round([make("/q/n-0000000001", 5)], finals={})),
    ("lost, and created again", Round([make("/q/x", 5)], finals={"/q/x": 7})),
    ("applied twice", Round([make("/q/n-", 0, None)], finals={"/q/n-0000000001": 5, "/q/n-0000000002": 6})),
    ("never created", Round([], finals={"/q/n-0000000001": 5})),
    ("one znode for two creates", Round([make("/q/n-0000000001", 5), make("/q/n-0000000001", 5, client="q")],
                                        finals={"/q/n-0000000001": 5})),
]
