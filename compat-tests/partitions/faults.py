"""What is done to an ensemble while its clients work. `Site.mend` is called when it returns.

A fault is a function of a `Site`. It says what it does in its first line, and tells the site which members were severed:
they may have led on for a while without knowing that others had elected another leader.
"""

import os
import resource
import signal
import time

from members import Failed, until
from workers import TIMEOUT_MS

END_SECONDS = 30  # For a member whose disk is full to end.
BALLAST = "ballast"


class Site:
    """The ensemble, its network, and chance; what a fault may use."""

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
        """Heals what can be: a network, and members that are stopped or gone."""
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
    """no fault: what the clients find of a whole ensemble"""
    site.hold(3)


def minority(site):
    """a minority of followers is cut off from all other members; clients still reach it"""
    few = site.others[:len(site.others) // 2]
    site.sever(*(member.number for member in few))
    site.network.cut([member.number for member in few], site.rest(*few))
    site.hold(5)


def leader(site):
    """the leader is cut off from all other members; clients still reach it"""
    site.sever(site.leader.number)
    site.network.cut([site.leader.number], site.rest(site.leader))
    site.hold(6)


def leader_alone(site):
    """the leader is cut off from all members and all clients"""
    site.sever(site.leader.number)
    site.network.cut([site.leader.number], [0, *site.rest(site.leader)])
    site.hold(6)


def deaf_leader(site):
    """nothing reaches the leader from other members, but they hear it"""
    site.sever(site.leader.number)
    site.network.cut(site.rest(site.leader), [site.leader.number], both=False)
    site.hold(6)


def mute_leader(site):
    """nothing of the leader reaches other members, but it hears them"""
    site.sever(site.leader.number)
    site.network.cut([site.leader.number], site.rest(site.leader), both=False)
    site.hold(6)


def mute_follower(site):
    """nothing of one follower reaches other members, but it hears them"""
    one = site.rng.choice(site.others)
    site.sever(one.number)
    site.network.cut([one.number], site.rest(one), both=False)
    site.hold(5)


def bridge(site):
    """two members don't reach each other, one of them the leader; all others reach both"""
    one = site.rng.choice(site.others)
    site.sever(one.number, site.leader.number)
    site.network.cut([one.number], [site.leader.number])
    site.hold(6)


def halves(site):
    """the ensemble falls into a majority and a minority again and again, another one each time"""
    for _ in range(3):
        few = site.rng.sample(site.all, (len(site.all) - 1) // 2)
        site.sever(*few)
        site.network.cut(few, [number for number in site.all if number not in few])
        site.hold(site.rng.uniform(1, 4))
        site.network.heal()
        site.hold(site.rng.uniform(0, 1))


def delay(site):
    """each way between members takes 120 ms"""
    site.network.set(site.all, site.all, delay_ms=120)
    site.hold(5)


def loss(site):
    """one in twelve packets gets lost, between members and on the way to clients"""
    site.network.set([0, *site.all], site.all, loss=1 / 12)
    site.hold(5)


def flaps(site):
    """the leader's way to one follower comes and goes, and now and then all connections are reset"""
    one = site.rng.choice(site.others)
    for at in range(8):
        site.sever(one.number, site.leader.number)
        site.network.set([site.leader.number], [one.number], loss=1.0, reset=at % 2 == 0)
        site.hold(site.rng.uniform(0.1, 0.9))
        site.network.heal()
        site.hold(site.rng.uniform(0.1, 0.5))


def kills(site):
    """SIGKILL of one after the other, of a majority at once, of all at once"""
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
    """the leader stands still (SIGSTOP) for longer than a session lasts, and then goes on as if nothing had been"""
    site.sever(site.leader.number)
    os.killpg(site.leader.process.pid, signal.SIGSTOP)
    time.sleep(TIMEOUT_MS / 1000 + 1.5)


def pause_quorum(site):
    """a majority without the leader stands still (SIGSTOP) for a while"""
    site.sever(site.leader.number)
    for member in site.rng.sample(site.others, len(site.all) // 2 + 1):
        os.killpg(member.process.pid, signal.SIGSTOP)
    site.hold(3)


def full_follower(site):
    """a follower's disk is full: it ends, and comes back when there is space"""
    fill(site, site.rng.choice(site.others))


def full_leader(site):
    """the leader's disk is full: it ends, and comes back when there is space"""
    fill(site, site.leader)


def fill(site, member):
    """Takes the space from a member, and looks at how it ends."""
    size = member.log.stat().st_size
    if member.mounted:
        with open(member.folder / "data" / BALLAST, "wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(65536)):
                    pass
            except OSError:
                pass  # That was all the space there is.
    else:
        # Files may not grow beyond what the log has set aside; the log that is told of it has to stay below.
        logs = [path.stat().st_size for path in (member.folder / "data/version-2").glob("log.*")]
        resource.prlimit(member.process.pid, resource.RLIMIT_FSIZE, (max([size + 65536, *logs]), resource.RLIM_INFINITY))
    try:
        gone = lambda: site.work.stuff() or member.process.poll() is not None or out_of_service(member)  # noqa: E731
        until(f"{member} ends when its disk is full", gone, END_SECONDS)
        code = member.process.poll()
        if code is not None:
            member.process = None
        said = member.log.read_bytes()[size:].decode(errors="replace").splitlines()
        lines = [line for line in said if "No space left" in line or "File too large" in line]
        if code == 0 or not lines or (code is None and member.kind == "o"):
            raise Failed(f"{member} ended with {code}, and does not say that its disk is full:\n{member.tail()}")
        ended = "is out of service" if code is None else f"ended with {code}"
        site.notes.append(f"{member} {ended}: {lines[0].strip()[:200]}")
        site.hold(2)
        if member.process and member.process.poll() is not None:
            member.process = None
    finally:
        if member.mounted:
            (member.folder / "data" / BALLAST).unlink()


def out_of_service(member):
    """A Java leader does not end: it says again and again that it can't follow, until there is space."""
    return member.kind != "o" and not member.mode()


# Which network each is tried on: packets get lost in `namespaces` only as such; `proxies` can reset and hold connections.
QUICK = {
    "proxies": [minority, leader, flaps, kills, full_leader],
    "namespaces": [leader_alone, mute_leader, loss, delay, pause],
}
EVERY = [nothing, minority, leader, leader_alone, deaf_leader, mute_leader, mute_follower, bridge, halves, delay, loss, flaps,
         kills, pause, pause_quorum, full_follower, full_leader]
