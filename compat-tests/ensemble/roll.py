"""Rolling replacement from one kind of server to the other and back: with all members healthy, and with a fault at another member."""

import itertools
import signal
import time

import work
from client import Client
from load import Load
from members import Ensemble, until
from network import Proxies
from wire import Lost

# A follower gives up 2.5 s after its leader's last packet: well below the session timeouts of the load.
HURT = ["initLimit=20", "syncLimit=5"]


class Hurt(Ensemble):
    """Members whose network can be partitioned."""

    same_view = False

    def place(self):
        self.network = Proxies()
        self.network.place(self.members)

    def line(self, viewer, other):
        return self.network.line(viewer, other)

    def kill(self):
        super().kill()
        self.network.close()

    def wait_but(self, harmed):
        """Waits until all but `harmed` are in their roles; a partitioned member may report a role that it has lost."""
        rest = [member for member in self.running() if member is not harmed]
        until(f"{rest} without {harmed}", lambda: sorted(member.mode() for member in rest)
              == ["follower"] * (len(rest) - 1) + ["leader"])


def order_of(ensemble):
    """The members in the order of replacement: the leader last."""
    leader = ensemble.leader()
    return [*(member for member in ensemble.members if member is not leader), leader]


def check_roll(ensemble, arguments):
    """Replaces member by member, from Java to this server and back, the leader last, under load; with --long also by SIGKILL."""
    kinds = [member.kind for member in ensemble.members]
    steps = []
    for how in [signal.SIGTERM, signal.SIGKILL] if arguments.long else [signal.SIGTERM]:
        with Load(ensemble) as load:
            for target in ["o" * len(kinds), kinds]:
                for member in order_of(ensemble):
                    load.progress()
                    ensemble.stop(member, how=how)
                    member.kind = target[member.number - 1]
                    ensemble.start()
                    load.progress()
                steps.append(f"led by {ensemble.leader()}")
        work.alike(ensemble)
        steps.append(load.words())
    return ", ".join(steps)


def check_hurt(ensemble, arguments):
    """Rolling replacement while another member is killed or partitioned: it rejoins when the replaced member serves."""
    kinds = [member.kind for member in ensemble.members]
    numbers = [member.number for member in ensemble.members]
    steps, turn = [], itertools.count()
    with Load(ensemble) as load:
        for target in ["o" * len(kinds), kinds]:
            for member in order_of(ensemble):
                others = [other for other in ensemble.members if other is not member]
                step = next(turn)
                harmed, killed = others[step % len(others)], step % 2 == 1
                load.progress()
                if killed:
                    ensemble.stop(harmed, how=signal.SIGKILL)
                else:
                    ensemble.network.cut([harmed.number], [number for number in numbers if number != harmed.number])
                ensemble.wait_but(harmed)
                load.progress()
                ensemble.stop(member)
                member.kind = target[member.number - 1]
                member.launch()
                ensemble.wait_but(harmed)
                load.progress()
                ensemble.network.heal()
                if killed:
                    harmed.launch()
                ensemble.wait(f"{harmed} back")
            steps.append(f"led by {ensemble.leader()}")
    work.alike(ensemble)
    return ", ".join([*steps, load.words()])


def check_enlarge(ensemble, arguments):
    """An ensemble of three grows to five members and shrinks to three, without reconfig: each member is restarted with another
    zoo.cfg, the leader last; meanwhile some members know of three and some of five (ZOOKEEPER-3829 and related issues)."""
    first = ensemble.members[:3]
    whole = {member: (member.folder / "zoo.cfg").read_text() for member in ensemble.members}
    small = {member: "".join(line for line in text.splitlines(True) if not line.startswith(("server.4=", "server.5=")))
             for member, text in whole.items()}

    def write_at(addresses):
        while True:
            client = Client(addresses)
            try:
                error, _ = client.make(f"/enlarged-{time.monotonic_ns()}")
                break
            except Lost:
                pass  # The server stopped serving; try the next one.
        assert error == 0, f"a write through {addresses}: {error}"
        client.close()

    def write_through(members):
        for member in members:
            write_at([member.address])

    def restart(texts):
        leader = ensemble.leader()
        for member in [*(member for member in first if member is not leader), leader]:
            ensemble.stop(member)
            (member.folder / "zoo.cfg").write_text(texts[member])
            member.launch()
            # A member whose list of servers differs from its leader's may stay out until it is restarted too.
            ensemble.wait_for_quorum()
            # A leader whose followers were restarted may serve for a moment longer, and then be one of the members that stay out.
            write_at([member.address for member in ensemble.running()])

    ensemble.stop()
    for member in ensemble.members:
        member.forget()
        (member.folder / "zoo.cfg").write_text(small[member])
    ensemble.start(*first)
    write_through(first)
    for member in ensemble.members[3:]:
        (member.folder / "zoo.cfg").write_text(whole[member])
        member.launch()
    restart(whole)
    ensemble.wait("five")
    leader = ensemble.leader()
    ensemble.stop(leader, how=signal.SIGKILL)
    ensemble.wait("four of five")
    ensemble.start()
    write_through(ensemble.members)
    work.alike(ensemble)
    ensemble.stop(*ensemble.members[3:])
    ensemble.wait("three of five")
    restart(small)
    ensemble.wait("three")
    write_through(first)
    for member in ensemble.members[3:]:
        member.launch()  # With the zoo.cfg of five members: they find the leader nevertheless.
    ensemble.wait("five again")
    return "3, 5, 3"
