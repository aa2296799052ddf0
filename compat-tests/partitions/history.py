"""What clients did and saw, one record for each call and each event, and how that is kept and shown."""

import dataclasses
import json
import math

NO_NODE, BAD_VERSION, EXISTS_ALREADY = -101, -103, -110
WRITES, READS = ("set", "make", "drop"), ("read", "sync-read", "fenced-read")
ERRORS = {NO_NODE: "no node", BAD_VERSION: "bad version", EXISTS_ALREADY: "exists"}
EVENTS = {1: "created", 2: "deleted", 3: "changed", 4: "children"}


@dataclasses.dataclass
class Op:
    """One call, from the moment before it was sent to the moment its reply was read; seconds of a monotonic clock.

    `error` is None when there was no reply: then it may or may not have happened, at any time after `begin`.
    Kinds: `set`, `make`, `drop` (writes of one znode); `read`; `sync-read` (sync, then read); `fenced-read` (a write
    elsewhere, then read); `list` (of children); `event`; and `session` (`data`: opened, moved, expired, closed).
    """

    client: str
    kind: str
    path: str = ""
    begin: float = 0.0
    end: float = math.inf
    error: int | None = None
    data: str | None = None  # Written or read; for `list` the names, with a blank between.
    version: int = -1  # A write's condition; what a read found; an event's type.
    zxid: int = 0  # Of the reply.
    mzxid: int = 0  # What a read found: the last change of the znode, of the children for `list`.
    member: int = 0
    line: int = 0  # Which connection of the client, counted.
    watch: str = ""  # Left by this read: `data` or `children`.
    batch: int = 0  # Calls of one client that were under way together, in their order.

    @property
    def done(self):
        return self.error == 0

    @property
    def unsure(self):
        return self.error is None

    def words(self):
        """What was asked, and what came of it."""
        condition = f" if v{self.version}" if self.version >= 0 else ""
        if self.kind in READS:
            found = f"v{self.version} {self.data!r} (mzxid {self.mzxid:#x})" if self.done else "nothing there"
            return f"{self.kind} {self.path}: {found}{', watching' * bool(self.watch)}"
        if self.kind in WRITES:
            asked = f"{self.kind} {self.path} {self.data!r}" if self.kind != "drop" else f"drop {self.path}"
            came = "no answer" if self.unsure else "done" if self.done else ERRORS.get(self.error, f"error {self.error}")
            return f"{asked}{condition}: {came}"
        if self.kind == "event":
            return f"event {EVENTS.get(self.version, self.version)} {self.path}"
        data = (self.data or "")[-60:]
        return f"{self.kind} {self.path} {data}{', watching' * bool(self.watch)}"


def shown(ops, origin=None):
    """A table to read: milliseconds since `origin` or the first, who, where, what."""
    ops = sorted(ops, key=lambda op: (op.begin, op.end))
    origin = ops[0].begin if origin is None and ops else origin
    rows = []
    for op in ops:
        end = "..." if op.end == math.inf else f"{(op.end - origin) * 1000:.1f}"
        zxid = f"zxid {op.zxid:#x}" if op.zxid > 0 else ""
        rows.append(f"    {(op.begin - origin) * 1000:10.1f} {end:>10} ms  {op.client:>10}@{op.member}  {op.words():<60} {zxid}")
    return "\n".join(rows)


def save(ops, path):
    with open(path, "w") as file:
        for op in ops:
            print(json.dumps(dataclasses.asdict(op)), file=file)


def load(path):
    with open(path) as file:
        return [Op(**json.loads(line)) for line in file]


@dataclasses.dataclass
class Broken:
    """A promise that was not kept, with the calls that show it."""

    what: str
    ops: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return f"{self.what}\n{shown(self.ops)}" if self.ops else self.what


@dataclasses.dataclass
class Round:
    """All that was recorded while one fault came and went."""

    ops: list
    severed: list = dataclasses.field(default_factory=list)  # (member, begin, end): it may not have known of a new leader.
    strict_sync: bool = True  # Whether `sync` promises more than Java's.
    strict_reads: bool = False  # Whether every read is to see what was acknowledged before it, wherever it was asked.
    finals: dict = dataclasses.field(default_factory=dict)  # Path to czxid of the znodes that are there in the end.
    notes: list = dataclasses.field(default_factory=list)  # What the checks found worth telling.
    checked: dict = dataclasses.field(default_factory=dict)  # How much each check had to look at.
