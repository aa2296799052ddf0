"""A Java leader whose log has a hole: it lacks transactions that its followers have.

Java 3.8.6 gets such logs by itself after some kills. Here the end of an epoch is cut out of a Java member's log, and the snapshots after it
are deleted, with which it then leads. A follower with the whole history differs from that leader's digests. It must not take the
leader's tree for that, neither at once nor at its next start.
"""

import pathlib
import shlex
import subprocess

from client import Client
from members import until

WRITES = 20  # In each epoch.
LOST = 5


def write(member, epoch):
    c = Client([member.address])
    for number in range(WRITES):
        code, _ = c.make(f"/hole-{epoch}-{number:02}")
        assert code == 0, f"write {number} of epoch {epoch} at {member}: {code}"
    c.close()


def names(member):
    """The znodes of this part that a member has."""
    c = Client([member.address])
    found = {name for name in c.names("/") if name.startswith("hole-")}
    c.close()
    return found


def zxids(program, log):
    """The zxids of the transactions in a log file."""
    text = subprocess.run([program, "txn-log", log], check=True, capture_output=True, text=True).stdout
    words = [line.split() for line in text.splitlines()]
    return [int(line[line.index("zxid") + 1], 16) for line in words if "zxid" in line]


def cut_out(member, program):
    """Removes the last transactions of an earlier epoch from the member's log, and every snapshot that holds them."""
    logs, snapshots = member.files("log"), member.files("snapshot")
    # On a busy machine there may be epochs without writes between.
    earlier = {first: zxids(program, path) for first, path in logs.items() if first >> 32 < max(logs) >> 32}
    first = max(first for first, found in earlier.items() if len(found) > WRITES)
    end = earlier[first][-1 - LOST]
    subprocess.run([program, "txn-log", "-c", "-z", hex(end), logs[first]], check=True, capture_output=True)
    logs[first].with_name(f"{logs[first].name}.chopped{end}").replace(logs[first])
    for zxid, path in snapshots.items():
        if zxid > end:
            path.unlink()
    assert min(snapshots) <= end, f"{member} has snapshots {[f'{zxid:x}' for zxid in snapshots]}"


# rows: D-69
def check(ensemble, arguments):
    ours = next(member for member in ensemble.members if member.kind == "o")
    lacking = ensemble.members[-1]
    for epoch in (1, 2):
        ensemble.start()
        write(ours, epoch)
        ensemble.stop()
    made = {f"hole-{epoch}-{number:02}" for epoch in (1, 2) for number in range(WRITES)}
    cut_out(lacking, str(pathlib.Path(shlex.split(arguments.server)[0]).resolve()))
    ensemble.start(ours, lacking)  # With as much history, the larger id leads.
    assert ensemble.leader() is lacking, f"{ensemble.leader()} leads, not {lacking}"
    missing = made - names(lacking)
    assert missing, f"{lacking} lacks nothing"
    write(lacking, 3)
    made |= {f"hole-3-{number:02}" for number in range(WRITES)}
    until(f"{ours} differs from its leader", lambda: ours.figures().get("zk_digest_mismatches_count", "0") != "0")
    ensemble.start()  # A start of ours alone would wait for a leader. Beside a quorum that has one it could ask for that leader's tree.
    for _ in range(2):
        assert made <= names(ours), f"{ours} lacks {sorted(made - names(ours))}"
        ensemble.stop(ours)
        ensemble.start(ours)
    # The way out of docs/operations.md: the member that lacks something gets the tree of one that is whole.
    ensemble.stop(lacking)
    ensemble.wait()
    lacking.forget()
    ensemble.start(lacking)
    for member in ensemble.members:
        assert made <= names(member), f"{member} lacks {sorted(made - names(member))}"
    return f"{len(missing)} transactions of {len(made)} in the hole"
