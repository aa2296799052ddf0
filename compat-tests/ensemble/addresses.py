"""Members with two addresses each, in two networks, one of which fails at a time. Needs root and /dev/net/tun."""

import signal

import network
import work
from client import Client
from members import Ensemble

SETTINGS = ["zookeeper.multiAddress.enabled=true", "syncLimit=6"]  # As -D: Java's parser of server addresses reads only that.
NETWORKS = (78, 79)  # 10.78.0.N and 10.79.0.N; clients are in a third network, which never fails.


class TwoNetworks(network.Namespaces):
    def place(self, members):
        super().place(members)
        for name, member in zip(self.names, members, strict=True):
            for number in NETWORKS:
                network.ip("-n", name, "addr", "add", f"10.{number}.0.{member.number}/24", "dev", f"wire{member.number}")

    def line(self, _viewer, other):
        role = "observer" if other.observes else "participant"
        places = (f"10.{number}.0.{other.number}:{other.quorum_port}:{other.election_port}" for number in NETWORKS)
        return f"server.{other.number}={'|'.join(places)}:{role}"

    def lose(self, *numbers):
        """Drops all packets of these networks; the others work."""
        self.rules = {("network", number): (1.0, 0, False) for number in numbers}
        self.send_rules()


class Spread(Ensemble):
    def __init__(self, kinds, command, settings=()):
        self.network = TwoNetworks()
        super().__init__(kinds, command, settings)

    def place(self):
        self.network.place(self.members)

    def line(self, viewer, other):
        return self.network.line(viewer, other)

    def kill(self):
        super().kill()
        if self.network.process:
            self.network.close()


def made(kinds, command, settings):
    """The ensemble, in a network namespace of this process; or, as a text, why that is not possible."""
    if not hasattr(made, "hindrance"):
        made.hindrance = network.leave_machine()
    return made.hindrance or Spread(kinds, command, settings)


# rows: Q-30 C-59 C-61
def check(ensemble, arguments):
    """Each network fails in turn: members use the other one, also when the leader is killed and a member starts meanwhile."""
    rounds = 0
    for lost in (*NETWORKS, *NETWORKS):
        ensemble.network.lose(lost)
        write(ensemble, f"/lost{rounds}")
        leader = ensemble.leader()
        ensemble.stop(leader, how=signal.SIGKILL)
        ensemble.wait(f"network {lost} and {leader} gone: the rest")
        write(ensemble, f"/killed{rounds}")
        ensemble.start()
        write(ensemble, f"/back{rounds}")
        work.alike(ensemble)
        ensemble.network.lose()
        rounds += 1
    return f"{rounds} times"


def write(ensemble, path):
    """Writes through every member, once it accepts the write: it first has to notice that a network has failed."""
    for member in ensemble.running():
        ensemble.wait()
        c = Client([member.address])
        error, _ = c.make(f"{path}-{member.number}")
        assert error in (0, -110), error  # NodeExists: created by an earlier try whose answer was lost.
        c.close()
