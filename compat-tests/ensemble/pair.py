"""Two voters with an oracle each: a file that begins with `1` if the server may go on without the other one."""

import signal
import time

import work
from client import Client
from members import Failed, until

SETTINGS = ["oraclePath=oracle"]  # Relative to each server's working directory.
QUIET_SECONDS = 3  # Several times the duration of an election: long enough for a server to wrongly lead alone.


def set_answer(member, answer):
    """Replaces the oracle's file atomically, as the server may read it at any moment."""
    new = member.folder / "oracle.new"
    new.write_text(answer)
    new.rename(member.folder / "oracle")


def writes(member, path):
    c = Client([member.address])
    error, _ = c.make(path, b"alone")
    c.close()
    return error == 0


def serves_nobody(member, why):
    until(f"{member} does not serve: {why}", lambda: not member.mode())
    deadline = time.monotonic() + QUIET_SECONDS
    while time.monotonic() < deadline:
        if mode := member.mode():
            raise Failed(f"{member} is {mode}: {why}")
        time.sleep(0.1)


# rows: Q-14 Q-96 C-62
def check(ensemble, arguments):
    """Each of the two loses the other: it goes on while its oracle says so and no longer; then the other one rejoins."""
    rounds = 0
    for stays in ensemble.members:
        other = next(member for member in ensemble.members if member is not stays)
        for leads in ensemble.members:
            make_lead(ensemble, leads)
            set_answer(stays, "1\n")
            set_answer(other, "0\n")
            ensemble.stop(other, how=signal.SIGKILL)
            until(f"{stays} goes on alone", lambda: stays.mode() == "leader")
            assert writes(stays, f"/first{rounds}"), "it must commit alone"
            set_answer(stays, "0\n")
            serves_nobody(stays, "its oracle says no now")
            set_answer(stays, "1\n")
            until(f"{stays} goes on alone again", lambda: stays.mode() == "leader", 90)
            assert writes(stays, f"/second{rounds}"), "it must commit alone"
            ensemble.start()
            assert ensemble.leader() is stays, "the restarted server must follow"
            assert writes(other, f"/third{rounds}"), "a write through the restarted server"
            work.alike(ensemble)
            set_answer(stays, "0\n")
            ensemble.wait()
            ensemble.stop(other, how=signal.SIGKILL)
            serves_nobody(stays, "both oracles say no")
            ensemble.stop(stays)
            other.launch()
            serves_nobody(other, "both oracles say no")
            stays.launch()
            ensemble.wait("both again")
            work.alike(ensemble)
            rounds += 1
    return f"{rounds} rounds"


def make_lead(ensemble, leader):
    """Makes `leader` the leader: its oracle lets it start alone."""
    if ensemble.leader() is leader:
        return
    ensemble.stop()
    for member in ensemble.members:
        set_answer(member, "1" if member is leader else "0")
    leader.launch()
    until(f"{leader} leads alone", lambda: leader.mode() == "leader")
    ensemble.start()
    assert ensemble.leader() is leader, "the server that starts second must follow"
