"""The server that a case attacks: in one role, standalone or in an ensemble, with the figures that a case checks."""

import dataclasses
import itertools
import os
import pathlib
import re
import select
import signal
import time

from members import Ensemble, Failed, until
from server import Server

KIB, MIB = 1024, 1024 * 1024
ALONE, LEADER, FOLLOWER, OBSERVER = ROLES = ("alone", "leader", "follower", "observer")


def at(*quick, long=()):
    """Decorates a case with the roles that it runs against; `long`: further roles for --long."""

    def decorate(case):
        case.roles, case.long_roles = quick, (*quick, *long)
        return case

    return decorate


@dataclasses.dataclass
class Trial:
    """One case against one server in one role. `role` is None for a case that starts its own servers."""

    command: str
    role: str | None = None
    long: bool = False

    @property
    def is_java(self):
        return self.command == "java"

    def of(self, short, long):
        return long if self.long else short

    def say(self, text):
        print(f"    {f'{self.role}: ' if self.role else ''}{text}", flush=True)

    def members(self, kinds="ooo", settings=(), made=Ensemble):
        return Members(self.command, kinds, settings, made)

    def alone(self, settings=(), before=()):
        return Alone(self.command, settings, before)

    def target(self, settings=(), before=(), environment=None):
        return Target(self, settings, before, environment)


def memory(process, field="VmRSS"):
    """The memory of a process in bytes; 0 once it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return 0
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.M)
    return int(found.group(1)) * KIB if found else 0


def lives(process):
    assert process.poll() is None, f"the server exited with {process.returncode}"


def elections(members):
    """How often each running member has been LOOKING since it started."""
    figures = {member.number: member.figures() for member in members if member.process}
    return {number: int(found.get("zk_looking_count", -1)) for number, found in figures.items()}


def pour(peers, piece, bytes_max, seconds=60):
    """Sends to each peer as much as it accepts, up to `bytes_max`; returns the bytes sent in all, and the connections that were closed."""
    left, closed, taken = {peer: bytes_max for peer in peers}, set(), 0
    for peer in peers:
        peer.setblocking(False)
    deadline = time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        _, ready, _ = select.select([], list(left), [], 2)
        if not ready:
            break  # The server reads none of the connections any more.
        for peer in ready:
            try:
                sent = peer.send(piece[:left[peer]])
            except BlockingIOError:
                continue
            except OSError:
                closed.add(peer)
                del left[peer]
                continue
            taken += sent
            left[peer] -= sent
            if left[peer] == 0:
                del left[peer]
    return taken, closed


def ends(peer, seconds):
    """Whether the other end closes the connection within that time."""
    peer.settimeout(seconds)
    try:
        while peer.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


class Members:
    """An ensemble that a case attacks, removed at its end."""

    def __init__(self, command, kinds, settings=(), made=Ensemble):
        if command == "java":
            kinds = kinds.replace("o", "j")
        self.ensemble = made(kinds, "true" if command == "java" else command, settings)

    def __enter__(self):
        try:
            try:
                self.ensemble.start()
            except Failed:  # A second wait: a busy machine may need long to start three JVMs.
                self.ensemble.wait()
        except BaseException:
            print(self.ensemble.tails())
            self.ensemble.remove()
            raise
        return self.ensemble

    def __exit__(self, kind, error, _):
        if error:
            print(self.ensemble.tails())
            self.ensemble.kill()
        else:
            self.ensemble.remove()


class Alone:
    """A standalone server that a case attacks, removed at its end."""

    def __init__(self, command, settings=(), before=()):
        flags = [line for line in settings if line.startswith("zookeeper.")]  # Settings that exist only as -D properties.
        self.server = Server(command, [line for line in settings if line not in flags], [f"-D{line}" for line in flags])
        self.server.command = [*before, *self.server.command]
        self.server.host, self.server.number = "127.0.0.1", 0

    def __enter__(self):
        return self.server.start()

    def __exit__(self, kind, error, _):
        if error:
            print(self.server.tail())
            self.server.end(signal.SIGKILL)
        else:
            self.server.remove()


class Target:
    """A server in the role that the trial names; `server` has address, host, process, folder and log.

    `ensemble` is None for a standalone server. At the end the server must be alive, and no member may have been LOOKING meanwhile.
    """

    def __init__(self, trial, settings=(), before=(), environment=None):
        self.trial, self.ensemble, self.environment = trial, None, environment
        if trial.role == ALONE:
            self.place = trial.alone(settings, before)
            self.place.server.environment.update(environment or {})
        else:
            self.place = trial.members("oo+o" if trial.role == OBSERVER else "ooo", settings)
            for member in self.place.ensemble.members:
                member.before = list(before)
        self.is_calm = True  # A case that stops members or causes elections sets it to False.

    def __enter__(self):
        kept = {name: os.environ.get(name) for name in self.environment or {}}
        os.environ.update(self.environment or {})
        try:
            entered = self.place.__enter__()
        finally:
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        if self.trial.role == ALONE:
            self.server = entered
            return self
        self.ensemble = entered
        self.server = until(f"a {self.trial.role}", lambda: self.member(self.trial.role))
        self.elections = elections(self.ensemble.members)
        return self

    def member(self, role):
        return next((member for member in self.ensemble.members if member.mode() == role), None)

    @property
    def address(self):
        return self.server.address

    def memory(self, field="VmRSS"):
        return memory(self.server.process, field)

    def check(self):
        lives(self.server.process)
        if self.ensemble and self.is_calm:
            assert self.ensemble.serves(), "a member does not serve"
            after = elections(self.ensemble.members)
            assert after == self.elections, f"elections by member: {after}, before the case {self.elections}"

    def __exit__(self, kind, error, trace):
        if error is None:
            try:
                self.check()
            except BaseException as found:
                self.place.__exit__(type(found), found, None)
                raise
        self.place.__exit__(kind, error, trace)


def mib(count):
    return f"{count / MIB:,.0f} MiB"


def ms(seconds):
    return f"{seconds * 1000:,.0f} ms"


NUMBERS = itertools.count()


def fresh_path(name):
    return f"/{name}-{next(NUMBERS)}"
