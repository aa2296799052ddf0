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


def cut_out(member, program):
    """Removes the last transactions of the first epoch from the member's log, and every snapshot that holds them."""
    logs, snapshots = member.files("log"), member.files("snapshot")
    first = next(zxid for zxid in logs if zxid >> 32 == 1)
    assert any(zxid >> 32 == 2 for zxid in logs), f"{member} has logs {[f'{zxid:x}' for zxid in logs]}"
    text = subprocess.run([program, "txn-log", logs[first]], check=True, capture_output=True, text=True).stdout
    zxids = [int(word, 16) for line in text.splitlines() for key, word in zip(line.split(), line.split()[1:]) if key == "zxid"]
    end = zxids[-1 - LOST]
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
