"""The faults that an ensemble suffers while its clients work. `Site.mend` is called when the function of a fault returns.

A fault is a function of a `Site`. Its docstring's first line says what it does. It tells the site which members it `sever`s: such a
member may go on as a leader for a while although the others have elected another one.
"""

import os
import resource
import signal
import time

from members import Failed, until
from workers import TIMEOUT_MS

END_SECONDS = 30  # Until a member whose disk is full must have exited.
BALLAST = "ballast"


class Site:
    """What a fault may use: the ensemble, its network, a random number generator, and the clients."""

    def __init__(self, cluster, rng, work, hold=1.0):
        self.cluster, self.network, self.rng, self.work = cluster, cluster.network, rng, work
        self.severed, self.notes, self.scale = [], [], hold
        self.leader = until("a leader", cluster.leader)
        self.others = [member for member in cluster.members if member is not self.leader]
        self.all = [member.number for member in cluster.members]

    def hold(self, seconds):
        time.sleep(seconds * self.scale)

    def sever(self, *members):
        self.severed += [(member, time.monotonic()) for member in members]

    def mend(self):
        """Ends the fault: heals the network, continues stopped members and restarts killed ones."""
        self.network.heal()
        for member in self.cluster.members:
            if member.process:
                os.killpg(member.process.pid, signal.SIGCONT)
            else:
                member.launch()

    def kill(self, *members):
        for member in members:
            if member.process:
                member.end(signal.SIGKILL)

    def rest(self, *members):
        numbers = [member.number for member in members]
        return [number for number in self.all if number not in numbers]


def nothing(site):
    """no fault: a healthy ensemble"""
    site.hold(3)


