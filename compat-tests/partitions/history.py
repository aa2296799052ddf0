"""The history of clients, with a record for each call and each event, and how it is saved and printed."""

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

    `error` is None when there was no reply: then the call may or may not have been carried out, at any time after `begin`.
    Kinds: `set`, `make`, `drop` (writes of one znode); `read`; `sync-read` (sync, then read); `fenced-read` (a write
    of another znode, then read); `list` (of children); `event`; and `session` (`data`: opened, moved, expired, closed).
    """

    client: str
    kind: str
    path: str = ""
    begin: float = 0.0
    end: float = math.inf
    error: int | None = None
    data: str | None = None  # Written or read; for `list` the names, separated by blanks.
    version: int = -1  # A write's expected version; the version read; an event's type.
    zxid: int = 0  # In the reply's header.
    mzxid: int = 0  # As read: the zxid of the znode's last change, for `list` of its children's.
    member: int = 0
    line: int = 0  # The number of the client's connection.
    watch: str = ""  # The watch that this read set: `data` or `children`.
    batch: int = 0  # The number of the batch: calls of one client that were outstanding together.

    @property
    def done(self):
        return self.error == 0

    @property
    def unsure(self):
        return self.error is None

    def words(self):
        """The request and its result, as text."""
        condition = f" if v{self.version}" if self.version >= 0 else ""
        if self.kind in READS:
            found = f"v{self.version} {self.data!r} (mzxid {self.mzxid:#x})" if self.done else "no node"
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
    """A table as text: milliseconds since `origin` or the first call, client and member, request and result."""
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
    """A violated guarantee, with the calls that show it."""

    what: str
    ops: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return f"{self.what}\n{shown(self.ops)}" if self.ops else self.what


@dataclasses.dataclass
class Round:
    """The history before, during and after one fault."""

    ops: list
    severed: list = dataclasses.field(default_factory=list)  # (member, begin, end): the member may not have known of a new leader.
    strict_sync: bool = True  # Whether `sync` guarantees more than Java's.
    strict_reads: bool = False  # Whether every read, at every member, must see all writes acknowledged before it.
    finals: dict = dataclasses.field(default_factory=dict)  # Path to czxid of the znodes that exist in the end.
    notes: list = dataclasses.field(default_factory=list)  # Remarks of the checks, for the printed line.
    checked: dict = dataclasses.field(default_factory=dict)  # How many calls each check examined.
