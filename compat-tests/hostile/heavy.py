"""Heavy legitimate load: a slow learner, a slow disk, a client that floods; the ensemble slows down and stays up."""

import pathlib
import shutil
import subprocess
import tempfile
import time

import throttle
from honest import Beside, Writers
from members import until
from target import ALONE, FOLLOWER, LEADER, MIB, OBSERVER, at, elections, memory, mib, ms

MB = 1_000_000
SLOW_BYTES = 2 * MB  # A second.


def peaks(ensemble):
    return {str(member): memory(member.process, "VmHWM") for member in ensemble.members if member.process}


def text_of(figures):
    return ", ".join(f"{name} {mib(count)}" for name, count in figures.items())


@at(LEADER, FOLLOWER, long=(ALONE, OBSERVER))
def large_writes(trial):
    """16 clients keep 40 writes of 1 MB each outstanding at one server: all are answered, no election, memory stays bounded."""
    with trial.target() as target:
        members = target.ensemble.members if target.ensemble else [target.server]
        with Beside(target.address, pause=0.1) as beside, Writers([target.address], 16, MB, window=40, patience=110) as writers:
            began, enough = time.monotonic(), trial.of(640, 6400)
            while writers.answered < enough and time.monotonic() < began + trial.of(40, 400) and not writers.failed():
                time.sleep(0.1)
        highest = {str(getattr(member, "number", 0)): memory(member.process, "VmHWM") for member in members}
        trial.say(f"{writers.words()} of 1 MB, {writers.answered} in all; memory {text_of(highest)}; {beside.words()}")
        if not trial.is_java:
            assert max(highest.values()) < 640 * MIB, "large writes take memory without a bound"


@at(FOLLOWER, long=(OBSERVER,))
def slow_learner(trial):
    """16 clients write 1 MB values while one member receives at 2 MB/s: no election, and the member stays."""
    made = throttle.made(3 if trial.role == OBSERVER else 1, SLOW_BYTES)
    with trial.members("oo+o" if trial.role == OBSERVER else "ooo", made=made) as ensemble:
        leader, slow = ensemble.leader(), ensemble.members[2 if trial.role == OBSERVER else 0]
        if leader is slow:  # Restart it, so that another member leads.
            ensemble.stop(slow)
            ensemble.wait()
            ensemble.start(slow)
            leader = ensemble.leader()
        before, mode = elections(ensemble.members), slow.mode()
        assert mode == trial.role, f"the slow member is {mode}"
        with Beside(leader.address, pause=0.1) as beside, Writers([leader.address], 16, MB, window=2, patience=110) as writers:
            began, enough = time.monotonic(), trial.of(350, 4000)  # More MB than may be queued for a member.
            while writers.answered < enough and time.monotonic() < began + trial.of(20, 240):
                time.sleep(0.1)
            writers.stop()
            taken, deadline = writers.answered, time.monotonic()
            seconds = deadline - began
            while any(writer.client.received < writer.client.sent for writer in writers.all) and not writers.failed():
                if time.monotonic() > deadline + trial.of(40, 300):
                    raise AssertionError(f"{sum(w.client.sent - w.client.received for w in writers.all)} writes are unanswered")
                time.sleep(0.3)
            drained = time.monotonic() - deadline
        after, highest = elections(ensemble.members), peaks(ensemble)
        trial.say(f"{taken} MB written in {seconds:.0f} s, answers until {drained:.1f} s later; elections {before} to {after};"
                  f" memory {text_of(highest)}; {beside.words()}")
        others = [number for number in before if number != slow.number]
        assert all(before[number] == after[number] for number in others), "there was an election"
        assert after[slow.number] == before[slow.number] or trial.is_java, "the slow member was disconnected"
        if not trial.is_java:
            assert max(highest.values()) < 1000 * MIB, "the queue for a slow member has no bound"


@at(ALONE, FOLLOWER, long=(LEADER, OBSERVER))
def flood_beside_honest(trial):
    """One client floods the server with pipelined writes: another client's occasional writes don't wait for all of them."""
    with trial.target() as target:
        with Beside(target.address, pause=trial.of(0.1, 1)) as beside:
            time.sleep(trial.of(1, 10))
            alone = beside.longest()
            for size, window in ((1000, 4000), (500_000, 200)):
                since = time.monotonic()
                with Writers([target.address], 1, size, window) as writers:
                    time.sleep(trial.of(4, 60))
                trial.say(f"{window} outstanding writes of {size:,} bytes, {writers.words()}: {beside.words(since)} ({ms(alone)} alone)")
                # If the honest client's write shared a queue with the flood, it would wait for the whole window.
                queue = window / max(1, writers.answered / writers.seconds)
                assert beside.longest(since) < max(5, queue / 2), f"one client starves another: the whole window takes {queue:.1f} s"


def slowed():
    """Compiles `slow_flush.c`, which starts a server with slow flushes; None where that is not possible."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="oxkeeper-slow-"))
    program, source = folder / "slow_flush", pathlib.Path(__file__).with_name("slow_flush.c")
    try:
        subprocess.run(["gcc", "-O1", "-pthread", "-o", program, source], check=True, capture_output=True)
        subprocess.run([program, folder / "none", "true"], check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        shutil.rmtree(folder)
        return None
    return program


def delayed(member):
    """How many flushes of a member were delayed."""
    count = member.slow.with_name("slow.count")
    return count.stat().st_size if count.exists() else 0


def slow_disk(trial):
    """Flushes of a follower, then of the leader, take 200 ms longer, under load: no election, memory bounded, all writes answered."""
    program = slowed()
    if not program:
        return trial.say("skipped: no gcc, or no seccomp")
    members = trial.members()
    for member in members.ensemble.members:
        member.slow = member.folder / "slow"
        member.before = [program, member.slow]
    with members as ensemble:
        leader = until("a leader", ensemble.leader)
        follower = next(member for member in ensemble.members if member is not leader)
        before, start, clients = elections(ensemble.members), peaks(ensemble), [member.address for member in ensemble.members]
        for name, slow in (("no disk", []), ("a follower's disk", [follower]), ("the leader's disk", [leader]),
                           ("a quorum's disks", [leader, follower])):
            counts = {member: delayed(member) for member in slow}
            for member in slow:
                member.slow.touch()
            with Beside(clients[0], pause=0.05) as beside, Writers(clients, 12, 10_000, window=64) as writers:
                time.sleep(trial.of(4, 60))
            counts = {member: delayed(member) - count for member, count in counts.items()}
            trial.say(f"{name} slow: {writers.words()}; {beside.words()}; flushes delayed: {counts}")
            assert all(count >= 3 for count in counts.values()), f"flushes are not slow: {counts}"
            for member in slow:
                member.slow.unlink()
            assert elections(ensemble.members) == before, f"an election while {name} was slow"
        highest = peaks(ensemble)
        trial.say(f"memory at most {text_of(highest)}")
        assert all(highest[name] - start[name] < 400 * MIB for name in start) or trial.is_java, "memory grows with a slow disk"
    shutil.rmtree(program.parent)
