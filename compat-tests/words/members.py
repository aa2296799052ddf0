"""An ensemble of four: servers 1 to 3 are voters, server 4 is an observer."""

import time

from server import Server, free_port

PATIENCE = 60  # Seconds; a bound against hanging, not an expectation.


class Member(Server):
    """A member. `ports`: its learner port and its election port."""

    def __init__(self, command, number, lines, ports):
        limits = ["initLimit=20", "syncLimit=10"]
        role = ["peerType=observer"] if number == 4 else []
        super().__init__(command, [*limits, *lines, *role, "maxSessionTimeout=60000"])
        self.number, self.ports = number, ports
        (self.folder / "data/myid").write_text(f"{number}\n")

    def start(self):
        self.started_at = time.monotonic()
        return super().start()

    def serves(self):
        """Whether it answers `ruok`: before the other members start there may be no quorum."""
        return self.word("ruok") == "imok"

    def mode(self):
        """Its role from the answer to `srvr`, as start scripts read it; `None` while it does not serve."""
        lines = self.word("srvr").splitlines()
        return next((line.removeprefix("Mode: ") for line in lines if line.startswith("Mode: ")), None)

    def running(self):
        return self.process is not None and self.process.poll() is None


class Ensemble:
    def __init__(self, command):
        ports = {number: (free_port(), free_port()) for number in range(1, 5)}
        kind = lambda number: "observer" if number == 4 else "participant"  # noqa: E731
        lines = [f"server.{number}=127.0.0.1:{quorum}:{election}:{kind(number)}"
                 for number, (quorum, election) in ports.items()]
        self.members = [Member(command, number, lines, ports[number]) for number in ports]

    def start(self):
        """Starts all and waits until they serve. Servers 1 and 2 start first, so that 2 leads."""
        for begin in (self.members[:2], self.members[2:]):
            for member in begin:
                member.start()
            self.wait(begin)
        return self

    def wait(self, members):
        """Waits until these serve, and notes when each was seen to: the server has served at least since then."""
        deadline = time.monotonic() + PATIENCE
        for member in members:
            while member.mode() is None:
                if deadline < time.monotonic():
                    raise RuntimeError(f"server {member.number} has no role\n{member.tail()}")
                time.sleep(0.02)
            member.serving_since = time.monotonic()

    def remove(self):
        for member in self.members:
            member.remove()