def minority(site):
    """a minority of followers is partitioned from all other members; clients still reach it"""
    few = site.others[:len(site.others) // 2]
    site.sever(*(member.number for member in few))
    site.network.cut([member.number for member in few], site.rest(*few))
    site.hold(5)


def leader(site):
    """the leader is partitioned from all other members; clients still reach it"""
    site.sever(site.leader.number)
    site.network.cut([site.leader.number], site.rest(site.leader))
    site.hold(6)


def leader_alone(site):
    """the leader is partitioned from all members and all clients"""
    site.sever(site.leader.number)
    site.network.cut([site.leader.number], [0, *site.rest(site.leader)])
    site.hold(6)


def deaf_leader(site):
    """the leader receives nothing from other members, but they receive its packets"""
    site.sever(site.leader.number)
    site.network.cut(site.rest(site.leader), [site.leader.number], both=False)
    site.hold(6)


def mute_leader(site):
    """other members receive nothing from the leader, but it receives their packets"""
    site.sever(site.leader.number)
    site.network.cut([site.leader.number], site.rest(site.leader), both=False)
    site.hold(6)


def mute_follower(site):
    """other members receive nothing from one follower, but it receives their packets"""
    one = site.rng.choice(site.others)
    site.sever(one.number)
    site.network.cut([one.number], site.rest(one), both=False)
    site.hold(5)


def bridge(site):
    """the leader and one follower don't reach each other; all others reach both"""
    one = site.rng.choice(site.others)
    site.sever(one.number, site.leader.number)
    site.network.cut([one.number], [site.leader.number])
    site.hold(6)


def halves(site):
    """three partitions into a majority and a minority, chosen anew each time"""
    for _ in range(3):
        few = site.rng.sample(site.all, (len(site.all) - 1) // 2)
        site.sever(*few)
        site.network.cut(few, [number for number in site.all if number not in few])
        site.hold(site.rng.uniform(1, 4))
        site.network.heal()
        site.hold(site.rng.uniform(0, 1))


def delay(site):
    """packets between members take 120 ms in each direction"""
    site.network.set(site.all, site.all, delay_ms=120)
    site.hold(5)


def loss(site):
    """one in twelve packets is lost, between members and to clients"""
    site.network.set([0, *site.all], site.all, loss=1 / 12)
    site.hold(5)


def flaps(site):
    """the link between the leader and one follower flaps, and every other time its connections are reset"""
    one = site.rng.choice(site.others)
    for at in range(8):
        site.sever(one.number, site.leader.number)
        site.network.set([site.leader.number], [one.number], loss=1.0, reset=at % 2 == 0)
        site.hold(site.rng.uniform(0.1, 0.9))
        site.network.heal()
        site.hold(site.rng.uniform(0.1, 0.5))


def kills(site):
    """SIGKILL of the leader, of a follower, of a majority at once, of all at once"""
    site.kill(site.leader)
    site.hold(1.5)
    site.mend()
    site.hold(1)
    one = site.rng.choice(site.others)
    site.kill(one)
    site.mend()
    site.hold(1.5)
    majority = site.rng.sample(site.cluster.members, len(site.all) // 2 + 1)
    site.kill(*majority)
    site.hold(0.5)
    site.mend()
    site.hold(2)
    site.kill(*site.cluster.members)
    site.hold(0.2)


def pause(site):
    """the leader is stopped (SIGSTOP) for longer than a session timeout, and then continues"""
    site.sever(site.leader.number)
    os.killpg(site.leader.process.pid, signal.SIGSTOP)
    time.sleep(TIMEOUT_MS / 1000 + 1.5)


def pause_quorum(site):
    """a majority without the leader is stopped (SIGSTOP) for a while"""
    site.sever(site.leader.number)
    for member in site.rng.sample(site.others, len(site.all) // 2 + 1):
        os.killpg(member.process.pid, signal.SIGSTOP)
    site.hold(3)


def full_follower(site):
    """a follower's disk is full: it exits, and rejoins when there is space"""
    fill(site, site.rng.choice(site.others))


def full_leader(site):
    """the leader's disk is full: it exits, and rejoins when there is space"""
    fill(site, site.leader)


def fill(site, member):
    """Fills a member's disk, and checks that it exits with the reason in its log."""
    size = member.log.stat().st_size
    if member.mounted:
        with open(member.folder / "data" / BALLAST, "wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(65536)):
                    pass
            except OSError:
                pass  # The disk is full.
    else:
        # A file size limit just above the preallocated transaction log; the member's own text log must stay below it.
        logs = [path.stat().st_size for path in (member.folder / "data/version-2").glob("log.*")]
        resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (max([size + 65536, *logs]), resource.RLIM_INFINITY))
    try:
        gone = lambda: site.work.stuff() or member.process.poll() is not None or out_of_service(member)  # noqa: E731
        until(f"exit of {member}, whose disk is full", gone, END_SECONDS)
        code = member.process.poll()
        if code is not None:
            member.process = None
        said = member.log.read_bytes()[size:].decode(errors="replace").splitlines()
        lines = [line for line in said if "No space left" in line or "File too large" in line]
        if code == 0 or not lines or (code is None and member.kind == "o"):
            raise Failed(f"{member} exited with {code}, and its log does not name the full disk:\n{member.tail()}")
        ended = "does not serve" if code is None else f"exited with {code}"
        site.notes.append(f"{member} {ended}: {lines[0].strip()[:200]}")
        site.hold(2)
        if member.process and member.process.poll() is not None:
            member.process = None
    finally:
        if member.mounted:
            (member.folder / "data" / BALLAST).unlink()


def out_of_service(member):
    """Whether a Java member no longer serves: it does not exit, but tries to follow a leader until there is space."""
    return member.kind != "o" and not member.mode()


# The network for each fault: only `namespaces` can lose single packets; only `proxies` can reset and stall connections.
QUICK = {
    "proxies": [minority, leader, flaps, kills, full_leader],
    "namespaces": [leader_alone, mute_leader, loss, delay, pause],
}
EVERY = [nothing, minority, leader, leader_alone, deaf_leader, mute_leader, mute_follower, bridge, halves, delay, loss, flaps,
         kills, pause, pause_quorum, full_follower, full_leader]
