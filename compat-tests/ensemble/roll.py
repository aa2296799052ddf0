"""Replacement member by member, from one kind of server to the other and back: in peace, and with another member in trouble."""

import itertools
import signal

import work
from load import Load
from members import Ensemble, until
from network import Proxies

# 2.5 s until a follower that hears nothing gives up: well below the sessions of the load.
HURT = ["initLimit=20", "syncLimit=5"]


class Hurt(Ensemble):
    """Members with a network between them that can be cut."""

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
        """All but `harmed` are in their roles: what it says of itself need not be true."""
        rest = [member for member in self.running() if member is not harmed]
        until(f"{rest} without {harmed}", lambda: sorted(member.mode() for member in rest)
              == ["follower"] * (len(rest) - 1) + ["leader"])


def order_of(ensemble):
    """The leader last."""
    leader = ensemble.leader()
    return [*(member for member in ensemble.members if member is not leader), leader]


def check_roll(ensemble, arguments):
    """Member by member from Java to this server and back, the leader last, under load; each way down to a SIGKILL."""
    kinds = [member.kind for member in ensemble.members]
    told = []
    for how in [signal.SIGTERM, signal.SIGKILL] if arguments.long else [signal.SIGTERM]:
        with Load(ensemble) as load:
            for target in ["o" * len(kinds), kinds]:
                for member in order_of(ensemble):
                    load.progress()
                    ensemble.stop(member, how=how)
                    member.kind = target[member.number - 1]
                    ensemble.start()
                    load.progress()
                told.append(f"led by {ensemble.leader()}")
        work.alike(ensemble)
        told.append(load.words())
    return ", ".join(told)


def check_hurt(ensemble, arguments):
    """The same while another member is killed or cut off from the rest: it comes back when the replaced one serves."""
    kinds = [member.kind for member in ensemble.members]
    numbers = [member.number for member in ensemble.members]
    told, turn = [], itertools.count()
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
            told.append(f"led by {ensemble.leader()}")
    work.alike(ensemble)
    return ", ".join([*told, load.words()])
